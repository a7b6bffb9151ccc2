/* SPDX-License-Identifier: MIT */
/* How much load, and when. */
#ifndef DRIVER_LOAD_LOAD_SETTINGS_H
#define DRIVER_LOAD_LOAD_SETTINGS_H

#include <stdint.h>

#include "schedule.h"
#include "shape.h"

/* Which of several drivers this is, if they make one load together. Zeroed: it is alone. */
struct load_member {
	uint32_t index;
	uint32_t count;
	uint32_t connections; /* of all of them */
	const struct schedule_deals *deals;
};

/*
 * Strings are borrowed. Rate and ramp are those of all members; connections and requests are the
 * share of this one.
 */
struct load_settings {
	struct load_member member;
	uint32_t connections; /* maximum at any time */
	struct shape ramp;    /* of the connections, closed loop; without segments: constant */
	const char *connections_text;
	uint64_t duration_ns; /* 0: until @requests are done */
	uint64_t requests;    /* 0: until @duration_ns is over */
	uint64_t warmup_ns;
	uint64_t cooldown_ns;
	uint64_t interval_ns;
	struct schedule_spec schedule;
	const char *rate_text; /* --rate as given */
};

#endif
