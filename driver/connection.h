/* SPDX-License-Identifier: MIT */
/*
 * The connections of a worker's slots, with one request at a time: sending it, receiving its response,
 * time limits. What the bytes mean is a protocol's: engine_http.c and engine_stream.c. Sees engine.h.
 */
#ifndef DRIVER_CONNECTION_H
#define DRIVER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "engine.h"
#include "link.h"

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
	uv_buf_t request; /* by begin(); stays until the next one */
	bool keep_alive;  /* of a complete response: the connection may be used again */
};

enum connection_verdict {
	CONNECTION_MORE,     /* as far as it goes, it is a response */
	CONNECTION_COMPLETE, /* its last byte was the last one received */
	CONNECTION_MALFORMED,
	CONNECTION_TRUNCATED, /* the connection ended before the response did */
};

struct connection_protocol {
	size_t size; /* of its connections, which begin with struct connection */
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
	void *user; /* the protocol's */
	uv_check_t check;
	uint32_t *following; /* slots whose next request leaves at the end of the loop's turn */
	uint32_t following_count;
	_Alignas(max_align_t) unsigned char slots[];
};

/* An engine's state, and what becomes of it: see engine.h. NULL without memory. */
struct connections *connections_new(const struct engine_host *host, const struct link_plan *plan,
				    const struct connection_protocol *protocol, void *user);
void connections_free(struct connections *all);

static inline const struct engine_host *connection_host(const struct connection *connection)
{
	return ((const struct connections *)connection->link.all)->host;
}

static inline void *connection_user(const struct connection *connection)
{
	return ((const struct connections *)connection->link.all)->user;
}

/* Appends how a malformed response begins, if that is in its last piece. */
void connection_tell_begin(const struct connection *connection, char *text, size_t size);

struct connection *connections_at(struct connections *all, uint32_t slot);
void connections_start(void *state, uint32_t slot);
void connections_retire(void *state, uint32_t slot);
void connections_expire(void *state, uint64_t now_ns);
void connections_close(void *state);

#endif
