/* SPDX-License-Identifier: MIT */
/* Finds samples of driver and observer that are the same exchange; see match.c. */
#ifndef LIB_JOIN_MATCH_H
#define LIB_JOIN_MATCH_H

#include "sojourn/run.h"

struct join_pair {
	const struct run_sample *sent; /* the driver's */
	const struct run_sample *seen; /* the observer's */
	size_t service;		       /* which of the run's services has @seen */
};

struct join_match {
	struct join_pair *pairs;
	size_t count;
	uint64_t driver_only;	/* the observer has no sample of their key */
	uint64_t unknown_flow;	/* of these: the observer has no sample of their connection */
	uint64_t observer_only; /* on the driver's connections, within its samples there */
	uint64_t unmeasured;	/* on the driver's connections, before or after its samples */
	uint64_t other_clients; /* on connections without a sample of the driver */
	uint64_t repeated;	/* pairs with a repeated key, distinguished by order */
	uint64_t ambiguous;	/* the driver's; their key is not equally frequent on both sides */
	uint64_t implausible;	/* left out: their times contradict the others' */
};

/*
 * Match @sent with the samples of all services of @run whose hash is below @threshold. Pairs are in
 * order of start and point to the samples; the caller frees them. -ENOMEM.
 */
int join_match(const struct run_samples *sent, const struct run *run, uint64_t threshold,
	       struct join_match *ret_match);

/*
 * clock.c: remove pairs that cannot be the same exchange. Lower match->count and count implausible.
 * The rest is in order of start.
 */
void join_check_clocks(const struct run *run, struct join_match *match);

/*
 * pair.c: find upstreams on other hosts, in a document of several observers: services at the addresses that a front's
 * processes call. Their rows are appended to the front's, whose @called then has none of them. 0 or -ENOMEM.
 */
int join_pair_hosts(struct run *run);
/* Return whether the service has the address @towards: it is bound to it, or its sampled exchanges came there. */
bool join_has_address(const struct run_service *service, const char *towards);
/*
 * nest.c: lay the exchanges of upstreams into those of their fronts, where both have samples. Of an upstream on another
 * host these are the calls that the front's own host has sampled. 0 or -ENOMEM.
 */
int join_nest(struct run *run);

#endif
