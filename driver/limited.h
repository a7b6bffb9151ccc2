/* SPDX-License-Identifier: MIT */
/* Whether the driver itself, not the server, was the bottleneck of a finished run. */
#ifndef DRIVER_LIMITED_H
#define DRIVER_LIMITED_H

#include "sojourn/run.h"

/* Sets driver->limited, all else of it being filled in, if a rule says so. -ENOMEM. */
int limited_fill(struct run_driver *driver);

#endif
