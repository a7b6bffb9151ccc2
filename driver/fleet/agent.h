/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive agent`: one member of a fleet. Standard input and output are its channel to the coordinator, see
 * channel.h; it takes one plan, runs it when it is told to, and ends with the channel.
 */
#ifndef DRIVER_FLEET_AGENT_H
#define DRIVER_FLEET_AGENT_H

#include "ceilings.h"

/* Returns the exit status' errno: 0 once the channel has ended, whatever became of the run. */
int agent_run(const struct ceilings *ceilings);

#endif
