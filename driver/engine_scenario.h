/* SPDX-License-Identifier: MIT */
/* The steps of a scenario, carried out by the engines of their targets. */
#ifndef DRIVER_ENGINE_SCENARIO_H
#define DRIVER_ENGINE_SCENARIO_H

#include "engine.h"

struct scenario;

/* Not in the table: no URL is its. options->scenario is what it prepares. */
extern const struct engine engine_scenario;

/* How many servers each client has a connection to, at most. */
uint32_t engine_scenario_connections(const void *shared);
/* The same before anything is prepared. */
uint32_t engine_scenario_servers(const struct scenario *scenario);

/* Why none of its servers' exchanges are sampled, for people; NULL: some are. */
const char *engine_scenario_unsampled(const void *shared);

#endif
