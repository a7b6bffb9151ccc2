// SPDX-License-Identifier: MIT
/* Compares the source ports that the run needs with those available. */
#include "preflight.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "explain.h"
#include "port_count.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"
#include "transport/host_limits.h"

#define SENTENCE 128

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return b ? a / b + (a % b != 0) : 0;
}

static uint64_t all_ports(const struct preflight *p)
{
	return p->ports * p->sources;
}

static uint64_t free_ports(const struct preflight *p)
{
	return p->used < all_ports(p) ? all_ports(p) - p->used : 0;
}

/* Return the ports available in the long run: those in TIME_WAIT become free again. */
static uint64_t lasting_ports(const struct preflight *p)
{
	return p->held < all_ports(p) ? all_ports(p) - p->held : 0;
}

static int tell_too_few(const struct preflight *p, char **ret_text)
{
	uint64_t missing = p->connections - free_ports(p);
	const char *needed = as_count(p->connections), *there = as_count(all_ports(p));
	const char *sources = as_count(p->sources + divide_up(missing, p->ports));
	char wait[SENTENCE] = "";

	if (!p->used)
		return asprintf(ret_text,
				"this run needs %s source ports and has %s: the connections beyond "
				"will wait; give %s source addresses (--source) or fewer "
				"connections",
				needed, there, sources);
	if (p->used > p->held)
		snprintf(wait, sizeof(wait), ", wait %u s (TIME_WAIT),", PREFLIGHT_TIME_WAIT_S);
	return asprintf(ret_text,
			"this run needs %s source ports, and %s of %s are in use now: the "
			"connections beyond will wait; give %s source addresses (--source)%s or "
			"fewer connections",
			needed, as_count(p->used), there, sources, wait);
}

/* Return how many connections the policy opens per second; 0: as many as possible. */
static uint64_t opens_per_s(const struct preflight *p)
{
	const struct connection_policy *policy = &p->policy;
	uint64_t opens = 0;

	if (policy->requests)
		opens = divide_up(p->rate, policy->requests);
	if (policy->lifetime_ns && (opens || !policy->requests))
		opens += divide_up(p->connections * NSEC_PER_SEC, policy->lifetime_ns);
	if (policy->connect_rate && (!opens || opens > policy->connect_rate))
		opens = policy->connect_rate;
	return opens;
}

/* Return whether connections that the driver closes first exhaust the ports, each blocking one. */
static bool is_going_to_stall(const struct preflight *p, uint64_t opens)
{
	const struct connection_policy *policy = &p->policy;

	if (policy->reset || p->block_s < PREFLIGHT_TIME_WAIT_S)
		return false;
	if (!policy->requests && !policy->lifetime_ns)
		return false;
	if (opens && opens * p->block_s <= lasting_ports(p))
		return false;
	return policy->lifetime_ns || !p->requests ||
	       divide_up(p->requests, policy->requests) > free_ports(p);
}

/* "501 source ports, 450 of them in use now" */
static void tell_ports(const struct preflight *p, char text[static SENTENCE])
{
	int length = snprintf(text, SENTENCE, "%s source ports", as_count(all_ports(p)));

	if (p->used)
		snprintf(text + length, SENTENCE - (size_t)length, ", %s of them in use now",
			 as_count(p->used));
}

static int tell_stall(const struct preflight *p, uint64_t opens, char **ret_text)
{
	uint64_t sustained = lasting_ports(p) / p->block_s;
	char there[SENTENCE];

	tell_ports(p, there);
	if (opens)
		return asprintf(ret_text,
				"this run opens %s connections/s and has %s, each blocked for %u s "
				"after use (TIME_WAIT): it will stall after %.1f s; give %s source "
				"addresses (--source), keep connections alive, close by "
				"--close=rst, or stay below %s/s",
				as_count(opens), there, (unsigned int)p->block_s,
				(double)free_ports(p) / (double)opens,
				as_count(divide_up(opens * p->block_s + p->held, p->ports)),
				as_count(sustained));
	return asprintf(ret_text,
			"this run opens a connection for every %s and has %s, each blocked for %u "
			"s after use (TIME_WAIT): after %s it will go on at %s/s; give more source "
			"addresses (--source), keep connections alive, or close by --close=rst",
			p->policy.requests == 1 ? "request" : "few requests", there,
			(unsigned int)p->block_s, as_count(free_ports(p)), as_count(sustained));
}

int preflight_check(const struct preflight *p, char **ret_text)
{
	uint64_t opens = opens_per_s(p);
	int length = 0;

	*ret_text = NULL;
	if (!p->ports)
		return 0;
	if (p->connections > free_ports(p))
		length = tell_too_few(p, ret_text);
	else if (is_going_to_stall(p, opens))
		length = tell_stall(p, opens, ret_text);
	return length < 0 ? -ENOMEM : 0;
}

/* ---- the figures of this host ---- */

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
