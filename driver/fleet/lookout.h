/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive agent --fleet URL --observer URL`: the way to an observer over NATS. It waits at a
 * NATS server beside the observer, and marks there the phases of runs whose targets the observer sees.
 *
 * Subjects: sojourn.to.observers (a run describes its targets), sojourn.to.AGENT.RUN (likewise, and orders),
 * sojourn.from.RUN.AGENT (answers), sojourn.from.observers.AGENT (an agent says that it is there).
 * Payloads are as relay.h has them. An order that was not answered is repeated, and a repeated one
 * changes nothing, so that lost messages do no harm.
 *
 * Orders: begin, end, part (of the document), drop, keep, leave. Answers: unseen, looking, sees,
 * blind, gone; working, begun, ended, failed, part. Phases of a run are numbered.
 */
#ifndef DRIVER_FLEET_LOOKOUT_H
#define DRIVER_FLEET_LOOKOUT_H

#include "fleet_options.h"

#define LOOKOUT_TO_ALL	 "sojourn.to.observers"
#define LOOKOUT_FROM_ALL "sojourn.from.observers"

/* Wait until a signal. Errors as standby_run(). */
int lookout_run(const struct agent_options *options, char **ret_error);

#endif
