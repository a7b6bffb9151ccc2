// SPDX-License-Identifier: MIT
/*
 * Every member knows the whole schedule, and members take turns in it. So a deal is only a number:
 * the first request from which fewer members take turns. See load/schedule.h.
 */
#include "deal.h"

#include <stdio.h>
#include <stdlib.h>

#include "fleet/agent/ceilings.h"
#include "sojourn/clock.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

static bool takes_part(const struct member *member)
{
	return member->state == MEMBER_RUNNING && !member->stopped;
}

static uint32_t count_parts(const struct member *members, uint32_t count)
{
	uint32_t parts = 0;

	for (uint32_t i = 0; i < count; i++)
		parts += takes_part(&members[i]);
	return parts;
}

/* Return how long after the start of the measured phase the others take over; 0: from its start. */
static uint64_t after_ns(struct member *members, uint32_t count, uint64_t at_ns)
{
	uint64_t begin_ns = at_ns; /* when the last member began to measure; 0: still warming up */
	uint64_t then_ns;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t own_ns = member_begin_ns(&members[i]);

		begin_ns = own_ns > begin_ns ? own_ns : begin_ns;
	}
	then_ns = clock_wall_ns() + member_lead_ns(members, count);
	return begin_ns && then_ns > begin_ns ? then_ns - begin_ns : 0;
}

static void add_note(struct member *lost, const char *note)
{
	char *reason = lost->reason ? text_format("%s; %s", lost->reason, note) : NULL;

	if (!reason)
		return;
	free(lost->reason);
	lost->reason = reason;
}

/* Return a member whose --max-rate is below one of @parts of the rate; NULL: none. */
static const struct member *find_too_low(const struct member *members, uint32_t count,
					 const struct load_settings *load, uint32_t parts)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct ceilings ceilings = {.rate = members[i].max_rate};

		if (takes_part(&members[i]) && !ceilings_allow_rate(&ceilings, load, parts))
			return &members[i];
	}
	return NULL;
}

static void deal(struct member *members, uint32_t count, uint64_t number, uint32_t parts)
{
	uint32_t index = 0;

	for (uint32_t i = 0; i < count; i++)
		if (takes_part(&members[i]))
			member_deal(&members[i], number, index++, parts);
}

void deal_again(struct member *members, uint32_t count, struct member *lost,
		const struct load_settings *load, uint64_t at_ns)
{
	uint64_t then_ns = after_ns(members, count, at_ns); /* may lose more of them */
	uint32_t parts = count_parts(members, count);
	const struct member *low = find_too_low(members, count, load, parts ? parts : 1);
	char note[256], time[32];

	if (!load->schedule.rate || load->requests || !parts ||
	    (load->duration_ns && then_ns >= load->duration_ns))
		return;
	if (low) {
		snprintf(note, sizeof(note), "no member took over its share: --max-rate of %.100s",
			 low->name);
	} else {
		deal(members, count, schedule_number(&load->schedule, then_ns), parts);
		if (then_ns)
			units_format_duration((double)then_ns, time, sizeof(time));
		else
			snprintf(time, sizeof(time), "its begin");
		snprintf(note, sizeof(note), "the others have its share of the rate from %s on",
			 time);
	}
	add_note(lost, note);
}
