// SPDX-License-Identifier: MIT
/* When requests are due. Neighbours: pacer.c (gives them to connections), payload/random.h. */
#include "schedule.h"

#include <math.h>

#include "payload/random.h"
#include "share.h"
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

void schedule_set_rate(struct schedule_spec *spec, uint64_t rate)
{
	spec->rate = rate;
	spec->think_ns = 0;
	if (spec->arrival == SCHEDULE_CLOSED)
		spec->arrival = SCHEDULE_CONSTANT;
}

struct schedule_spec schedule_level(const struct schedule_spec *spec)
{
	struct schedule_spec level = *spec;

	level.deals = NULL; /* they number the requests of the measured phase */
	if (!spec->shape.count)
		return level;
	level.shape.count = 0;
	level.rate = (uint64_t)fmax(1, spec->shape.segments[0].from);
	return level;
}

/* Return SCHEDULE_NEVER if the shape ends at 0. */
static uint64_t due_ns(const struct schedule *schedule)
{
	const struct schedule_spec *spec = &schedule->spec;
	double due_ns = spec->shape.count ? shape_due_ns(&spec->shape, schedule->number)
					  : schedule->number * interval_ns(spec);

	return isinf(due_ns) ? SCHEDULE_NEVER : schedule->begin_ns + (uint64_t)due_ns;
}

/* Compute from the index, not from the last arrival: rounding errors must not change the rate. */
static void set_constant(struct schedule *schedule)
{
	schedule->number = (double)schedule->index * schedule->sharers + schedule->sharer;
}

static void set_poisson(struct schedule *schedule, double from)
{
	schedule->number = from + random_exponential(&schedule->random, schedule->sharers);
}

static const struct schedule_deal *pending_deal(const struct schedule *schedule)
{
	const struct schedule_deals *deals = schedule->spec.deals;

	return deals && schedule->dealt < atomic_load(&deals->count) ? &deals->list[schedule->dealt]
								     : NULL;
}

/* A deal may arrive after the sharer has passed its number: continue after the last request. */
static void take_deal(struct schedule *schedule, const struct schedule_deal *deal)
{
	const struct schedule_spec *spec = &schedule->spec;
	double first = (double)deal->number;
	double from = schedule->last < first ? first : schedule->last + 1;

	schedule->dealt++;
	schedule->sharers = deal->count * spec->threads;
	schedule->sharer = share_sharer(deal->index, deal->count, spec->thread);
	if (spec->arrival == SCHEDULE_POISSON) {
		set_poisson(schedule, fmax(first, schedule->last));
		return;
	}
	schedule->index =
		(uint64_t)ceil(fmax(from - schedule->sharer, 0) / (double)schedule->sharers);
	set_constant(schedule);
}

static void set_next(struct schedule *schedule)
{
	const struct schedule_deal *deal;

	schedule->next_ns = SCHEDULE_NEVER;
	if (schedule->spec.arrival == SCHEDULE_CLOSED)
		return;
	while ((deal = pending_deal(schedule)) && schedule->number >= (double)deal->number)
		take_deal(schedule, deal);
	schedule->next_ns = due_ns(schedule);
}

static void step(struct schedule *schedule)
{
	if (schedule->spec.arrival == SCHEDULE_CONSTANT)
		set_constant(schedule);
	else if (schedule->spec.arrival == SCHEDULE_POISSON)
		set_poisson(schedule, fmax(schedule->last, 0));
	set_next(schedule);
}

void schedule_begin(struct schedule *schedule, const struct schedule_spec *spec, uint32_t sharer,
		    uint32_t sharers, uint64_t begin_ns)
{
	*schedule = (struct schedule){
		.spec = *spec,
		.sharer = sharer,
		.sharers = sharers,
		.begin_ns = begin_ns,
		.last = -1,
		.random = spec->seed + sharer * 0x632be59bd9b4e019ULL,
	};
	step(schedule);
}

uint64_t schedule_number(const struct schedule_spec *spec, uint64_t after_ns)
{
	if (spec->shape.count)
		return (uint64_t)ceil(shape_count(&spec->shape, (double)after_ns));
	return (uint64_t)ceil((double)after_ns / interval_ns(spec));
}

void schedule_follow(struct schedule *schedule)
{
	if (pending_deal(schedule))
		set_next(schedule);
}

void schedule_advance(struct schedule *schedule)
{
	schedule->last = schedule->number;
	schedule->index++;
	step(schedule);
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
