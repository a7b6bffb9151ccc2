/* SPDX-License-Identifier: MIT */
/*
 * One stream to the server: TCP from a source port of our choice or a local socket, plain or in TLS.
 * It connects, sends, receives and closes; what the bytes mean and how many requests go over it is its
 * owner's: engine/connection.c and engine/http2/session.c.
 */
#ifndef DRIVER_TRANSPORT_LINK_H
#define DRIVER_TRANSPORT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "sojourn/run.h"
#include "link_settings.h"
#include "policy.h"
#include "source.h"
#include "tls.h"

#define LINK_BUFFER_SIZE (64U << 10)

/* What all workers share: whom to connect to, and how. */
struct link_plan {
	struct sockaddr_storage address; /* AF_UNIX: a stream socket of the file system */
	socklen_t address_length;
	struct connection_policy policy;
	uint64_t timeout_ns;
	bool sampling;		   /* results name their flow */
	uint32_t port_range;	   /* see limits_port_range() */
	struct source_set sources; /* borrowed from the settings */
	struct tls_context *tls;   /* NULL: plain; link_plan_clear() frees it */
};

/*
 * @host: the name of @address, in TLS. @protocol: what to agree on there (ALPN), or NULL: plain. -EINVAL with a reason for people in @ret_error,
 * or another -errno.
 */
int link_plan_fill(const struct link_settings *settings, const struct sockaddr_storage *address,
		   const char *host, const char *protocol, struct link_plan *ret_plan,
		   char **ret_error);
void link_plan_clear(struct link_plan *plan);

enum link_state {
	LINK_CLOSED, /* no handle */
	LINK_CONNECTING,
	LINK_SECURING, /* TCP is established, TLS is not */
	LINK_OPEN,
	LINK_CLOSING,
};

struct links;

struct link {
	struct links *all;
	enum link_state state;
	bool writing;	     /* link_send() has not handed everything to the kernel yet */
	uint64_t begin_ns;   /* of connecting */
	uint64_t connect_ns; /* how long that took */
	uint64_t tls_ns;     /* and TLS' handshake after it */
	const char *detail;  /* of a failure, for people; may be NULL; a constant */
	int code;	     /* likewise: libuv's; 0: no call has failed */
	struct tls *tls;     /* NULL: plain */
	const char *unsent;  /* of what link_send() got, the kernel or TLS has not taken this yet */
	size_t unsent_length;
	size_t piece_length; /* of it: is being written */
	char *ciphertext;    /* waits for room in the socket; freed when written */
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	uv_connect_t connect;
	uv_write_t write;
};

/* After opened() comes, sooner or later, ended(), unless the owner closes before. */
struct link_events {
	void (*opened)(struct link *link);
	/* It could not be opened, and is to be closed. */
	void (*failed)(struct link *link, enum run_error error);
	void (*received)(struct link *link, const char *data, size_t length);
	/* All that link_send() got is the kernel's; only after it had left link->writing set. */
	void (*drained)(struct link *link);
	/* RUN_NO_ERROR: the server closed in good order, which may still be too early. */
	void (*ended)(struct link *link, enum run_error error);
	/* After link_close(): it may be opened again, or freed. */
	void (*closed)(struct link *link);
};

/* Those of one worker. */
struct links {
	uv_loop_t *loop;
	const struct link_plan *plan;
	const struct link_events *events;
	struct source_cursor sources;
	struct tls_buffers tls;
	char buffer[LINK_BUFFER_SIZE];
};

/* -ENOMEM. */
int links_init(struct links *all, uv_loop_t *loop, const struct link_plan *plan,
	       const struct link_events *events);
/* The worker binds to those ports only that are for its links @first … @first + @count - 1 of @of. */
void links_divide(struct links *all, uint32_t first, uint32_t count, uint32_t of);
void links_clear(struct links *all);

/*
 * Begins to open a closed link; a local one calls opened() before this returns. -errno: if a handle is
 * left (state is not LINK_CLOSED) it is to be closed; -EAGAIN: the listener's queue is full (AF_UNIX).
 */
int link_open(struct link *link);

/*
 * Hands @data to the kernel, as much as it takes at once; for the rest link->writing is set, and @data
 * must stay until drained(). Not while that is set. -errno: the link is lost, and to be closed.
 */
int link_send(struct link *link, const char *data, size_t length);

void link_close(struct link *link);

/* What an -errno of a connection that could not be opened means. */
enum run_error link_connect_error(int code);
/* What one of link_open(), and of link_send(), means; the link keeps @code for whoever asks why. */
enum run_error link_connect_failure(struct link *link, int code);
enum run_error link_transfer_failure(struct link *link, int code);

#endif
