/* SPDX-License-Identifier: MIT */
/* The live view of a fleet: the sum of the members' latest documents, once a second. */
#ifndef DRIVER_FLEET_VIEW_H
#define DRIVER_FLEET_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "load/load_settings.h"
#include "member.h"
#include "result.h"
#include "run/drive.h"
#include "run/progress.h"

/* The owner initialises @tick on its loop, and closes it. The rest is borrowed. */
struct fleet_view {
	uv_timer_t tick;
	struct progress progress;
	bool measured; /* a member has sent counts of its measured phase */
	struct member *members;
	uint32_t count;
	uint32_t parts; /* how many members take part, the first ones */
	const struct fleet_sum *sum;
	const struct load_settings *load;
	/* Called between two documents, as reading all of them takes seconds. */
	void (*between)(void *user);
	void *user;
};

/* Begin to show a run of @what. */
void fleet_view_open(struct fleet_view *view, const struct run_settings *run, const char *what);
/* Show the run that begins at @at_ns, by the coordinator's wall clock. */
void fleet_view_start(struct fleet_view *view, uint64_t at_ns, uint64_t warmup_ns);
void fleet_view_stop(struct fleet_view *view);
void fleet_view_close(struct fleet_view *view);

#endif
