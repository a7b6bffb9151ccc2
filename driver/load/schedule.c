// SPDX-License-Identifier: MIT
/* When requests are due. Neighbours: pacer.c (gives them to connections), payload/random.h. */
#include "schedule.h"

#include <math.h>

#include "payload/random.h"
#include "sojourn/clock.h"

const char *const schedule_arrival_names[3] = {
	[SCHEDULE_CLOSED] = "closed",
	[SCHEDULE_CONSTANT] = "constant",
	[SCHEDULE_POISSON] = "poisson",
};

const char *const schedule_think_names[2] = {
	[SCHEDULE_THINK_FIXED] = "fixed",
	[SCHEDULE_THINK_EXPONENTIAL] = "exponential",
};

/* Time between two requests of all sharers. */
static double interval_ns(const struct schedule_spec *spec)
{
	return (double)NSEC_PER_SEC / (double)spec->rate;
}

struct schedule_spec schedule_level(const struct schedule_spec *spec)
{
	struct schedule_spec level = *spec;

	if (!spec->shape.count)
		return level;
	level.shape.count = 0;
	level.rate = (uint64_t)fmax(1, spec->shape.segments[0].from);
	return level;
}

/* Return SCHEDULE_NEVER if the shape ends at 0. */
static uint64_t shaped_ns(const struct schedule *schedule, double number)
{
	double due_ns = shape_due_ns(&schedule->spec.shape, number);

	return isinf(due_ns) ? SCHEDULE_NEVER : schedule->begin_ns + (uint64_t)due_ns;
}

/* Compute from the index, not from the last arrival: rounding errors must not change the rate. */
static uint64_t constant_ns(const struct schedule *schedule)
{
	double number = (double)schedule->index * schedule->sharers + schedule->sharer;

	if (schedule->spec.shape.count)
		return shaped_ns(schedule, number);
	return schedule->begin_ns + (uint64_t)(number * interval_ns(&schedule->spec));
}

static void set_next(struct schedule *schedule)
{
	schedule->next_ns = SCHEDULE_NEVER;
	if (schedule->spec.arrival == SCHEDULE_CONSTANT) {
		schedule->next_ns = constant_ns(schedule);
	} else if (schedule->spec.arrival == SCHEDULE_POISSON && schedule->spec.shape.count) {
		schedule->number += random_exponential(&schedule->random, schedule->sharers);
		schedule->next_ns = shaped_ns(schedule, schedule->number);
	} else if (schedule->spec.arrival == SCHEDULE_POISSON) {
		schedule->elapsed_ns += random_exponential(
			&schedule->random, interval_ns(&schedule->spec) * schedule->sharers);
		schedule->next_ns = schedule->begin_ns + (uint64_t)schedule->elapsed_ns;
	}
}

void schedule_begin(struct schedule *schedule, const struct schedule_spec *spec, uint32_t sharer,
		    uint32_t sharers, uint64_t begin_ns)
{
	*schedule = (struct schedule){
		.spec = *spec,
		.sharer = sharer,
		.sharers = sharers,
		.begin_ns = begin_ns,
		.random = spec->seed + sharer * 0x632be59bd9b4e019ULL,
	};
	set_next(schedule);
}

void schedule_advance(struct schedule *schedule)
{
	schedule->index++;
	set_next(schedule);
}

uint64_t schedule_skip(struct schedule *schedule, uint64_t until_ns)
{
	uint64_t count = 0;

	for (; schedule->next_ns < until_ns; count++)
		schedule_advance(schedule);
	return count;
}

uint64_t schedule_think_ns(const struct schedule_spec *spec, uint64_t *random)
{
	if (spec->think == SCHEDULE_THINK_EXPONENTIAL)
		return (uint64_t)random_exponential(random, (double)spec->think_ns);
	return spec->think_ns;
}
