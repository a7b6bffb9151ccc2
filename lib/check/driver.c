// SPDX-License-Identifier: MIT
/* Rules about the driver's counts, and about a sweep. */
#include "rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/sweep.h"

/* ---- responses ---- */

/* The common counts of the whole driver and its rows. */
struct counts {
	uint64_t requests, drained;
	const uint64_t *status, *errors;
	const struct histogram *round_trip, *response_time;
};

static void responses(struct checking *checking, const char *place, const struct counts *c)
{
	check_same(checking, place, "the sum of status", run_counts_sum(c->status, 6), "requests",
		   c->requests);
	check_same(checking, place, "round_trip.count", c->round_trip->count, "requests",
		   c->requests);
	if (c->response_time->count)
		check_same(checking, place, "response_time.count", c->response_time->count,
			   "requests", c->requests);
	check_at_most(checking, place, "drained", c->drained, "requests", c->requests);
	check_at_most(checking, place, "errors.status", c->errors[RUN_ERROR_STATUS], "requests",
		      c->requests);
	check_at_most(checking, place, "errors.unexpected", c->errors[RUN_ERROR_UNEXPECTED],
		      "requests", c->requests);
}

static struct counts counts_of_row(const struct run_row *row)
{
	return (struct counts){
		.requests = row->requests,
		.drained = row->drained,
		.status = row->status,
		.errors = row->errors,
		.round_trip = &row->round_trip,
		.response_time = &row->response_time,
	};
}

static void rows_respond(struct checking *checking, const struct run_row_list *rows,
			 const char *kind)
{
	char place[CHECK_PLACE];

	for (size_t i = 0; i < rows->count; i++) {
		struct counts counts = counts_of_row(&rows->list[i]);

		snprintf(place, sizeof(place), "driver.%s[%zu]", kind, i);
		responses(checking, place, &counts);
	}
}

void check_responses(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;
	struct counts counts;

	if (!driver)
		return;
	counts = (struct counts){
		.requests = driver->requests,
		.drained = driver->drained,
		.status = driver->status,
		.errors = driver->errors,
		.round_trip = &driver->round_trip,
		.response_time = &driver->response_time,
	};
	responses(checking, "driver", &counts);
	for (unsigned int by = 0; by < RUN_ROWS_COUNT; by++)
		rows_respond(checking, &driver->rows[by], run_rows_names[by]);
	check_same(checking, "driver", "connect.count", driver->connect.count, "connects",
		   driver->connects);
	if (driver->scheduled)
		check_at_most(checking, "driver", "unsent", driver->unsent, "scheduled",
			      driver->scheduled);
}

static void nest(struct checking *checking, const char *inner_name, const struct histogram *inner,
		 const char *outer_name, const struct histogram *outer)
{
	char place[CHECK_PLACE];

	if (!inner->count || inner->count != outer->count)
		return;
	snprintf(place, sizeof(place), "driver.%s and driver.%s", inner_name, outer_name);
	check_at_most(checking, place, "the first sum_ns", inner->sum, "the second", outer->sum);
	check_at_most(checking, place, "the first max_ns", inner->max, "the second", outer->max);
}

void check_latencies(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;

	if (!driver)
		return;
	nest(checking, "first_byte", &driver->first_byte, "round_trip", &driver->round_trip);
	nest(checking, "round_trip", &driver->round_trip, "response_time", &driver->response_time);
}

/* Late responses may exceed the phase, and so may those of several drivers. */
void check_driver_length(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;

	if (!driver || driver->drained || driver->part_count)
		return;
	check_at_most(checking, "driver", "round_trip.max_ns", driver->round_trip.max,
		      "duration_ns", driver->duration_ns);
	check_at_most(checking, "driver", "response_time.max_ns", driver->response_time.max,
		      "duration_ns", driver->duration_ns);
}

/* ---- lists ---- */

static uint64_t failures_of(const struct run_driver *driver, const char *kind)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < driver->failure_count; i++)
		if (!strcmp(driver->failures[i].kind, kind))
			sum += driver->failures[i].count;
	return sum;
}

void check_failures(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;
	char name[64];

	if (!driver)
		return;
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++) {
		snprintf(name, sizeof(name), "errors.%s", run_error_names[i]);
		check_same(checking, "driver", "that in failures",
			   failures_of(driver, run_error_names[i]), name, driver->errors[i]);
	}
	for (size_t i = 0; i < driver->failure_count; i++)
		check_at_most(checking, driver->failures[i].kind, "first_ns",
			      driver->failures[i].first_ns, "last_ns", driver->failures[i].last_ns);
}

static void interval(struct checking *checking, const struct run_interval *part, uint64_t end_ns)
{
	check_same(checking, "driver.intervals", "begin_ns", part->begin_ns,
		   "the end of the one before", end_ns);
	check_same(checking, "driver.intervals", "latency.count", part->latency.count, "requests",
		   part->requests);
}

/*
 * Maximum time for a driver to notice the end of its phase, on a busy machine. If it slept for longer, its schedule
 * shows that.
 */
#define NOTICING_NS (100 * NSEC_PER_MSEC)

/*
 * Return how many of @count requests, or connections for them, may be in no interval: those in
 * flight when the driver noticed the end.
 */
static uint64_t beyond(const struct run_driver *driver, uint64_t count)
{
	double noticing_ns = fmax((double)NOTICING_NS, (double)driver->schedule_delay.max);
	double passed = driver->duration_ns
				? (double)count * noticing_ns / (double)driver->duration_ns
				: (double)count;

	return (uint64_t)driver->connections * (driver->streams ? driver->streams : 1) +
	       (uint64_t)fmin(passed, (double)count);
}

static void in_intervals(struct checking *checking, const char *sum_name, uint64_t sum,
			 const char *all_name, uint64_t all)
{
	uint64_t most = sum + beyond(checking->run->driver, all);

	check_at_most(checking, "driver.intervals", sum_name, sum, all_name, all);
	check_at_most(checking, "driver.intervals", all_name, all,
		      "that sum and what was under way", most);
}

/* Merged intervals need not end with the phase: each has the length of the drivers' longest. */
void check_intervals(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;
	uint64_t end_ns = 0, requests = 0, connects = 0;

	if (!driver || !driver->interval_count)
		return;
	for (size_t i = 0; i < driver->interval_count; i++) {
		const struct run_interval *part = &driver->intervals[i];

		interval(checking, part, end_ns);
		end_ns = part->begin_ns + part->duration_ns;
		requests += part->requests;
		connects += part->connects;
	}
	in_intervals(checking, "the sum of requests", requests, "driver.requests",
		     driver->requests);
	in_intervals(checking, "the sum of connects", connects, "driver.connects",
		     driver->connects);
	if (!driver->part_count)
		check_same(checking, "driver.intervals", "the end of the last", end_ns,
			   "driver.duration_ns", driver->duration_ns);
}

/*
 * Every request belongs to a step and to a target. Statuses are HTTP's: responses of other
 * protocols have none and count as `other`.
 */
static void rows(struct checking *checking, const struct run_driver *driver, enum run_rows_by by)
{
	const struct run_row_list *list = &driver->rows[by];
	uint64_t without = by == RUN_ROWS_STATUS ? driver->status[0] : 0;
	uint64_t requests = 0, sum_ns = 0, errors = 0;
	char place[CHECK_PLACE];

	if (!list->count)
		return;
	for (size_t i = 0; i < list->count; i++) {
		requests += list->list[i].requests;
		sum_ns += list->list[i].round_trip.sum;
		errors += run_row_errors(&list->list[i]);
	}
	snprintf(place, sizeof(place), "driver.%s", run_rows_names[by]);
	check_at_most(checking, place, "the sum of requests", requests, "driver.requests",
		      driver->requests);
	check_at_most(checking, place, "driver.requests", driver->requests,
		      without ? "the sum of requests + driver.status.other" : "the sum of requests",
		      requests + without);
	check_at_most(checking, place, "the sum of errors", errors, "driver's",
		      run_driver_errors(driver));
	if (requests == driver->requests)
		check_same(checking, place, "the sum of round_trip.sum_ns", sum_ns,
			   "driver.round_trip.sum_ns", driver->round_trip.sum);
}

void check_rows(struct checking *checking)
{
	for (enum run_rows_by by = 0; checking->run->driver && by < RUN_ROWS_COUNT; by++)
		rows(checking, checking->run->driver, by);
}

void check_drivers_parts(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;
	uint64_t requests = 0, drained = 0, errors = 0, latency = 0;

	if (!driver || !driver->part_count)
		return;
	for (size_t i = 0; i < driver->part_count; i++) {
		requests += driver->parts[i].requests;
		drained += driver->parts[i].drained;
		errors += driver->parts[i].errors;
		latency += driver->parts[i].latency.count;
	}
	check_same(checking, "driver.parts", "the sum of requests", requests, "driver.requests",
		   driver->requests);
	check_same(checking, "driver.parts", "the sum of drained", drained, "driver.drained",
		   driver->drained);
	check_same(checking, "driver.parts", "the sum of errors", errors, "driver's",
		   run_driver_errors(driver));
	check_same(checking, "driver.parts", "the sum of latencies", latency, "driver.requests",
		   driver->requests);
}

/* A document of a fleet may be merged with others, whose requests are no member's. */
void check_members(struct checking *checking)
{
	const struct run_driver *driver = checking->run->driver;
	uint64_t requests = 0;

	if (!driver || !driver->member_count)
		return;
	for (size_t i = 0; i < driver->member_count; i++)
		requests += driver->members[i].requests;
	check_at_most(checking, "driver.members", "the sum of requests", requests,
		      "driver.requests", driver->requests);
}

/* ---- sweep ---- */

static void step(struct checking *checking, const char *place, const struct run_sweep_step *step)
{
	uint64_t requests = 0;

	check_same(checking, place, "latency.count", step->latency.count, "requests",
		   step->requests);
	check_at_most(checking, place, "drained", step->drained, "requests", step->requests);
	if (step->good.known)
		check_at_most(checking, place, "good", step->good.value, "requests",
			      step->requests);
	for (size_t i = 0; i < step->target_count; i++)
		requests += step->targets[i].requests;
	if (step->target_count)
		check_same(checking, place, "the sum of targets' requests", requests, "requests",
			   step->requests);
	requests = 0;
	for (size_t i = 0; i < step->member_count; i++)
		requests += step->members[i].requests;
	if (step->member_count)
		check_same(checking, place, "the sum of members' requests", requests, "requests",
			   step->requests);
}

void check_sweep(struct checking *checking)
{
	const struct run_sweep *sweep = checking->run->sweep;
	char place[CHECK_PLACE];

	for (size_t i = 0; sweep && i < sweep->step_count; i++) {
		snprintf(place, sizeof(place), "sweep.steps[%zu]", i);
		step(checking, place, &sweep->steps[i]);
	}
	if (sweep && sweep->three_quarters)
		step(checking, "sweep.three_quarters", sweep->three_quarters);
}
