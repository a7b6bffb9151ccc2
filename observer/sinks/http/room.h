/* SPDX-License-Identifier: MIT */
/*
 * The clients that hold the endpoint's connections: how long each may, and who makes room for newcomers. libmicrohttpd
 * has the connections themselves.
 */
#ifndef OBSERVER_SINKS_HTTP_ROOM_H
#define OBSERVER_SINKS_HTTP_ROOM_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "http.h"
#include "routes.h"

struct MHD_Connection;

struct http_client {
	int fd;		      /* -1: the slot is free */
	struct in6_addr peer; /* as IPv6; of IPv6 the network alone */
	uint64_t number;      /* of connections, from 1 on */
	uint64_t round;	      /* the run() in which it came, or last had unread bytes */
	uint64_t
		deadline_ns; /* when its head must be complete, or when it must have got its answer */
	uint64_t body;	     /* bytes of the current request's body so far */
	/* The request waits for this document (http_reply.awaited), and the connection is suspended. */
	struct http_wanted awaited;
	struct MHD_Connection *waiting;
	/* The request waits for this reply, which needs a reading (http_reply.later). */
	bool later;
	const char *method, *path; /* libmicrohttpd's, until the reply is sent */
	struct http_reply reply;
	bool included; /* the document that is being made was begun after the request */
	bool made;     /* the wait is over */
	int error;     /* -errno: without a document */
	bool admitted; /* the guard has admitted one of its requests */
	bool asking;   /* a head is complete, and the answer is not */
	bool leaving;  /* it was shut down */
	bool ended;    /* http_room_wake_ended() is done with it */
};

struct http_room {
	struct http_client *clients;
	struct pollfd *polls; /* http_room_wake_ended()'s, one per slot */
	unsigned int slots;
	uint64_t connections; /* so far */
	uint64_t round;	      /* of run() */
};

/* Make slots for as many connections as @limits has, and some to spare. 0 or -ENOMEM. */
int http_room_open(struct http_room *room, const struct sink_http_limits *limits);
void http_room_close(struct http_room *room);

/* Take a new connection, and send another client away if there are too many. Return the client; NULL: no free slot. */
struct http_client *http_room_add(struct http_room *room, const struct sink_http_limits *limits,
				  int fd);

void http_room_set_deadline(struct http_client *client, unsigned int seconds);
/* Return the first deadline; UINT64_MAX: there is none. */
uint64_t http_room_deadline(const struct http_room *room);
/* Send away the clients whose deadline has passed. */
void http_room_expire(struct http_room *room);
/* Call after each run of libmicrohttpd. */
void http_room_wake_ended(struct http_room *room);

#endif
