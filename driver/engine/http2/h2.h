/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 with several requests at a time on a connection, by nghttp2. A worker's slots are divided
 * among places, --streams slots each. A place has one connection that takes requests, and old ones
 * that wait for their last responses. Neighbours: place.c (queues), session.c (one connection),
 * stream.c (one request), messages.c (a call's next message), transport/link.c (bytes).
 */
#ifndef DRIVER_ENGINE_HTTP2_H2_H
#define DRIVER_ENGINE_HTTP2_H2_H

#include <nghttp2/nghttp2.h>

#include "payload/expectation.h"
#include "grpc.h"
#include "request.h"
#include "transport/link.h"
#include "payload/message.h"

/* Shared by all workers. */
struct h2_shared {
	struct link_plan plan;
	struct message message;
	struct h2_request fixed; /* of message.fixed; otherwise each slot splits its own */
	const char *scheme;	 /* "http", "https" */
	uint32_t streams;	 /* slots per connection */
	bool grpc;
	struct grpc_messages messages;		 /* count is at least 1 */
	const struct expectation *expectation;	 /* borrowed from the options */
	const struct grpc_expectation *expected; /* borrowed too */
	nghttp2_session_callbacks *callbacks;
};

enum h2_state {
	H2_IDLE,
	H2_WAITING, /* for a connection or a free stream */
	H2_BUSY,
};

/* A slot, with at most one request. */
struct h2_slot {
	enum h2_state state;
	uint32_t index;
	struct h2_session *session; /* BUSY */
	struct h2_slot *next;	    /* the next slot that waits */
	int32_t stream;
	uint64_t begin_ns; /* start of the request's time limit */
	struct engine_result result;
	struct expectation_search search;
	struct grpc_response grpc;
	size_t sent;	 /* bytes of the body or of the current message, prefix included */
	uint64_t due_ns; /* when the next message is sent; 0: the call does not wait */
	bool complete;	 /* the response has ended properly */
	bool refused;	 /* the server did not process the request, and says so */
	bool reset;	 /* the server sent RST_STREAM */
	const char *body;
	size_t body_length;
};

/* A connection, which lives until its link is closed. */
struct h2_session {
	struct link link; /* the first member */
	struct h2_place *place;
	nghttp2_session *http;
	struct h2_session *next; /* in the place's list of old ones */
	uint32_t active;	 /* slots with a request on it */
	uint64_t opened_ns;
	uint64_t received_ns; /* when the last bytes came */
	uint64_t served;
	struct flow flow; /* with has_flow */
	uint32_t flow_hash;
	bool has_flow; /* samples are wanted, and the flow is known */
	bool inside;   /* within a call of nghttp2: only submitting is allowed */
	bool settled;  /* the server's SETTINGS have arrived */
	bool lost;     /* send nothing more and close the link */
	char *out;     /* bytes that the link still sends; NULL: none */
};

struct h2;

struct h2_place {
	struct h2 *h2;
	struct h2_session *current; /* takes requests; NULL: none */
	struct h2_session *old;	    /* waiting for their last responses, or closing */
	struct h2_slot *waiting, *last;
	uint64_t not_before_ns; /* after a failure: when to connect again */
	uint32_t pause_ms;	/* 0: the last connection was established */
};

/* Reports from session.c and stream.c. */
struct h2_events {
	/* The place's connection may take requests, or is gone: look at the waiting slots. */
	void (*ready)(struct h2_place *place);
	void (*failed)(struct h2_session *session, enum run_error error);
	/* The slot's request has ended and has left its session. */
	void (*ended)(struct h2 *h2, struct h2_slot *slot, enum run_error error);
};

#define H2_OUT_SIZE (64U << 10)

/* The state of one worker. */
struct h2 {
	struct links links; /* the first member */
	const struct engine_host *host;
	const struct h2_events *events;
	struct h2_shared *shared;
	struct message_room room;
	char *out;	   /* H2_OUT_SIZE: frames gathered for one system call */
	uint64_t batch_ns; /* when gathering began */
	bool gathering;	   /* @out is in use */
	bool again;	   /* another connection wanted @out meanwhile */
	bool closing;
	uv_timer_t pace; /* goes off when the next message of some call is due */
	uint32_t place_count;
	struct h2_place *places;
	struct h2_slot slots[];
};

/* place.c */
extern const struct h2_events h2_place_events;
/* See engine/engine.h. */
void h2_start(void *state, uint32_t slot);
void h2_expire(void *state, uint64_t over_ns);
void h2_close(void *state);

/* session.c. -errno of link_open(). */
int h2_session_open(struct h2_place *place, struct h2_session **ret_session);
/* Give the connection no more requests; it closes after its last response. */
void h2_session_retire(struct h2_session *session);
bool h2_session_takes(const struct h2_session *session);
/* Hand nghttp2's frames to the kernel, and close finished connections. */
void h2_session_flush(struct h2_session *session);
/* The same for all connections of the place. */
void h2_place_flush(struct h2_place *place);
void h2_session_abandon(struct h2_session *session);
extern const struct link_events h2_link_events;

/* messages.c: with an interval between the messages of a call. Return whether the next one is not due yet. Then the stream is resumed when it is. */
bool h2_message_waits(struct h2 *h2, struct h2_slot *slot);

/* stream.c. */
int h2_callbacks_new(nghttp2_session_callbacks **ret_callbacks);
/* Queue the waiting slot's request for the next flush. -errno: the session is lost. */
int h2_stream_submit(struct h2_session *session, struct h2_slot *slot);
/* See engine/engine.h. */
void h2_stream_tell(const struct engine_result *result, char *text, size_t size);
/* Give up a request past its time limit. */
void h2_stream_cancel(struct h2_slot *slot);

#endif
