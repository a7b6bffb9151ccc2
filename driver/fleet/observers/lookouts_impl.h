/* SPDX-License-Identifier: MIT */
/* The group of observers over NATS, as its two threads share it: lookouts.c and lookouts_link.c. */
#ifndef DRIVER_FLEET_OBSERVERS_LOOKOUTS_IMPL_H
#define DRIVER_FLEET_OBSERVERS_LOOKOUTS_IMPL_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "fleet/channel/relay.h"
#include "lookouts.h"
#include "sight.h"

#define LOOKOUTS_STEP_MS 100U
#define LOOKOUTS_REASON	 512

enum sees {
	SEES_LOOKING, /* its host has a target's address, and the observer was asked */
	SEES_SOME,
	SEES_BLIND, /* its host has a target's address, but it cannot observe */
	SEES_NONE,
};

/* Phases in their order: an agent in an order of its own (…ING) is asked again until it answers. */
enum mark {
	MARK_NONE,
	MARK_BEGINNING,
	MARK_BEGUN,
	MARK_ENDING,
	MARK_FETCHING,
	MARK_FETCHED,
	MARK_FAILED,
	MARK_DROPPING,
};

/* An agent that has answered. */
struct lookout_heard {
	char agent[SECRET_LENGTH + 1];
	char name[RELAY_NAME_MAX + 1];
	enum sees sees;
	uint64_t targets; /* bits */
	bool late;	  /* it answered when the phase had begun */
	enum mark mark;
	unsigned int silent; /* steps since its last answer, while asked */
	char *text;	     /* the document */
	size_t length, have;
	char reason[LOOKOUTS_REASON];
};

/* @lock guards all but the first members, which do not change. The thread holds it in callbacks. */
struct observer_group {
	const struct lookouts_settings *settings;
	struct patience patience;
	struct sight_targets targets;
	char run[SECRET_LENGTH + 1];
	char kept[SECRET_LENGTH + 1]; /* see observer.h; empty: results are not kept */
	bool borrowed;		      /* another coordinator's: it may still be there */
	pthread_t thread;
	bool threaded;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_async_t wake;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct nats *nats; /* NULL: not connected */
	bool open;
	bool was_open;
	char *failed; /* why the connection has ended; NULL: it has not */
	bool calling; /* for agents */
	bool leaving;
	unsigned int steps, open_steps, leaving_steps;
	struct lookout_heard **heard;
	size_t heard_count;
	json_int_t number; /* of the phase */
	bool marked;	   /* it has begun and not ended */
};

/* Return the order that an agent with @mark has not answered yet; NULL: there is none. */
const char *lookouts_order(enum mark mark);
/* Return a bit for each target. */
uint64_t lookouts_targets(const struct observer_group *group);
/* Return the agent, which is added if it is new and has a name. NULL: it is not there. */
struct lookout_heard *lookouts_hear(struct observer_group *group, const char *agent,
				    const char *name);
/* Give up the phase of one. */
void lookouts_fail(struct lookout_heard *heard, const char *reason);

/* Start the thread, which connects. 0 or -errno. */
int lookouts_link_open(struct observer_group *group);
/* Let the agents forget the run, and wait for the end of the thread. */
void lookouts_link_close(struct observer_group *group);

#endif
