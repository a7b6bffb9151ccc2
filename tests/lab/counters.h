/* SPDX-License-Identifier: MIT */
/* The server's counters, which are always kept, and their summary. */
#ifndef LAB_COUNTERS_H
#define LAB_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

enum counter {
	COUNTER_ACCEPTED,
	COUNTER_EXCHANGES,    /* at least one byte of a response was written */
	COUNTER_INCOMPLETE,   /* of these: the response was not written completely */
	COUNTER_BAD_REQUESTS, /* of these: answered with an error */
	COUNTER_UNANSWERED,   /* a request, or a part of one, without a byte of response */
	COUNTER_BYTES_IN,
	COUNTER_BYTES_OUT,
	COUNTER_CLOSED_BY_SERVER, /* the server's FIN came first */
	COUNTER_CLOSED_BY_CLIENT, /* the client's FIN came first */
	COUNTER_RESET_BY_SERVER,
	COUNTER_RESET_BY_CLIENT,
	COUNTER_CLOSED_AT_EXIT, /* still open at the stop */
	COUNTER_LEAKED,		/* descriptors, on request */
	COUNTER_ACCEPT_ERRORS,	/* accept() calls that failed: EMFILE, ENFILE, … */
	COUNTER_TRUTH_DROPPED,	/* exchanges not in the truth file: limit or memory */
	COUNTER_COUNT
};

/* One per process, in memory that forked workers share with their parent. */
struct counters {
	_Alignas(64) _Atomic uint64_t values[COUNTER_COUNT];
};

static inline void counters_add(struct counters *counters, enum counter counter, uint64_t amount)
{
	atomic_fetch_add_explicit(&counters->values[counter], amount, memory_order_relaxed);
}

struct summary {
	const char *protocol;
	const char *model;
	int pid;
	unsigned int workers; /* number of counters */
	struct counters *counters;
};

/*
 * Write the sums as JSON by replacing a regular file, so that readers never see a part. 0 or
 * -errno.
 */
int counters_write_summary(const struct summary *summary, const char *path);

#endif
