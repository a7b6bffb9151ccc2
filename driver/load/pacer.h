/* SPDX-License-Identifier: MIT */
/*
 * Which slot sends next, and when that request was meant to leave: slots that rest, and requests that
 * are due. A request that finds no slot at rest waits, and keeps its intended start. Time comes in
 * as an argument: nothing here looks at a clock or a loop.
 */
#ifndef DRIVER_LOAD_PACER_H
#define DRIVER_LOAD_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule.h"

/* A slot at rest: until when it thinks (closed loop), or since when it is free (open loop). */
struct pacer_rest {
	uint64_t at_ns;
	uint32_t slot;
};

struct pacer {
	struct schedule_spec spec;
	struct schedule schedule;
	uint32_t sharer, sharers, slots;
	uint64_t random;
	uint32_t resting;	 /* number in rest[] */
	uint32_t first;		 /* open loop: rest[] is a ring from here */
	uint32_t returned;	 /* number in returned_ns[] */
	struct pacer_rest *rest; /* closed loop: a heap, the earliest on top */
	uint64_t absent_ns[2];	 /* from when to when nobody looked, the last time */
	uint64_t *returned_ns;	 /* requests that were taken and not sent: their intended starts */
};

/* A request to send now. */
struct pacer_due {
	uint32_t slot;
	uint64_t intended_ns;
	/* When it could have been sent: intended, and the slot at rest. Without a worker nobody knows what would rest. */
	uint64_t possible_ns;
};

/* -ENOMEM; pacer_close() takes a zeroed one. */
int pacer_open(struct pacer *pacer, const struct schedule_spec *spec, uint32_t sharer,
	       uint32_t sharers, uint32_t slots);
void pacer_close(struct pacer *pacer);

/* A phase begins: every slot is at rest, nothing waits. */
void pacer_begin(struct pacer *pacer, uint64_t now_ns);

/* The same without the shape of the rate: a phase before or after the measured one. */
void pacer_begin_level(struct pacer *pacer, uint64_t now_ns);

/* Whether a request is to be sent at @now_ns, and by which slot; the slot rests no more. */
bool pacer_take(struct pacer *pacer, uint64_t now_ns, struct pacer_due *ret_due);

/*
 * @slot had its response at @now_ns. True: a request is due, and @slot is to send it now. False: it is
 * at rest, or thinks.
 */
bool pacer_next(struct pacer *pacer, uint32_t slot, uint64_t now_ns, struct pacer_due *ret_due);

/* @slot may be used again, from now on. */
void pacer_rest(struct pacer *pacer, uint32_t slot, uint64_t now_ns);

/* A request that was taken could not be sent: it waits for another slot. */
void pacer_return(struct pacer *pacer, uint64_t intended_ns);

/*
 * The worker should have looked at @from_ns and does only at @to_ns: it was stopped, had no CPU, or was busy with
 * something else. What was due meanwhile is late by that.
 */
void pacer_absent(struct pacer *pacer, uint64_t from_ns, uint64_t to_ns);

/* When to call pacer_take() next; SCHEDULE_NEVER: not before a slot comes to rest. */
uint64_t pacer_wake_ns(const struct pacer *pacer);

/* Requests that were due before @stop_ns and found no slot at rest. */
uint64_t pacer_unsent(struct pacer *pacer, uint64_t stop_ns);

#endif
