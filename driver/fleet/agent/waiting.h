/* SPDX-License-Identifier: MIT */
/*
 * The common part of the agents that wait at a NATS server (standby.c, lookout.c). It has a key, a
 * name, and a loop with signals, and connects again when the connection is lost. Messages for a run go
 * to the subject sojourn.from.RUN.AGENT, and come by sojourn.to.AGENT.RUN.
 */
#ifndef DRIVER_FLEET_AGENT_WAITING_H
#define DRIVER_FLEET_AGENT_WAITING_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "fleet/channel/relay.h"
#include "fleet_options.h"

#define WAITING_STEP_MS 500U
/* For the last messages to leave. */
#define WAITING_LEAVE_MS 2000U
#define WAITING_ASKER	 200

struct waiting_owner {
	void *user;
	const char *to_all; /* the subject of messages to all such agents */
	/* The server has let it in, and it has subscribed. */
	void (*opened)(void *user);
	void (*message)(void *user, const char *subject, const char *payload, size_t length);
	/* The connection has ended; @final: it is over, otherwise another is tried at the next step. */
	void (*lost)(void *user, bool final);
	/* WAITING_STEP_MS have passed. Return whether a lost connection is still wanted. */
	bool (*step)(void *user);
	/* A signal, which @reason names, has ended it; @again: it was over already. */
	void (*ended)(void *user, bool again, const char *reason);
	/* Return whether there are runs: then it goes on until waiting_leave(), even if it is over. */
	bool (*is_busy)(void *user);
};

struct waiting {
	const struct agent_options *options;
	struct waiting_owner owner;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_signal_t signals[2];
	struct nats *nats; /* NULL: not connected */
	bool was_open;
	char *failed; /* why it ends, or why the last connection did */
	bool over;
	char agent[SECRET_LENGTH + 1];
	char name[RELAY_NAME_MAX + 1];
};

/*
 * Wait until it is over and not busy, then let the last messages leave, and close all handles of its
 * loop. The caller has set @options and @owner, and the rest to 0. Return 0 after a signal. -EINVAL with
 * a sentence in @ret_error: the server cannot be used. Other -errno.
 */
int waiting_run(struct waiting *waiting, char **ret_error);
/* End the loop if it is over and not busy. */
void waiting_leave(struct waiting *waiting);

/* The subject of messages to the driver of @run. */
void waiting_address(const struct waiting *waiting, const char *run,
		     char ret_subject[static RELAY_SUBJECT]);
/*
 * `sojourn-drive agent --fleet`: waits for coordinators, and starts an agent (agent.c) for each run, one
 * at a time, whose standard input and output are relayed. Return as waiting_run(), or after the one
 * run of --once.
 */
int standby_run(const struct agent_options *options, char **ret_error);

#define LOOKOUT_TO_ALL	 "sojourn.to.observers"
#define LOOKOUT_FROM_ALL "sojourn.from.observers"

/*
 * `sojourn-drive agent --fleet URL --observer URL`: waits beside the observer, and marks there the
 * phases of runs whose targets the observer sees. lookout.c has the messages. Return as waiting_run().
 */
int lookout_run(const struct agent_options *options, char **ret_error);

/* Send @message to it, and free that. Without a connection it is lost. */
void waiting_answer(const struct waiting *waiting, const char *run, json_t *message);

#endif
