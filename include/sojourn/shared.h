/* SPDX-License-Identifier: MIT */
/* The time in which all of several drivers measured, for their common rate. */
#ifndef SOJOURN_SHARED_H
#define SOJOURN_SHARED_H

#include "sojourn/run.h"

struct run_shared {
	/* The drivers began or ended apart, by 1 % of driver->duration_ns or more. */
	bool apart;
	/*
	 * The time that all of them share, in whole intervals, and the responses in it. Not known (false)
	 * without a whole interval, or if a driver has no intervals (a lost member). Those of all drivers
	 * have to begin within 1 % of an interval.
	 */
	bool known;
	uint64_t duration_ns;
	uint64_t requests;
};

struct run_shared run_driver_shared(const struct run_driver *driver);

#endif
