/* SPDX-License-Identifier: MIT */
/*
 * The result of an agent, stored at the NATS server (JetStream), or else its last state and the
 * reason. It stays there until a coordinator has it. kept.h is the coordinator's side.
 *
 * Messages go to sojourn.kept.RUN.AGENT: a line of JSON, then a piece of the document. The server
 * acknowledges each; pieces may be stored twice.
 */
#ifndef DRIVER_FLEET_CHANNEL_KEEP_H
#define DRIVER_FLEET_CHANNEL_KEEP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "channel.h"
#include "nats/nats.h"
#include "relay.h"

/* Acknowledgements come to sojourn.to.AGENT.kept-NUMBER, or kept-RUN-NUMBER if there are several runs. */
#define KEEP_ANSWER "kept-"

/* A zeroed one is valid: nothing is kept. */
struct keep {
	struct nats *nats; /* NULL: not connected */
	bool on;
	char subject[RELAY_SUBJECT];
	char reply[RELAY_SUBJECT];
	struct nats_input lines;
	struct channel_document document; /* of which parts are missing */
	struct channel_document last;	  /* whole */
	bool final;			  /* the last one is the result */
	bool planned;			  /* the agent has its plan */
	bool stopped;			  /* it ends early, as its coordinator is gone */
	char *reason;			  /* why there is no result */
	/* The pieces: */
	bool storing;
	size_t piece;
	size_t count, missing;
	bool *stored;
	unsigned int steps; /* since the pieces were sent */
	unsigned int tries;
	char *failed; /* why it could not be stored */
};

/* Begin a run. The agent is known by its subject from now on. @kind: what the answers' numbers come after. */
void keep_begin(struct keep *keep, struct nats *nats, const char *run, const char *agent,
		const char *kind);
/* Use another connection; NULL: there is none for now. */
void keep_attach(struct keep *keep, struct nats *nats);
/* Announce the agent. The answer has the number 0: it may store what it is to store. */
void keep_announce(struct keep *keep, const char *name);
/* Look at what the agent sends to its coordinator. */
void keep_take(struct keep *keep, const char *bytes, size_t length);
/* Store this text, which is copied, as the result. -ENOMEM. */
int keep_put(struct keep *keep, const char *text, size_t length);
/* The agent has ended, and sends nothing more. */
void keep_finish(struct keep *keep, const char *reason);
/* The coordinator has no use for more than is being stored. */
void keep_cancel(struct keep *keep);
/* An acknowledgement, or the server's reason against it. */
void keep_answer(struct keep *keep, size_t number, const json_t *answer);
/* Call it twice a second: what is not acknowledged is sent again. */
void keep_step(struct keep *keep);
/* Return whether nothing is left to do. */
bool keep_is_over(const struct keep *keep);
void keep_clear(struct keep *keep);

#endif
