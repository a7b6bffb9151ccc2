// SPDX-License-Identifier: MIT
/* Source ports that the run needs, and those it has. Neighbour: limits.c (what this host allows). */
#include "preflight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sojourn/units.h"

#define TEXT 32

static const char *number(uint64_t count, char text[static TEXT])
{
	return units_format_count(count, text, TEXT);
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return b ? a / b + (a % b != 0) : 0;
}

static int tell_too_few(const struct preflight *p, char **ret_text)
{
	char needed[TEXT], there[TEXT], sources[TEXT];

	return asprintf(ret_text,
			"this run needs %s source ports and has %s: the connections beyond will "
			"wait; give %s source addresses (--source) or fewer connections",
			number(p->connections, needed), number(p->ports * p->sources, there),
			number(divide_up(p->connections, p->ports), sources));
}

/* Each connection that this side closes first blocks its port for a while. */
static int tell_stall(const struct preflight *p, char **ret_text)
{
	uint64_t ports = p->ports * p->sources, sustained = ports / p->block_s;
	char rate[TEXT], there[TEXT], sources[TEXT], limit[TEXT];

	if (p->rate)
		return asprintf(
			ret_text,
			"this run opens %s connections/s and has %s source ports, each "
			"blocked for %u s after use (TIME_WAIT): it will stall after %.1f s; "
			"give %s source addresses (--source), keep connections alive, or "
			"stay below %s/s",
			number(p->rate, rate), number(ports, there), (unsigned int)p->block_s,
			(double)ports / (double)p->rate,
			number(divide_up(p->rate * p->block_s, p->ports), sources),
			number(sustained, limit));
	return asprintf(
		ret_text,
		"this run opens a connection per request and has %s source ports, each "
		"blocked for %u s after use (TIME_WAIT): after so many it will go on at %s/s; "
		"give more source addresses (--source) or keep connections alive",
		number(ports, there), (unsigned int)p->block_s, number(sustained, limit));
}

int preflight_check(const struct preflight *p, char **ret_text)
{
	uint64_t ports = p->ports * p->sources;
	int length = 0;

	*ret_text = NULL;
	if (!ports)
		return 0;
	if (p->connections > ports)
		length = tell_too_few(p, ret_text);
	else if (p->new_connections && p->block_s >= PREFLIGHT_TIME_WAIT_S &&
		 (!p->rate || p->rate * p->block_s > ports) &&
		 (!p->requests || p->requests > ports))
		length = tell_stall(p, ret_text);
	return length < 0 ? -ENOMEM : 0;
}
