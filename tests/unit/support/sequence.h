/* SPDX-License-Identifier: MIT */
/* Fills a document's members for runs.c with numbers that all differ. */
#ifndef UNIT_SUPPORT_SEQUENCE_H
#define UNIT_SUPPORT_SEQUENCE_H

#include <stdlib.h>
#include <string.h>

#include "sojourn/run.h"

static inline void *need(void *pointer)
{
	if (!pointer)
		abort();
	return pointer;
}

static inline char *text(const char *string)
{
	return need(strdup(string));
}

/* Numbers that never repeat, and too small for misread memory. */
struct sequence {
	uint64_t last;
};

static inline uint64_t next(struct sequence *sequence)
{
	return ++sequence->last;
}

/* Set member by member, so that padding stays zero and structures can be compared as bytes. */
static inline void set_number(struct run_number *number, struct sequence *sequence)
{
	number->known = true;
	number->value = next(sequence);
}

static inline void set_counters(uint64_t *counters, size_t count, struct sequence *sequence)
{
	for (size_t i = 0; i < count; i++)
		counters[i] = next(sequence);
}

/* A sum beyond 2^53, which a double would round. */
static inline void set_histogram(struct histogram *h, struct sequence *sequence)
{
	histogram_record(h, next(sequence));
	histogram_record(h, 1000 * next(sequence));
	histogram_record(h, (1ULL << 55) + next(sequence));
}

#endif
