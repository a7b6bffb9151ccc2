/* SPDX-License-Identifier: MIT */
/* Whether the driver itself, not the server, was the bottleneck of a finished run. */
#ifndef DRIVER_HOST_LIMITED_H
#define DRIVER_HOST_LIMITED_H

#include "sojourn/run.h"

/*
 * Sets driver->limited, all else of it being filled in, if a rule says so. @cpu_span_ns: the time in which its
 * CPU time was taken; longer than the phase if requests were waited for after it. -ENOMEM.
 */
int limited_fill(struct run_driver *driver, uint64_t cpu_span_ns);

#endif
