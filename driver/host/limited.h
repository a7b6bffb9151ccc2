/* SPDX-License-Identifier: MIT */
/* Decides whether the driver itself, not the server, was the bottleneck of a run. */
#ifndef DRIVER_HOST_LIMITED_H
#define DRIVER_HOST_LIMITED_H

#include "sojourn/run.h"

/*
 * Set driver->limited if a rule says so; the rest of @driver is filled in already. @cpu_span_ns:
 * span of the measured CPU time, longer than the phase if requests ended after it. -ENOMEM.
 */
int limited_fill(struct run_driver *driver, uint64_t cpu_span_ns);

#endif
