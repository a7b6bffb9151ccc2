/* SPDX-License-Identifier: MIT */
/*
 * One TCP connection, and the steps of an exchange on it. A step waits for nothing but the socket;
 * the model decides when to take it (event_tcp.c, blocking_tcp.c).
 */
#ifndef LAB_CONN_H
#define LAB_CONN_H

#include "server.h"

/* The result of accept(). */
struct accepted {
	int fd;
	union address peer;
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct conn {
	struct server *server;
	struct truth_writer *writer;
	struct accepted accepted;
	uint64_t number;
	uint64_t exchanges; /* on this connection so far */
	bool open;	    /* an exchange has begun */
	bool fresh;	    /* something was read since the last exchange ended */
	bool ignore_fin;    /* from the last request, or the option */
	uint64_t readable_ns;
	uint64_t read_begin_ns; /* of the last read */
	uint64_t read_end_ns;
	char *input;
	size_t input_size;
	size_t input_begin; /* first byte not yet parsed */
	size_t input_end;
	struct exchange exchange;
	struct request request;
	struct response response;
	union protocol_state *state;
};

/*
 * Accept with times, and count. @flags as for accept4(). Return -errno without a connection; after
 * an error for which conn_accept_is_exhausted() holds, the caller must back off.
 */
int conn_accept(struct server *server, struct truth_writer *writer, int flags,
		struct accepted *ret_accepted);
bool conn_accept_is_exhausted(int err);

/* Take over @accepted's descriptor, even on failure. Return 0 or -ENOMEM. */
int conn_open(struct conn *conn, struct server *server, struct truth_writer *writer,
	      const struct accepted *accepted);

/* End an open exchange, close, and count the close as @how (one of COUNTER_CLOSED_…, RESET_…). */
void conn_close(struct conn *conn, enum counter how);

/* Return how a connection ends after a failed call or the peer's FIN (@err 0). */
enum counter conn_end_of(int err);

/* Read once. Return the bytes read, 0 at the peer's FIN, -errno. */
ssize_t conn_read(struct conn *conn);

/* Return 1: a request is complete; 0: more must be read; -ENOMEM. */
int conn_parse(struct conn *conn);

/* Make the response, ready to be written. */
void conn_prepare(struct conn *conn);

/* Write once. Return enum response_progress or -errno. */
int conn_write(struct conn *conn);

/*
 * Record the exchange after its response is written. Return true if the connection must be closed.
 */
bool conn_finish(struct conn *conn);

/*
 * Return whether the close must wait until the peer has the response: a close with unread bytes
 * would reset the connection.
 */
bool conn_must_linger(const struct conn *conn);

#endif
