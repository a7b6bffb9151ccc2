/* SPDX-License-Identifier: MIT */
/*
 * The connections of a worker's slots, with one request at a time: sending it, receiving its response,
 * time limits. What the bytes mean is a protocol's: http/http.c and stream/stream.c.
 */
#ifndef DRIVER_ENGINE_CONNECTION_H
#define DRIVER_ENGINE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "engine.h"
#include "payload/message.h"
#include "transport/link.h"

enum connection_state {
	CONNECTION_CLOSED,  /* no handle */
	CONNECTION_BLOCKED, /* no handle; the listener's queue (AF_UNIX) is full, a request waits */
	CONNECTION_CONNECTING, /* a request waits for it */
	CONNECTION_IDLE,
	CONNECTION_BUSY, /* a request is under way */
	CONNECTION_CLOSING,
};

/* What was received last. */
struct connection_piece {
	const char *data;
	size_t length;
};

/* One kind of request, and what becomes of its responses. */
struct connection_kind {
	struct message message;
	const struct request *request;	     /* what it was made of, and is expected; borrowed */
	const struct capture_list *captures; /* NULL: nothing is captured */
	bool head;			     /* HTTP: responses have no body */
};

/* What all workers share. */
struct connections_shared {
	struct link_plan plan;
	struct connection_kind **kinds; /* the messages' addresses stay */
	uint32_t kind_count;
};

struct connection {
	struct link link; /* the first member */
	uint32_t slot;
	enum connection_state state;
	bool wanted;	    /* CLOSING: the next request waits for a new connection */
	uint64_t begin_ns;  /* of connecting, or of the request: what the time limit counts from */
	uint64_t opened_ns; /* established, TLS included */
	uint64_t served;    /* requests since then */
	bool has_flow;
	uint32_t flow_hash;
	struct flow flow;
	struct engine_result result;
	struct connection_piece piece; /* of a malformed response; valid during done() only */

	/* Set by the protocol: */
	const struct connection_kind *kind; /* of the request: by connection_begin() */
	void *memo;			    /* of that kind: likewise */
	uv_buf_t request;		    /* likewise; stays until the next one */
	bool keep_alive; /* of a complete response: the connection may be used again */
};

enum connection_verdict {
	CONNECTION_MORE,     /* as far as it goes, it is a response */
	CONNECTION_COMPLETE, /* its last byte was the last one received */
	CONNECTION_MALFORMED,
	CONNECTION_TRUNCATED, /* the connection ended before the response did */
};

struct connection_protocol {
	size_t size;	  /* of its connections, which begin with struct connection */
	size_t memo_size; /* of what a worker keeps of each kind, zeroed at first */
	/* Before each request. */
	void (*begin)(struct connection *connection);
	enum connection_verdict (*receive)(struct connection *connection, const char *data,
					   size_t length);
	/* The peer has closed: COMPLETE or TRUNCATED. */
	enum connection_verdict (*end)(struct connection *connection);
	/* Appends why the response is malformed, or not good, to @text. NULL: nothing is known. */
	void (*tell)(struct connection *connection, enum run_error error, char *text, size_t size);
};

struct connections {
	struct links links; /* the first member */
	const struct engine_host *host;
	const struct connection_protocol *protocol;
	const struct connections_shared *shared;
	struct message_room room;
	unsigned char *memos;
	uv_check_t check;
	uint32_t *following; /* slots whose next request leaves at the end of the loop's turn */
	uint32_t following_count;
	_Alignas(max_align_t) unsigned char slots[];
};

/*
 * What engines have in common, see engine.h. @protocol: what to agree on in TLS, NULL: nothing. @add: the
 * engine's, for the first kind.
 */
int connections_prepare(const struct request *request, const struct link_settings *link,
			const struct target *target, const char *protocol,
			int (*add)(void *shared, const struct request *request,
				   const struct target *target, char **ret_error),
			void **ret_shared, char **ret_error);
void connections_release(void *shared);

/* A kind of request whose message is still to be made; NULL without memory. */
struct connection_kind *connections_add(struct connections_shared *shared,
					const struct request *request);

int connections_open(const struct engine_host *host, const struct connections_shared *shared,
		     const struct connection_protocol *protocol, void **ret_state);
void connections_free(void *state);

/* Makes the next request of the kind that the slot is to send. */
void connection_begin(struct connection *connection);

static inline const struct engine_host *connection_host(const struct connection *connection)
{
	return ((const struct connections *)connection->link.all)->host;
}

/* Of the slot's captured values. */
static inline struct capture_store *connection_store(const struct connection *connection)
{
	return &connection_host(connection)->clients[connection->slot].store;
}

/* The scheme of what the server speaks instead of plain HTTP/1, by a first piece; NULL: not known. */
const char *connection_other_scheme(const struct connection *connection);

/* Appends how a malformed response begins, if that is in its last piece. */
void connection_tell_begin(const struct connection *connection, char *text, size_t size);

void connections_start(void *state, uint32_t slot);
void connections_retire(void *state, uint32_t slot);
void connections_expire(void *state, uint64_t now_ns);
void connections_close(void *state);

#endif
