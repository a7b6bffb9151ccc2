/* SPDX-License-Identifier: MIT */
/*
 * One TCP connection, and the steps of an exchange on it. No step waits for anything but the
 * socket: when to take which step is the model's business (event_tcp.c, blocking_tcp.c).
 */
#ifndef LAB_CONN_H
#define LAB_CONN_H

#include "server.h"

/* What accept() gave. */
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
	bool fresh;	    /* something was read since the last one ended */
	bool ignore_fin;    /* as the last request, or the option, has it */
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
 * accept() with its times, counted. @flags as for accept4(). -errno if there is none; after one
 * that conn_accept_is_exhausted() the caller must back off.
 */
int conn_accept(struct server *server, struct truth_writer *writer, int flags,
		struct accepted *ret_accepted);
bool conn_accept_is_exhausted(int err);

/* Takes over @accepted's descriptor, also when it fails: -ENOMEM. */
int conn_open(struct conn *conn, struct server *server, struct truth_writer *writer,
	      const struct accepted *accepted);

/* Ends what was open, closes, counts the close as @how (one of COUNTER_CLOSED_…, RESET_…). */
void conn_close(struct conn *conn, enum counter how);

/* How a connection ends on which a call failed or the peer sent FIN (@err 0). */
enum counter conn_end_of(int err);

/* One read. Bytes read, 0 at the peer's FIN, -errno. */
ssize_t conn_read(struct conn *conn);

/* 1: a request is complete; 0: more must be read; -ENOMEM. */
int conn_parse(struct conn *conn);

/* Makes the response to the request: now it can be written. */
void conn_prepare(struct conn *conn);

/* One write. enum response_progress or -errno. */
int conn_write(struct conn *conn);

/* The response is written: records the exchange. True if the connection is to be closed. */
bool conn_finish(struct conn *conn);

/* Whether closing must wait for the peer, or its unread bytes would turn it into a reset. */
bool conn_must_linger(const struct conn *conn);

#endif
