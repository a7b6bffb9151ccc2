// SPDX-License-Identifier: MIT
/* Compares the source ports that the run needs with those available. */
#include "preflight.h"

#include <errno.h>
#include <stdio.h>

#include "sojourn/clock.h"
#include "sojourn/units.h"

#define TEXT	 32
#define SENTENCE 128

static const char *number(uint64_t count, char text[static TEXT])
{
	return units_format_count(count, text, TEXT);
}

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
	char needed[TEXT], there[TEXT], sources[TEXT], used[TEXT], wait[SENTENCE] = "";

	number(p->connections, needed);
	number(all_ports(p), there);
	number(p->sources + divide_up(missing, p->ports), sources);
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
			needed, number(p->used, used), there, sources, wait);
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
	char there[TEXT], used[TEXT];
	int length = snprintf(text, SENTENCE, "%s source ports", number(all_ports(p), there));

	if (p->used)
		snprintf(text + length, SENTENCE - (size_t)length, ", %s of them in use now",
			 number(p->used, used));
}

static int tell_stall(const struct preflight *p, uint64_t opens, char **ret_text)
{
	uint64_t sustained = lasting_ports(p) / p->block_s;
	char rate[TEXT], there[SENTENCE], sources[TEXT], limit[TEXT], first[TEXT];

	tell_ports(p, there);
	if (opens)
		return asprintf(ret_text,
				"this run opens %s connections/s and has %s, each blocked for %u s "
				"after use (TIME_WAIT): it will stall after %.1f s; give %s source "
				"addresses (--source), keep connections alive, close by "
				"--close=rst, or stay below %s/s",
				number(opens, rate), there, (unsigned int)p->block_s,
				(double)free_ports(p) / (double)opens,
				number(divide_up(opens * p->block_s + p->held, p->ports), sources),
				number(sustained, limit));
	return asprintf(ret_text,
			"this run opens a connection for every %s and has %s, each blocked for %u "
			"s after use (TIME_WAIT): after %s it will go on at %s/s; give more source "
			"addresses (--source), keep connections alive, or close by --close=rst",
			p->policy.requests == 1 ? "request" : "few requests", there,
			(unsigned int)p->block_s, number(free_ports(p), first),
			number(sustained, limit));
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
