/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive agent`: one member of a fleet. Its standard input and output are the channel to
 * the coordinator (channel.h). It takes one plan, runs it when the coordinator says so, and ends
 * with the channel.
 */
#ifndef DRIVER_FLEET_AGENT_AGENT_H
#define DRIVER_FLEET_AGENT_AGENT_H

#include "ceilings.h"

/*
 * Return 0 once the channel has ended, also without a plan or after a failed run; -errno if there
 * was nothing to serve it with.
 */
int agent_run(const struct ceilings *ceilings);

#endif
