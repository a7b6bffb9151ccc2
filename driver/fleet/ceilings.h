/* SPDX-License-Identifier: MIT */
/* What an agent does not go beyond, whoever asks: targets, rate, connections, time. */
#ifndef DRIVER_FLEET_CEILINGS_H
#define DRIVER_FLEET_CEILINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "options/options.h"

struct scenario;

/* Zeroed: everything is allowed. Strings are borrowed. */
struct ceilings {
	const char *allow; /* "10.0.0.0/8,host:80"; NULL: any target */
	uint64_t rate;	   /* requests per second; 0: any */
	uint32_t connections;
	uint64_t duration_ns; /* with warm-up and cool-down */
};

/* Whether the list of --allow can be understood. -EINVAL with a sentence in @ret_error. */
int ceilings_check_list(const char *allow, char **ret_error);

/*
 * With a ceiling of the rate or of connections a user has one agent here at a time: several would each have it all. *@ret_fd holds that place, -1: it takes none. -EINVAL with a sentence in @ret_error: another one has
 * had it for some seconds. Another -errno.
 */
int ceilings_claim(const struct ceilings *ceilings, int *ret_fd, char **ret_error);

/*
 * Whether a plan stays below them; @options have the agent's own share, but for the rate. -EINVAL with a sentence in
 * @ret_error that names the ceiling and what was asked for.
 */
int ceilings_check_load(const struct ceilings *ceilings, const struct options *options,
			const struct scenario *scenario, char **ret_error);

/* Whether one of so many members may have its part of the rate. */
bool ceilings_allow_rate(const struct ceilings *ceilings, const struct load_settings *load,
			 uint32_t members);

/*
 * The same of the targets, whose names are looked up for it: every address that a name has must be allowed.
 * Without a connection to any of them.
 */
int ceilings_check_targets(const struct ceilings *ceilings, const struct scenario *scenario,
			   char **ret_error);

/* The same of the addresses that were chosen for the run, whoever answered for the names by then. */
int ceilings_check_addresses(const struct ceilings *ceilings, const struct scenario *scenario,
			     char **ret_error);

#endif
