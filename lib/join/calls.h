/* SPDX-License-Identifier: MIT */
/* The sampled calls of a front to an upstream on another host; see calls.c. */
#ifndef LIB_JOIN_CALLS_H
#define LIB_JOIN_CALLS_H

#include "match.h"

/* Of a call whose exchange is not known. */
#define JOIN_NOT_PAIRED UINT64_MAX

struct join_calls {
	struct run_samples *sent; /* copies of those that go to the upstream */
	uint64_t *
		there_ns; /* of each: its time there until the response began, or JOIN_NOT_PAIRED */
	/* Of all calls to the upstream, sampled or not. */
	uint64_t answered;
	uint64_t hidden; /* answered, and not timed */
	uint64_t failed;
	uint64_t uncut; /* connections */
	uint64_t older; /* connections whose calls have no number */
};

/* Fill @ret_calls and @ret_pairs. 0 or -ENOMEM. */
int join_calls_open(const struct run_service *front, const struct run_service *upstream,
		    struct run_call_pairs *ret_pairs, struct join_calls *ret_calls);
void join_calls_close(struct join_calls *calls);

#endif
