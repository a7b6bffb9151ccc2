/* SPDX-License-Identifier: MIT */
/* The steps of a scenario, carried out by the engines of their targets. */
#ifndef DRIVER_SCENARIO_ENGINE_H
#define DRIVER_SCENARIO_ENGINE_H

#include "engine/engine.h"
#include "run/drive.h"

struct scenario;

/*
 * Prepare the job's engine like engine->prepare(), by its link. @request: settings for all steps. A
 * single step uses its target's engine alone.
 */
int scenario_engine_prepare(struct scenario *scenario, const struct request *request,
			    struct drive_job *job, char **ret_error);

/* Return @sockets of the job, also before it is prepared. */
uint32_t scenario_servers(const struct scenario *scenario);

#endif
