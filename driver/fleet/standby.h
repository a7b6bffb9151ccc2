/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive agent --fleet`: waits at a NATS server for coordinators, and starts an agent
 * (agent.c) for each run, one at a time. The agent's standard input and output are relayed.
 */
#ifndef DRIVER_FLEET_STANDBY_H
#define DRIVER_FLEET_STANDBY_H

#include "fleet_options.h"

/*
 * Return 0 after a signal, or the one run of --once. -EINVAL with a sentence in @ret_error: the
 * server cannot be used. Other -errno.
 */
int standby_run(const struct agent_options *options, char **ret_error);

#endif
