/* SPDX-License-Identifier: MIT */
/* Limits of an agent, set on its own host: targets, rate, connections and time. */
#ifndef DRIVER_FLEET_CEILINGS_H
#define DRIVER_FLEET_CEILINGS_H

#include <stdint.h>

#include "load/load_settings.h"

struct scenario;

/* Zeroed: everything is allowed. Strings are borrowed. */
struct ceilings {
	const char *allow; /* "10.0.0.0/8,host:80"; NULL: any target */
	uint64_t rate;	   /* requests per second; 0: any */
	uint32_t connections;
	uint64_t duration_ns; /* including warm-up and cool-down */
};

/* Check the list of --allow. -EINVAL with a sentence in @ret_error. */
int ceilings_check_list(const char *allow, char **ret_error);

/*
 * Check a plan against the limits. @load is the agent's share, but has the rate of the whole run.
 * -EINVAL with @ret_error, which names the limit and the requested value.
 */
int ceilings_check_load(const struct ceilings *ceilings, const struct load_settings *load,
			char **ret_error);

/*
 * Check the targets, and resolve their names to do so: every address of a name must be allowed.
 * Connects to none of them.
 */
int ceilings_check_targets(const struct ceilings *ceilings, const struct scenario *scenario,
			   char **ret_error);

#endif
