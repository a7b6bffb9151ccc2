/* SPDX-License-Identifier: MIT */
/*
 * The connections of a worker's slots, with one request at a time: sending it, receiving its
 * response, time limits. http/http.c and stream/stream.c interpret the bytes.
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
	CONNECTION_CLOSED,     /* no handle */
	CONNECTION_BLOCKED,    /* no handle; the listener's queue (AF_UNIX) is full */
	CONNECTION_CONNECTING, /* a request waits for the connection */
	CONNECTION_IDLE,
	CONNECTION_BUSY, /* a request is in flight */
	CONNECTION_CLOSING,
};

/* The last bytes received. */
struct connection_piece {
	const char *data;
	size_t length;
};

/* One kind of request, and how its responses are judged. */
struct connection_kind {
	struct message message;
	const struct request *request;	     /* source and expectations of the message; borrowed */
	const struct capture_list *captures; /* NULL: nothing is captured */
	bool head;			     /* HTTP: responses have no body */
	bool closes;			     /* HTTP: the last request of its connection */
};

/* Shared by all workers. */
struct connections_shared {
	struct link_plan plan;
	struct connection_kind **kinds; /* messages must not move */
	uint32_t kind_count;
};

struct connection {
	struct link link; /* the first member */
	uint32_t slot;
	enum connection_state state;
	bool wanted;	    /* CLOSING: a request waits for a new connection */
	uint64_t begin_ns;  /* start of the time limit: of connecting, or of the request */
	uint64_t opened_ns; /* established, TLS included */
	uint64_t served;    /* requests since then */
	uint64_t idle_ns;   /* between the last response and this request */
	bool has_flow;
	uint32_t flow_hash;
	struct flow flow;
	struct engine_result result;
	struct connection_piece piece; /* of a malformed response; valid during done() only */

	/* Set by the protocol, the first three by connection_begin(): */
	const struct connection_kind *kind; /* of the request */
	void *memo;			    /* of that kind */
	uv_buf_t request;		    /* stays until the next one */
	bool keep_alive; /* after a complete response: the connection may be used again */
};

enum connection_verdict {
	CONNECTION_MORE,     /* a valid response so far */
	CONNECTION_COMPLETE, /* the last byte received ends the response */
	CONNECTION_MALFORMED,
	CONNECTION_TRUNCATED, /* the connection ended before the response did */
};

struct connection_protocol {
	size_t size;	  /* of its connections, whose first member is struct connection */
	size_t memo_size; /* of a worker's memory for each kind, zeroed at first */
	/* Prepare for the next request. */
	void (*begin)(struct connection *connection);
	enum connection_verdict (*receive)(struct connection *connection, const char *data,
					   size_t length);
	/* The peer has closed: return COMPLETE or TRUNCATED. */
	enum connection_verdict (*end)(struct connection *connection);
	/* Append why the response is malformed or bad to @text. NULL: nothing is known. */
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
 * The parts that engines with connections share; see engine.h. @protocol: offered in TLS, or NULL.
 * @add: the engine's own, called for the first kind.
 */
int connections_prepare(const struct request *request, const struct link_settings *link,
			const struct target *target, const char *protocol,
			int (*add)(void *shared, const struct request *request,
				   const struct target *target, char **ret_error),
			void **ret_shared, char **ret_error);
void connections_release(void *shared);

/* Add a kind of request, still without its message. Return NULL without memory. */
struct connection_kind *connections_add(struct connections_shared *shared,
					const struct request *request);

int connections_open(const struct engine_host *host, const struct connections_shared *shared,
		     const struct connection_protocol *protocol, void **ret_state);
void connections_free(void *state);

/* Render the next request of the slot's kind. */
void connection_begin(struct connection *connection);

static inline const struct engine_host *connection_host(const struct connection *connection)
{
	return ((const struct connections *)connection->link.all)->host;
}

/* Return the slot's captured values. */
static inline struct capture_store *connection_store(const struct connection *connection)
{
	return &connection_host(connection)->clients[connection->slot].store;
}

/* Return the scheme that the server speaks instead of plain HTTP/1; NULL: not known. */
const char *connection_other_scheme(const struct connection *connection);

/* Append the start of a malformed response, if its last piece contains that. */
void connection_tell_begin(const struct connection *connection, char *text, size_t size);

void connections_start(void *state, uint32_t slot);
void connections_retire(void *state, uint32_t slot);
void connections_expire(void *state, uint64_t over_ns);
void connections_close(void *state);

#endif
