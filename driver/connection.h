/* SPDX-License-Identifier: MIT */
/*
 * The connections of a worker's slots: connecting, sending a request, receiving its response, time
 * limits, closing. What the bytes mean is a protocol's: engine_http.c and engine_stream.c. Sees engine.h.
 */
#ifndef DRIVER_CONNECTION_H
#define DRIVER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "engine.h"
#include "policy.h"
#include "source.h"

#define CONNECTION_BUFFER_SIZE (64U << 10)

/* What all workers share: whom to connect to, and how. */
struct connection_plan {
	struct sockaddr_storage address; /* AF_UNIX: a stream socket of the file system */
	socklen_t address_length;
	struct connection_policy policy;
	uint64_t timeout_ns;
	bool sampling;		   /* results name their flow */
	uint32_t port_range;	   /* see limits_port_range() */
	struct source_set sources; /* borrowed from the options */
};

/* -EINVAL with a reason for people in @ret_error, or another -errno. */
int connection_plan(const struct options *options, const struct target *target,
		    struct connection_plan *ret_plan, char **ret_error);

enum connection_state {
	CONNECTION_CLOSED,  /* no handle */
	CONNECTION_BLOCKED, /* no handle; the listener's queue (AF_UNIX) is full, a request waits */
	CONNECTION_CONNECTING, /* a request waits for it */
	CONNECTION_IDLE,
	CONNECTION_BUSY, /* a request is under way */
	CONNECTION_CLOSING,
};

struct connection {
	struct connections *all;
	uint32_t slot;
	enum connection_state state;
	bool wanted;	    /* CLOSING: the next request waits for a new connection */
	bool writing;	    /* the request did not fit into the socket at once */
	uint64_t begin_ns;  /* of connecting, or of the request: what the time limit counts from */
	uint64_t opened_ns; /* established */
	uint64_t served;    /* requests since then */
	bool has_flow;
	uint32_t flow_hash;
	struct flow flow;
	struct engine_result result;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	uv_connect_t connect;
	uv_write_t write;

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
};

struct connections {
	const struct engine_host *host;
	const struct connection_plan *plan;
	const struct connection_protocol *protocol;
	void *user; /* the protocol's */
	struct source_cursor sources;
	char buffer[CONNECTION_BUFFER_SIZE];
	_Alignas(max_align_t) unsigned char slots[];
};

/* An engine's state, and what becomes of it: see engine.h. NULL without memory. */
struct connections *connections_new(const struct engine_host *host,
				    const struct connection_plan *plan,
				    const struct connection_protocol *protocol, void *user);
struct connection *connections_at(struct connections *all, uint32_t slot);
void connections_start(void *state, uint32_t slot);
void connections_expire(void *state, uint64_t now_ns);
void connections_close(void *state);

#endif
