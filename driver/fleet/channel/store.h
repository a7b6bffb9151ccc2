/* SPDX-License-Identifier: MIT */
/*
 * The results of runs that a NATS server stores (JetStream), for a coordinator. Each call waits for
 * its answer, some seconds at most. keep.h is the agents' side and has the messages.
 */
#ifndef DRIVER_FLEET_CHANNEL_STORE_H
#define DRIVER_FLEET_CHANNEL_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "nats/nats.h"
#include "sojourn/cleanup.h"

/* Of all runs together, if nobody has set other limits. */
#define STORE_AGE_HOURS 24U
#define STORE_BYTES	(256U << 20)

struct store;

struct store_owner {
	void *user;
	/* An agent of the run says this. NULL: not wanted. */
	void (*heard)(void *user, const char *agent, const json_t *message);
	/* Called four times a second at least while a call waits. NULL: not wanted. */
	void (*waits)(void *user);
};

/*
 * Connect, for the run of this key. -EINVAL with a sentence in @ret_error, without a subject; other
 * -errno. *@ret_store is to be closed also then.
 */
int store_open(const struct nats_settings *settings, const char *run,
	       const struct store_owner *owner, struct store **ret_store, char **ret_error);
/*
 * Make the place where results are stored, unless it exists. *@ret_age_ns: the server deletes what
 * is older; 0: nothing. Errors as above.
 */
int store_prepare(struct store *store, uint64_t *ret_age_ns, char **ret_error);
/* Store a document under the name of an agent. Errors as above. */
int store_put(struct store *store, const char *name, const char *text, char **ret_error);

/* One message. A zeroed one is valid. */
struct store_message {
	char *name; /* of an agent, as store_put() */
	json_t *head;
	char *payload;
	const char *body;
	size_t body_length;
};

/*
 * Return 1 with the next message after number *@number, which is advanced; 0: there is none yet.
 * Errors as above.
 */
int store_next(struct store *store, uint64_t *number, struct store_message *ret_message,
	       char **ret_error);
void store_message_clear(struct store_message *message);

/* Delete what is stored of the run. Errors as above. */
int store_forget(struct store *store, char **ret_error);

/* Send @message to an agent, and free it. */
void store_tell(struct store *store, const char *agent, json_t *message);
/* Return the loop, for the caller's own handles; store_close() closes them. */
uv_loop_t *store_loop(struct store *store);
/* Takes NULL. */
void store_close(struct store *store);
DEFINE_CLEANUP(struct store *, store_close)

#endif
