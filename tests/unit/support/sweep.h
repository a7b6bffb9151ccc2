/* SPDX-License-Identifier: MIT */
/* A sweep with every member set, all numbers different; for runs.c. */
#ifndef UNIT_SUPPORT_SWEEP_H
#define UNIT_SUPPORT_SWEEP_H

#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "sojourn/sweep.h"

static inline void support_fill_sweep_member(struct run_sweep_step *step, uint32_t from)
{
	struct run_fleet_member *member = calloc(1, sizeof(*member));

	if (!member)
		abort();
	step->members = member;
	step->member_count = 1;
	member->host = strdup("client");
	member->connections = from;
	member->rate = from + 1;
	member->requests = from + 2;
	if (run_add_text(&member->sources, "10.0.0.1-10.0.0.9"))
		abort();
	member->limited = strdup("its loop was late");
	member->clock_offset_ns = (struct run_signed){true, -(int64_t)from - 3};
	member->clock_uncertainty_ns = (struct run_number){true, from + 4};
	member->start_skew_ns = (struct run_number){true, from + 5};
	member->lost = true;
	member->reason = strdup("its process ended");
}

static inline void support_fill_sweep_step(struct run_sweep_step *step, uint32_t from)
{
	step->load = from;
	step->warmup_ns = from + 1;
	step->duration_ns = from + 2;
	step->requests = from + 3;
	step->drained = from + 60;
	step->good = (struct run_number){true, from + 13};
	step->errors = from + 4;
	step->unsent = from + 5;
	step->attempts = from + 6;
	step->steady = true;
	step->first_throughput = (struct run_number){true, from + 16};
	step->server_exchanges.known = step->server_duration_ns.known = true;
	step->server_exchanges.value = from + 7;
	step->server_duration_ns.value = from + 8;
	step->limited = strdup("cpu");
	for (uint64_t i = 1; i <= from; i++)
		histogram_record(&step->latency, i * 1000);
	step->targets = calloc(2, sizeof(*step->targets));
	if (!step->targets)
		abort();
	for (; step->target_count < 2; step->target_count++) {
		struct run_sweep_target *target = &step->targets[step->target_count];

		target->name = strdup(step->target_count ? "http://b/" : "http://a/");
		target->requests = from + 9 + 2 * step->target_count;
		target->drained = from + 61 + step->target_count;
		target->errors = from + 10 + 2 * step->target_count;
		target->good = (struct run_number){true, from + 14 + step->target_count};
		histogram_record(&target->latency, from);
	}
	support_fill_sweep_member(step, from + 2200);
}

static inline void support_fill_sweep(struct run *run)
{
	struct run_sweep *sweep = calloc(1, sizeof(*sweep));

	if (!sweep)
		abort();
	run->sweep = sweep;
	sweep->target = strdup("http://127.0.0.1:8080/");
	sweep->method = strdup("GET");
	sweep->over = strdup("rate");
	sweep->connections = 41;
	for (uint32_t i = 0; i < 2; i++) {
		struct run_sweep_step *step = ARRAY_APPEND(sweep->steps, sweep->step_count);

		if (!step)
			abort();
		support_fill_sweep_step(step, 1900 + 20 * i);
	}
	sweep->plateau.known = sweep->knee.known = sweep->misfit_per_mille.known = true;
	sweep->plateau.value = 42;
	sweep->knee.value = 43;
	sweep->misfit_per_mille.value = 44;
	sweep->unfitted = strdup("it still grew");
	sweep->resumed = strdup("after 2 of 4 steps");
	sweep->stopped = strdup("more load only queues");
	sweep->three_quarters = calloc(1, sizeof(*sweep->three_quarters));
	if (!sweep->three_quarters)
		abort();
	support_fill_sweep_step(sweep->three_quarters, 1940);
}

#endif
