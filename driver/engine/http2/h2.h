/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 with several requests at a time on a connection, by nghttp2. A worker's slots are divided among
 * places for connections, --streams slots each; a place has one connection that takes requests, and
 * maybe old ones whose last responses are awaited. Neighbours: place.c (who waits for what),
 * session.c (one connection), stream.c (one request), transport/link.c (bytes).
 */
#ifndef DRIVER_ENGINE_HTTP2_H2_H
#define DRIVER_ENGINE_HTTP2_H2_H

#include <nghttp2/nghttp2.h>

#include "payload/expectation.h"
#include "grpc.h"
#include "request.h"
#include "transport/link.h"
#include "payload/message.h"

/* What all workers share. */
struct h2_shared {
	struct link_plan plan;
	struct message message;
	struct h2_request fixed; /* of message.fixed; else each slot splits its own */
	const char *scheme;	 /* "http", "https" */
	uint32_t streams;	 /* slots per connection */
	bool grpc;
	const struct expectation *expectation;	 /* borrowed from the options */
	const struct grpc_expectation *expected; /* likewise */
	nghttp2_session_callbacks *callbacks;
};

enum h2_state {
	H2_IDLE,
	H2_WAITING, /* for a connection, or for a stream that the server allows */
	H2_BUSY,
};

/* A slot, with at most one request. */
struct h2_slot {
	enum h2_state state;
	uint32_t index;
	struct h2_session *session; /* BUSY */
	struct h2_slot *next;	    /* WAITING */
	int32_t stream;
	uint64_t begin_ns; /* of the request: what the time limit counts from */
	struct engine_result result;
	struct expectation_search search;
	struct grpc_response grpc;
	size_t sent;   /* of the body, prefix included */
	bool complete; /* the response has ended as it should */
	bool refused;  /* the server says that it did not process it */
	bool reset;    /* the server sent RST_STREAM */
	const char *body;
	size_t body_length;
};

/* A connection. It lives until its link is closed. */
struct h2_session {
	struct link link; /* the first member */
	struct h2_place *place;
	nghttp2_session *http;
	struct h2_session *next; /* of the place's old ones */
	uint32_t active;	 /* slots with a request on it */
	uint64_t opened_ns;
	uint64_t received_ns; /* the last bytes */
	uint64_t served;
	struct flow flow; /* with has_flow */
	uint32_t flow_hash;
	bool has_flow; /* samples are wanted, and the observer can see the streams */
	bool inside;   /* nghttp2 is at work: it must not be called but to submit */
	bool settled;  /* the server's SETTINGS are here */
	bool lost;     /* the link is to be closed, nothing is sent any more */
	char *out;     /* what the link still reads from; NULL: nothing */
};

struct h2;

struct h2_place {
	struct h2 *h2;
	struct h2_session *current; /* takes requests; NULL: none */
	struct h2_session *old;	    /* their last responses are awaited, or they close */
	struct h2_slot *waiting, *last;
	uint64_t not_before_ns; /* after a failure: when to connect again */
	uint32_t pause_ms;	/* 0: the last connection was established */
};

/* What session.c and stream.c report upwards. */
struct h2_events {
	/* The place's connection may take requests, or is gone: whoever waits is to be looked at. */
	void (*ready)(struct h2_place *place);
	/* The connection could not be established. */
	void (*failed)(struct h2_session *session, enum run_error error);
	/* The slot's request has ended; it is on no session any more. */
	void (*ended)(struct h2 *h2, struct h2_slot *slot, enum run_error error);
};

#define H2_OUT_SIZE (64U << 10)

/* One worker's. */
struct h2 {
	struct links links; /* the first member */
	const struct engine_host *host;
	const struct h2_events *events;
	struct h2_shared *shared;
	struct message_room room;
	char *out;	   /* H2_OUT_SIZE: what is gathered for one system call */
	uint64_t batch_ns; /* when that began */
	bool gathering;	   /* out is in use */
	bool again;	   /* somebody else wanted it meanwhile */
	bool closing;
	uint32_t place_count;
	struct h2_place *places;
	struct h2_slot slots[];
};

/* place.c */
extern const struct h2_events h2_place_events;
/* See engine/engine.h. */
void h2_start(void *state, uint32_t slot);
void h2_expire(void *state, uint64_t now_ns);
void h2_close(void *state);

/* session.c. -errno of link_open(). */
int h2_session_open(struct h2_place *place, struct h2_session **ret_session);
/* The connection takes no requests any more, and goes when its last response is there. */
void h2_session_retire(struct h2_session *session);
bool h2_session_takes(const struct h2_session *session);
/* Hands to the kernel what nghttp2 has to say, and closes what is done. */
void h2_session_flush(struct h2_session *session);
void h2_session_abandon(struct h2_session *session);
/* Fails every request on it. */
void h2_session_fail(struct h2_session *session, enum run_error error, const char *detail);
extern const struct link_events h2_link_events;

/* stream.c. */
int h2_callbacks_new(nghttp2_session_callbacks **ret_callbacks);
/* The waiting slot's request is queued; it leaves with the next flush. -errno: the session is lost. */
int h2_stream_submit(struct h2_session *session, struct h2_slot *slot);
/* See engine/engine.h. */
void h2_stream_tell(const struct engine_result *result, char *text, size_t size);
/* Gives a request up whose time is over. */
void h2_stream_cancel(struct h2_slot *slot);

#endif
