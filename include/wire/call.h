/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Calls of a service's processes to their upstreams, with --calls (bpf/tcp/calls.h): of one service to one place. */
#ifndef WIRE_CALL_H
#define WIRE_CALL_H

#include "wire/counters.h"

/* Maximum of services' places at once. Each takes 36 KB. */
#define CALL_ROWS 128

struct call_place {
	__u32 server[4]; /* its address, as in struct flow */
	__u32 service;	 /* the caller's number (wire/config.h) */
	__u16 port;
	__u16 pad;
};

_Static_assert(sizeof(struct call_place) == 24, "hash keys have no padding");

enum call_count {
	CALLS_CONNECTS,	       /* connections established */
	CALLS_CONNECT_NS,      /* the sum of their times */
	CALLS_CONNECTS_FAILED, /* not of these */
	CALLS_OLDER,	       /* older connections that were picked up */
	CALLS_BEGUN,	       /* requests whose first byte was written */
	CALLS_ANSWERED,	       /* of these: the first byte of the response was read */
	CALLS_FAILED,	       /* of these: the connection ended before that */
	CALLS_GIVEN_UP,	       /* of these: it was none, or the connection is one of those below */
	CALLS_UNTIMED,	       /* the response was read before the write returned: not begun */
	CALLS_HANDSHAKES, /* the first one in TLS, which messages of the handshake join: not begun */
	CALLS_TRAILING,	  /* answered, and more was read after a pause */
	CALLS_CARRIED,	  /* answered in an earlier epoch, and more was read in this one */
	/* Connections that cannot be cut into calls. */
	CALLS_HTTP2,
	CALLS_PERHAPS_HTTP2, /* the client offers it, in TLS */
	CALLS_OVERLAPPED, /* a request was written before the response to the one before was complete */
	CALLS_TUNNELS, /* CONNECT, or the status 101 */
	CALLS_UNSEEN, /* their bytes cannot be read (io_uring, sendfile, TLS in the kernel, MPTCP) */
	CALL_COUNTS
};

/* For all CPUs. */
struct call_row {
	__u64 counts[CALL_COUNTS];
	struct stage_histogram wait; /* the request's last write → the response's first read */
	struct stage_histogram
		whole; /* the request's first write → the response's last read so far */
};

_Static_assert(sizeof(struct call_row) == 8 * CALL_COUNTS + 2 * sizeof(struct stage_histogram),
	       "no padding");

#endif
