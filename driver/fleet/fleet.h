/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive fleet`: one run by the drivers of several hosts. Each is an agent (agent.c) behind a command that
 * reaches its host; its standard input and output are the channel (channel.h).
 */
#ifndef DRIVER_FLEET_FLEET_H
#define DRIVER_FLEET_FLEET_H

#include "fleet_options.h"
#include "options/options.h"
#include "scenario/scenario.h"
#include "sojourn/run.h"

/* Whether the run can be divided between the hosts: bad usage is told before anything is started. As refuse(). */
int fleet_check(const struct fleet_options *fleet, const struct options *options, char **ret_error);

/*
 * Carries the run out. 0 with the document of all members, also of those that were lost. -EINVAL with a reason in
 * @ret_error if there was nothing to measure; another -errno. @options are those of the whole run, checked.
 */
int fleet_run(const struct fleet_options *fleet, const struct options *options,
	      const struct scenario *scenario, char **command, struct run **ret_run,
	      char **ret_error);

#endif
