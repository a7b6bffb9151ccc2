/* SPDX-License-Identifier: MIT */
/* Which of the driver's samples and of the observer's are the same exchange; see match.c. */
#ifndef LIB_JOIN_MATCH_H
#define LIB_JOIN_MATCH_H

#include "sojourn/run.h"

struct join_pair {
	const struct run_sample *sent; /* the driver's */
	const struct run_sample *seen; /* the observer's */
};

struct join_match {
	struct join_pair *pairs;
	size_t count;
	uint64_t driver_only;	/* nothing of the observer's has their key */
	uint64_t unknown_flow;	/* of these: the observer has nothing of their connection at all */
	uint64_t observer_only; /* on the driver's connections, within what it measured there */
	uint64_t unmeasured;	/* on the driver's connections, before or after what it measured */
	uint64_t other_clients; /* on connections that the driver has no sample of */
	uint64_t repeated;    /* pairs whose key occurs more than once: told apart by their order */
	uint64_t ambiguous;   /* the driver's, of a key that occurs a different number of times */
	uint64_t implausible; /* left out: their times contradict those of the others */
};

/*
 * Matches @sent with the samples of all services of @run, as far as their hash is below @threshold.
 * The pairs are in the order of their start and point to the samples; the caller frees them. -ENOMEM.
 */
int join_match(const struct run_samples *sent, const struct run *run, uint64_t threshold,
	       struct join_match *ret_match);

/*
 * clock.c: leaves out pairs that cannot be the same exchange. Takes pairs in the order of their
 * start, lowers match->count, counts implausible.
 */
void join_check_clocks(struct join_match *match);

#endif
