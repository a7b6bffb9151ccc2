// SPDX-License-Identifier: MIT
/* Sums of the parts of exchanges. */
#include "sojourn/run.h"

static void add_number(struct run_number *sum, const struct run_number *number)
{
	if (!number->known)
		return;
	sum->known = true;
	sum->value += number->value;
}

void run_parts_add(struct run_parts *sum, const struct run_parts *parts)
{
	sum->wait_ns += parts->wait_ns;
	sum->round_trip_ns += parts->round_trip_ns;
	sum->network_ns += parts->network_ns;
	sum->overhang_ns += parts->overhang_ns;
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		add_number(&sum->stages[i], &parts->stages[i]);
	add_number(&sum->running_ns, &parts->running_ns);
	add_number(&sum->runnable_ns, &parts->runnable_ns);
	add_number(&sum->blocked_ns, &parts->blocked_ns);
}
