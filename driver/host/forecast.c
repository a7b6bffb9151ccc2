// SPDX-License-Identifier: MIT
/*
 * Collects the input of preflight.c. Neighbours: port_count.c, transport/host_limits.c, main.c
 * (logs).
 */
#include "forecast.h"

#include <string.h>

#include "engine/engine.h"
#include "explain.h"
#include "transport/host_limits.h"
#include "port_count.h"
#include "preflight.h"
#include "sojourn/clock.h"

/* Count ports held towards the target by others or an earlier run; on failure none. */
static void look(const struct link_settings *link, const struct target *target, uint32_t range,
		 struct preflight *preflight)
{
	struct port_fullest now;

	if (port_count_towards(target, &link->sources, range, &now))
		return;
	preflight->held = now.used - now.time_wait;
	/* Ports in TIME_WAIT that are reused at once count as free. */
	preflight->used = preflight->block_s < PREFLIGHT_TIME_WAIT_S ? preflight->held : now.used;
}

/* @share of @of requests go to this target. */
static int check(const struct link_settings *link, const struct load_settings *load,
		 const struct target *target, size_t share, size_t of, char **ret_text)
{
	uint32_t range = limits_port_range();
	struct preflight preflight = {
		.ports = limits_ports(range),
		.sources = source_addresses(&link->sources),
		.connections = load->connections,
		.policy = link->policy,
		.rate = load->schedule.rate,
		.requests = load->requests,
		.block_s = explain_time_wait_s(target),
	};

	if (target->address.ss_family == AF_UNSPEC)
		return 0;
	if (load->schedule.rate && !load->requests &&
	    __builtin_mul_overflow(load->schedule.rate, load->duration_ns / NSEC_PER_SEC + 1,
				   &preflight.requests))
		preflight.requests = UINT64_MAX;
	preflight.rate = preflight.rate * share / of;
	preflight.requests = preflight.requests / of * share;
	preflight.policy.reset |= engine_has(target->engine, ENGINE_DATAGRAMS); /* no TIME_WAIT */
	look(link, target, range, &preflight);
	return preflight_check(&preflight, ret_text);
}

int forecast_ports(const struct link_settings *link, const struct load_settings *load,
		   const struct target *const *targets, size_t count, char **ret_text)
{
	const struct target *busiest = NULL;
	size_t most = 0;

	*ret_text = NULL;
	/* Ports are counted per destination: the busiest one decides. */
	for (size_t i = 0; i < count; i++) {
		const char *name = engine_has(targets[i]->engine, ENGINE_ADDRESSED)
					   ? targets[i]->authority
					   : NULL;
		size_t same = 0;

		for (size_t j = 0; name && j < count; j++)
			same += targets[j]->authority && !strcmp(targets[j]->authority, name);
		if (same > most) {
			most = same;
			busiest = targets[i];
		}
	}
	return busiest ? check(link, load, busiest, most, count, ret_text) : 0;
}
