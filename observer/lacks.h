/* SPDX-License-Identifier: MIT */
/* Says which of the requested measurements this kernel refuses. With observe.h it belongs to the layer that logs. */
#ifndef OBSERVER_LACKS_H
#define OBSERVER_LACKS_H

#include "kernel/plan.h"
#include "options/options.h"

/* The exit code if the kernel or the user may not observe. */
#define EXIT_UNSUPPORTED 3

/*
 * Log what is missing. Return EXIT_SUCCESS, or EXIT_UNSUPPORTED if nothing can be observed as requested.
 * @cgroup_reason: why the services' cgroup is not known; empty if it is.
 */
int lacks_check(const struct plan *plan, const struct observe_options *options,
		const char *cgroup_reason);

#endif
