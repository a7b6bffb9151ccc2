/* SPDX-License-Identifier: MIT */
/* Limits of an agent, set on its own host: targets, rate, connections and time. */
#ifndef DRIVER_FLEET_AGENT_CEILINGS_H
#define DRIVER_FLEET_AGENT_CEILINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "options/options.h"

struct scenario;

/* Zeroed: everything is allowed. Strings are borrowed. */
struct ceilings {
	const char *allow; /* "10.0.0.0/8,host:80"; NULL: any target */
	uint64_t rate;	   /* requests per second; 0: any */
	uint32_t connections;
	uint64_t duration_ns; /* including warm-up and cool-down */
};

/* Check the list of @option, like that of --allow. -EINVAL with a sentence in @ret_error. */
int ceilings_check_list(const char *option, const char *list, char **ret_error);

struct sockaddr;

/* Return whether a checked list has this host or its address (IPv4 or IPv6). @port: host order. */
bool ceilings_list_has(const char *list, const char *host, uint16_t port,
		       const struct sockaddr *address);

/*
 * Under a limit of rate or connections, allow one agent per user and host, as each of several would
 * use the whole limit. *@ret_fd holds the claim; -1: no such limit. -EINVAL with @ret_error if
 * another agent still holds the claim after 2 s; another -errno.
 */
int ceilings_claim(const struct ceilings *ceilings, int *ret_fd, char **ret_error);

/*
 * Check a plan against the limits. @options have the agent's share, but the rate of the whole run.
 * -EINVAL with @ret_error, which names the limit and the requested value.
 */
int ceilings_check_load(const struct ceilings *ceilings, const struct options *options,
			const struct scenario *scenario, char **ret_error);

/* Return whether one of @members may send its share of the rate. */
bool ceilings_allow_rate(const struct ceilings *ceilings, const struct load_settings *load,
			 uint32_t members);

/*
 * Check the targets, and resolve their names to do so: every address of a name must be allowed.
 * Connects to none of them.
 */
int ceilings_check_targets(const struct ceilings *ceilings, const struct scenario *scenario,
			   char **ret_error);

/* Check the addresses chosen for the run: a name may have resolved differently meanwhile. */
int ceilings_check_addresses(const struct ceilings *ceilings, const struct scenario *scenario,
			     char **ret_error);

#endif
