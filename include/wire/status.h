/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* HTTP responses by status, with --http: the kernel side's counts of one service, in each copy. */
#ifndef WIRE_STATUS_H
#define WIRE_STATUS_H

#include <linux/types.h>

#include "wire/counters.h"
#include "wire/route.h"

#define STATUS_UNKNOWN 0
#define STATUS_LEAST   100
#define STATUS_COUNT   500 /* up to 599 */

/* Statuses of gRPC: 0 to 16, and what else may be at the end of a response. */
#define GRPC_LAST      16
#define GRPC_OTHER     17 /* no number up to 16 */
#define GRPC_MISSING   18 /* the response ended without */
#define GRPC_NOT_KNOWN 19
#define GRPC_COUNT     20

/* Kinds of calls, by their messages. */
enum grpc_kind {
	GRPC_KIND_UNARY,
	GRPC_KIND_CLIENT_STREAMING,
	GRPC_KIND_SERVER_STREAMING,
	GRPC_KIND_BIDIRECTIONAL,
	GRPC_KIND_UNDECIDED, /* over before it could show whether it streams */
	GRPC_KIND_NOT_KNOWN, /* not all messages could be counted */
	GRPC_KIND_COUNT
};

/* Directions of messages. */
#define GRPC_IN	 0
#define GRPC_OUT 1

/* Counts of WebSocket and of server-sent events. Of two the first one is of the client's direction. */
enum pushed {
	PUSHED_WEBSOCKETS,	 /* connections */
	PUSHED_WEBSOCKETS_LOST,	 /* of these: bytes not seen or not understood */
	PUSHED_WEBSOCKETS_OLDER, /* connections older than the observation that seem to be such */
	PUSHED_WEBSOCKETS_PICKED_UP, /* of these: proved, and in WEBSOCKETS */
	PUSHED_MESSAGES_IN,	     /* whole ones */
	PUSHED_MESSAGES_OUT,
	PUSHED_BYTES_IN, /* payload of these */
	PUSHED_BYTES_OUT,
	PUSHED_CONTROL_IN, /* control frames */
	PUSHED_CONTROL_OUT,
	PUSHED_STREAMS,	     /* responses of events */
	PUSHED_STREAMS_LOST, /* of these: bytes not seen, not understood or compressed */
	PUSHED_EVENTS,
	PUSHED_EVENT_BYTES, /* of the bodies */
	PUSHED_COUNT
};

/* Classes of failed responses whose service time is counted. */
enum status_failed {
	STATUS_FAILED_4XX,
	STATUS_FAILED_5XX,
	STATUS_FAILED_GRPC, /* its status is any but 0 */
	STATUS_FAILED_COUNT
};

struct service_statuses {
	__u64 unknown; /* responses whose status is not known */
	__u64 counts[STATUS_COUNT];
	__u64 grpc[GRPC_COUNT];
	__u64 kinds[GRPC_KIND_COUNT];
	__u64 messages[2]; /* of gRPC: GRPC_IN, GRPC_OUT */
	__u64 pushed[PUSHED_COUNT];
	__u64 routeless[ROUTE_UNKNOWN_COUNT]; /* responses whose request's route is not known */
	struct stage_histogram failed[STATUS_FAILED_COUNT];
};

_Static_assert(sizeof(struct service_statuses) ==
		       8 * (1 + STATUS_COUNT + GRPC_COUNT + GRPC_KIND_COUNT + 2 + PUSHED_COUNT +
			    ROUTE_UNKNOWN_COUNT) +
			       STATUS_FAILED_COUNT * sizeof(struct stage_histogram),
	       "no padding");

#endif
