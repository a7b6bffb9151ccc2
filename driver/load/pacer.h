/* SPDX-License-Identifier: MIT */
/*
 * Matches resting slots with due requests. A request without a resting slot waits and keeps its
 * intended start. Time is an argument: nothing here reads a clock or a loop.
 */
#ifndef DRIVER_LOAD_PACER_H
#define DRIVER_LOAD_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule.h"

/* A resting slot. @at_ns: end of its think time (closed loop), or when it became free (open). */
struct pacer_rest {
	uint64_t at_ns;
	uint32_t slot;
};

struct pacer {
	struct schedule_spec spec;
	struct schedule schedule;
	uint32_t sharer, sharers, slots;
	uint64_t random;
	uint32_t resting;	 /* entries in rest[] */
	uint32_t first;		 /* open loop: start of the ring rest[] */
	uint32_t returned;	 /* entries in returned_ns[] */
	struct pacer_rest *rest; /* closed loop: a heap, earliest first */
	uint64_t absent_ns[2];	 /* last absence of the worker: its start and end */
	uint64_t *returned_ns;	 /* intended starts of requests taken but not sent */
};

/* A request to send now. */
struct pacer_due {
	uint32_t slot;
	uint64_t intended_ns;
	/*
	 * Intended start, or when a slot was free if that is later. During an absence of the worker
	 * only the intended start counts.
	 */
	uint64_t possible_ns;
};

/* -ENOMEM; pacer_close() takes a zeroed one. */
int pacer_open(struct pacer *pacer, const struct schedule_spec *spec, uint32_t sharer,
	       uint32_t sharers, uint32_t slots);
void pacer_close(struct pacer *pacer);

/* Begin a phase: every slot rests, nothing waits. */
void pacer_begin(struct pacer *pacer, uint64_t now_ns);

/* Begin a phase outside the measured one: without the rate's shape. */
void pacer_begin_level(struct pacer *pacer, uint64_t now_ns);

/* Return whether a request is due at @now_ns, and which slot sends it and rests no more. */
bool pacer_take(struct pacer *pacer, uint64_t now_ns, struct pacer_due *ret_due);

/*
 * Note that @slot had its response. Return true if it is to send a due request now; otherwise it
 * rests or thinks.
 */
bool pacer_next(struct pacer *pacer, uint32_t slot, uint64_t now_ns, struct pacer_due *ret_due);

/* Let @slot be used again. */
void pacer_rest(struct pacer *pacer, uint32_t slot, uint64_t now_ns);

/* Give back a request that was taken but not sent: it waits for another slot. */
void pacer_return(struct pacer *pacer, uint64_t intended_ns);

/*
 * Note that the worker was absent from @from_ns to @to_ns: stopped, busy, or without a CPU. Delays
 * of requests due meanwhile are its own.
 */
void pacer_absent(struct pacer *pacer, uint64_t from_ns, uint64_t to_ns);

/* Return when to call pacer_take() next; SCHEDULE_NEVER: not before a slot rests. */
uint64_t pacer_wake_ns(const struct pacer *pacer);

/* Return how many requests were due before @stop_ns without a resting slot. */
uint64_t pacer_unsent(struct pacer *pacer, uint64_t stop_ns);

#endif
