/* SPDX-License-Identifier: MIT */
/* The steps of a scenario, carried out by the engines of their targets. */
#ifndef DRIVER_SCENARIO_ENGINE_H
#define DRIVER_SCENARIO_ENGINE_H

#include "engine/engine.h"

struct scenario;

/* What carries a scenario out. */
struct scenario_engine {
	const struct engine *engine;
	void *shared;	       /* engine->release() frees it */
	uint32_t sockets;      /* servers that each client has a connection to, at most */
	const char *unsampled; /* why no exchange is sampled, for people; NULL: some are */
};

/*
 * As engine->prepare(). @request: what is not of a step, but of all. What has one target only is carried
 * out by the engine of that.
 */
int scenario_engine_prepare(struct scenario *scenario, const struct request *request,
			    const struct link_settings *link, struct scenario_engine *ret_engine,
			    char **ret_error);

/* The sockets before anything is prepared. */
uint32_t scenario_servers(const struct scenario *scenario);

#endif
