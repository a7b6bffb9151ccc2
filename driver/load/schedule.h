/* SPDX-License-Identifier: MIT */
/*
 * When requests are due: pure functions of a specification, a start time and a random state, so
 * that tests need no clock. Several sharers (workers) together keep the whole rate: constant
 * arrivals interleave, Poisson ones superpose.
 */
#ifndef DRIVER_LOAD_SCHEDULE_H
#define DRIVER_LOAD_SCHEDULE_H

#include <stdatomic.h>
#include <stdint.h>

#include "shape.h"

#define SCHEDULE_NEVER UINT64_MAX

enum schedule_arrival {
	SCHEDULE_CLOSED, /* a connection's next request follows its last response */
	SCHEDULE_CONSTANT,
	SCHEDULE_POISSON,
};

enum schedule_think {
	SCHEDULE_THINK_FIXED,
	SCHEDULE_THINK_EXPONENTIAL,
};

/*
 * Changes in which driver sends which requests, made while the load runs. From request @number of
 * the whole run on, @count drivers take turns, and this one has turn @index. One thread appends to
 * the list, and the workers read it.
 */
#define SCHEDULE_DEALS 256U
struct schedule_deals {
	_Atomic uint32_t count;
	struct schedule_deal {
		uint64_t number;
		uint32_t index, count;
	} list[SCHEDULE_DEALS];
};

struct schedule_spec {
	enum schedule_arrival arrival;
	uint64_t rate;		   /* requests per second, of all sharers; 0 if closed */
	struct shape shape;	   /* of the rate over time, whose mean is @rate */
	uint64_t think_ns;	   /* closed: mean time from a response to the next request */
	enum schedule_think think; /* closed */
	uint64_t seed;
	const struct schedule_deals *deals; /* NULL: the sharers never change */
	uint32_t thread, threads; /* with @deals: the sharer's thread in this driver, of how many */
};

/* Names as on the command line and in the run document. */
extern const char *const schedule_arrival_names[3];
extern const char *const schedule_think_names[2];

/* Make it an open loop of this constant mean rate; Poisson arrivals stay. */
void schedule_set_rate(struct schedule_spec *spec, uint64_t rate);

/* Return the same load without its shape, at the shape's initial rate, but 1/s at least. */
struct schedule_spec schedule_level(const struct schedule_spec *spec);

/* Open loop: the successive arrivals of one sharer. */
struct schedule {
	struct schedule_spec spec;
	uint32_t sharer; /* from 0 */
	uint32_t sharers;
	uint64_t begin_ns;
	uint64_t index;
	double number;	/* of the next request; Poisson: its time in mean intervals */
	double last;	/* @number of the previous request; -1: none */
	uint32_t dealt; /* deals applied so far */
	uint64_t random;
	uint64_t next_ns; /* when the next request is due; SCHEDULE_NEVER if closed */
};

/* Nothing is due before @begin_ns. */
void schedule_begin(struct schedule *schedule, const struct schedule_spec *spec, uint32_t sharer,
		    uint32_t sharers, uint64_t begin_ns);

/* Return the number of the first request due @after_ns or more after the start. */
uint64_t schedule_number(const struct schedule_spec *spec, uint64_t after_ns);

/* Apply deals that have arrived since the last call. The next request may become due earlier. */
void schedule_follow(struct schedule *schedule);

/* Advance next_ns by one request. */
void schedule_advance(struct schedule *schedule);

/* Skip requests due before @until_ns, from next_ns on. Return how many. */
uint64_t schedule_skip(struct schedule *schedule, uint64_t until_ns);

/* Closed loop: return the next think time. */
uint64_t schedule_think_ns(const struct schedule_spec *spec, uint64_t *random);

#endif
