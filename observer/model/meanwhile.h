/* SPDX-License-Identifier: MIT */
/*
 * A task between the steps of long work in the same thread. A reading of many services takes long, and a health check
 * may not wait for it.
 */
#ifndef OBSERVER_MODEL_MEANWHILE_H
#define OBSERVER_MODEL_MEANWHILE_H

#include <stdint.h>

#include "sojourn/clock.h"

/* The least time between the end of a task and its next begin. */
#define MEANWHILE_NS (5 * NSEC_PER_MSEC)

/* Zeroed it is valid, and does nothing. */
struct meanwhile {
	void (*task)(void *context); /* does nothing that needs what the long work changes */
	void *context;
	uint64_t ended_ns;
};

static inline void meanwhile_set(struct meanwhile *meanwhile, void (*task)(void *context),
				 void *context)
{
	*meanwhile = (struct meanwhile){.task = task, .context = context};
}

/* Call it after each step of at most some milliseconds. It runs the task if MEANWHILE_NS are over. */
static inline void meanwhile_run(struct meanwhile *meanwhile)
{
	if (!meanwhile->task || clock_now_ns() - meanwhile->ended_ns < MEANWHILE_NS)
		return;
	meanwhile->task(meanwhile->context);
	meanwhile->ended_ns = clock_now_ns();
}

#endif
