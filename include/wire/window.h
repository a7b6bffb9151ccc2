/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * How long clients of HTTP/2 kept responses waiting, why streams were reset, and how many a connection has, with --http: of
 * one service.
 */
#ifndef WIRE_WINDOW_H
#define WIRE_WINDOW_H

#include "wire/counters.h"

/* The owner of the window that was closed. */
enum window_level {
	WINDOW_STREAM,
	WINDOW_CONNECTION,
	WINDOW_LEVELS
};

/* Error codes of RST_STREAM: 0 to 13 (RFC 9113, 7), and all others. */
#define RESET_OTHER  14
#define RESET_ERRORS 15

/* The side that has reset a stream. */
enum reset_by {
	RESET_BY_CLIENT,
	RESET_BY_SERVER,
	RESET_SIDES
};

/* For all CPUs. */
struct service_windows {
	struct stage_histogram stalls[WINDOW_LEVELS];
	struct stage_histogram pings; /* the server's PING was written → its ACK was read */
	__u64 resets[RESET_SIDES][RESET_ERRORS]; /* streams, by error code */
	__u64 streams_most;			 /* on a connection that has ended, at most */
	__u64 open_most;			 /* open at once on a connection, at most */
};

_Static_assert(sizeof(struct service_windows) ==
		       (WINDOW_LEVELS + 1) * sizeof(struct stage_histogram) +
			       8 * (RESET_SIDES * RESET_ERRORS + 2),
	       "no padding");

#endif
