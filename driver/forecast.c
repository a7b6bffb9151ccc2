// SPDX-License-Identifier: MIT
/* Gathers what preflight.c reckons with. Neighbours: port_count.c, host_limits.c, main.c (tells it). */
#include "forecast.h"

#include <string.h>

#include "explain.h"
#include "host_limits.h"
#include "port_count.h"
#include "preflight.h"
#include "scenario.h"
#include "sojourn/clock.h"

uint32_t forecast_connections(const struct options *options)
{
	const struct ladder *ladder = &options->ladder;

	if (options->command != COMMAND_SWEEP || ladder->of_rates)
		return options->connections;
	return (uint32_t)ladder->loads[ladder->count - 1];
}

/* The largest number if the product is larger. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Ports that others, or a run before, have towards the target. What cannot be asked for is taken as free. */
static void look(const struct options *options, const struct target *target, uint32_t range,
		 struct preflight *preflight)
{
	struct port_fullest now;

	if (port_count_towards(target, &options->sources, range, &now))
		return;
	preflight->held = now.used - now.time_wait;
	/* Those that are reused at once are as good as free. */
	preflight->used = preflight->block_s < PREFLIGHT_TIME_WAIT_S ? preflight->held : now.used;
}

/* @share: of the requests, how many in @of are for this target. */
static int check(const struct options *options, const struct target *target, size_t share,
		 size_t of, char **ret_text)
{
	uint32_t range = limits_port_range();
	struct preflight preflight = {
		.ports = limits_ports(range),
		.sources = source_addresses(&options->sources),
		.connections = forecast_connections(options),
		.policy = options->policy,
		.rate = options->schedule.rate,
		.requests = options->requests,
		.block_s = explain_time_wait_s(target),
	};

	if (target->address.ss_family == AF_UNSPEC)
		return 0;
	if (options->schedule.rate && !options->requests)
		preflight.requests =
			multiply(options->schedule.rate, options->duration_ns / NSEC_PER_SEC + 1);
	preflight.rate = preflight.rate * share / of;
	preflight.requests = preflight.requests / of * share;
	preflight.policy.reset |= engine_find(target->scheme)->datagrams; /* no TIME_WAIT */
	look(options, target, range, &preflight);
	return preflight_check(&preflight, ret_text);
}

/* Whether it is known how a scenario's requests are divided between its servers. */
static bool is_divided_evenly(const struct drive_job *job)
{
	const struct scenario *scenario = job->options->scenario;

	return scenario && (scenario->order == SCENARIO_CYCLE || job->sockets == 1);
}

/* Several steps or targets: ports are counted per destination, so that the one asked most often decides. */
static int check_busiest(const struct options *options, char **ret_text)
{
	const struct scenario *scenario = options->scenario;
	const struct target *busiest = NULL;
	size_t most = 0;

	for (size_t i = 0; i < scenario->step_count; i++) {
		const struct target *target = &scenario->steps[i].target;
		size_t count = 0;

		for (size_t j = 0; j < scenario->step_count; j++)
			count += !strcmp(scenario->steps[j].target.authority, target->authority);
		if (engine_find(target->scheme)->addressed && count > most) {
			most = count;
			busiest = target;
		}
	}
	return busiest ? check(options, busiest, most, scenario->step_count, ret_text) : 0;
}

int forecast_ports(const struct drive_job *job, char **ret_text)
{
	*ret_text = NULL;
	if (job->engine->addressed)
		return check(job->options, job->target, 1, 1, ret_text);
	return is_divided_evenly(job) ? check_busiest(job->options, ret_text) : 0;
}
