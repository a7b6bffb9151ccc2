/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive fleet`: one run by the drivers of several hosts. A command reaches each host and
 * starts an agent there (agent.c). The command's standard input and output are the channel
 * (channel.h).
 */
#ifndef DRIVER_FLEET_FLEET_H
#define DRIVER_FLEET_FLEET_H

#include "fleet_options.h"
#include "options/options.h"
#include "scenario/scenario.h"
#include "sojourn/run.h"

/*
 * Check that the run can be divided between the hosts, so that bad usage is reported before
 * anything starts. Return as refuse().
 */
int fleet_check(const struct fleet_options *fleet, const struct options *options, char **ret_error);

/*
 * Carry out the run. @options are those of the whole run, already checked. Return 0 with the
 * document of all members, including lost ones. -EINVAL with a reason in @ret_error if nothing was
 * measured; other -errno.
 */
int fleet_run(const struct fleet_options *fleet, const struct options *options,
	      const struct scenario *scenario, char **command, struct run **ret_run,
	      char **ret_error);

#endif
