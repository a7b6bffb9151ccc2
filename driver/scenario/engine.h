/* SPDX-License-Identifier: MIT */
/* The steps of a scenario, carried out by the engines of their targets. */
#ifndef DRIVER_SCENARIO_ENGINE_H
#define DRIVER_SCENARIO_ENGINE_H

#include "engine/engine.h"

struct scenario;

/* A scenario's engine, prepared. */
struct scenario_engine {
	const struct engine *engine;
	void *shared;	       /* freed by engine->release() */
	uint32_t sockets;      /* maximum of servers that each client connects to */
	const char *unsampled; /* why no exchange is sampled, for people; NULL: some are */
};

/*
 * Prepare like engine->prepare(). @request: settings for all steps. A single step uses its target's
 * engine alone.
 */
int scenario_engine_prepare(struct scenario *scenario, const struct request *request,
			    const struct link_settings *link, struct scenario_engine *ret_engine,
			    char **ret_error);

/* Return @sockets of the engine, also before it is prepared. */
uint32_t scenario_servers(const struct scenario *scenario);

#endif
