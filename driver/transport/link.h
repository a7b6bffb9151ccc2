/* SPDX-License-Identifier: MIT */
/*
 * One stream to the server: TCP from a chosen source port or a local socket, plain or in TLS. It
 * connects, sends, receives and closes. Its owner interprets the bytes and counts requests:
 * engine/connection.c and engine/http2/session.c.
 */
#ifndef DRIVER_TRANSPORT_LINK_H
#define DRIVER_TRANSPORT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "sojourn/run.h"
#include "policy.h"
#include "source.h"
#include "tls.h"

#define LINK_BUFFER_SIZE (64U << 10)

/* Settings for reaching the server. Strings are borrowed; source_clear() frees the sources. */
struct link_settings {
	struct source_set sources;
	struct connection_policy policy;
	bool new_connections; /* sets policy.requests to 1 */
	struct tls_options tls;
	uint64_t timeout_ns; /* of connecting, and of each answer */
	uint32_t streams;    /* HTTP/2: requests at a time per connection, at least 1 */
	struct {
		bool given;		/* an option for datagrams was given */
		uint32_t outstanding;	/* requests at a time per socket, at least 1 */
		uint64_t retransmit_ns; /* 0: never */
	} datagrams;
	bool sampling; /* results name their flow */
};

/* Shared by all workers: the server, and how to connect. */
struct link_plan {
	struct sockaddr_storage address; /* AF_UNIX: a stream socket in the file system */
	socklen_t address_length;
	struct connection_policy policy;
	uint64_t timeout_ns;
	bool sampling;		   /* results name their flow */
	uint32_t port_range;	   /* see limits_port_range() */
	struct source_set sources; /* borrowed from the settings */
	struct tls_context *tls;   /* NULL: plain; link_plan_clear() frees it */
};

/*
 * Fill a plan. @host: the name of @address, for TLS. @protocol: to negotiate in TLS (ALPN); NULL:
 * plain. -EINVAL with @ret_error, or another -errno.
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
	uv_os_fd_t fd;	     /* of the handle */
	bool writing;	     /* the kernel has not taken everything from link_send() yet */
	uint64_t begin_ns;   /* start of connecting */
	uint64_t connect_ns; /* time to connect */
	uint64_t tls_ns;     /* time of the TLS handshake after that */
	const char *detail;  /* of a failure, for people; may be NULL; a constant */
	int code;	     /* libuv's code of the failure; 0: no call has failed */
	struct tls *tls;     /* NULL: plain */
	const char *unsent;  /* bytes from link_send() that kernel or TLS have not taken */
	size_t unsent_length;
	size_t piece_length; /* of these, being written */
	char *ciphertext;    /* waits for room in the socket; freed once written */
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	uv_connect_t connect;
	uv_write_t write;
};

/* After opened(), ended() follows, unless the owner closes before. */
struct link_events {
	void (*opened)(struct link *link);
	/* Opening failed: close the link. */
	void (*failed)(struct link *link, enum run_error error);
	void (*received)(struct link *link, const char *data, size_t length);
	/* The kernel has everything from link_send(); only if that had set link->writing. NULL: not wanted. */
	void (*drained)(struct link *link);
	/* RUN_NO_ERROR: the server closed properly, perhaps too early. */
	void (*ended)(struct link *link, enum run_error error);
	/* After link_close(): the link may be opened again, or freed. */
	void (*closed)(struct link *link);
};

/* The links of one worker. */
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
/* Let the worker bind only to ports for its links @first … @first + @count - 1 of @of. */
void links_divide(struct links *all, uint32_t first, uint32_t count, uint32_t of);
void links_clear(struct links *all);

/*
 * Start to open a closed link; a local one calls opened() first. On -errno, close the link unless
 * its state is LINK_CLOSED. -EAGAIN: the listener's queue is full (AF_UNIX).
 */
int link_open(struct link *link);

/*
 * Hand @data to the kernel. If it takes only a part, link->writing is set. @data must then stay
 * until drained(), without a further call. -errno: the link is lost, close it.
 */
int link_send(struct link *link, const char *data, size_t length);

/* How much of that neither the kernel nor TLS has taken; after a failed write perhaps less. */
size_t link_unsent(const struct link *link);

void link_close(struct link *link);

/* Read the flow of an open link, once for all its requests. False: it is not sampled, or not known. */
bool link_flow(const struct link *link, struct flow *ret_flow, uint32_t *ret_hash);

/* Classify the -errno of a failed connection. */
enum run_error link_connect_error(int code);
/* Classify the -errno of link_open() or link_send(), and keep it in the link. */
enum run_error link_connect_failure(struct link *link, int code);
enum run_error link_transfer_failure(struct link *link, int code);

#endif
