/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * HTTP/1 requests by route, with --route. The kernel finds a request's route by a key. It counts each
 * route of each service on each CPU.
 */
#ifndef WIRE_ROUTE_H
#define WIRE_ROUTE_H

#include <linux/types.h>

#include "wire/counters.h"

/* Maximum of routes. Each takes memory per service and CPU. */
#define ROUTES_MOST 32

/* Bytes of a method, of which the last one is 0 in each route. */
#define ROUTE_METHOD 16
/* Bytes of a path that are compared. A route is shorter, by more than the byte that ends it. */
#define ROUTE_PATH	 128
#define ROUTE_PATH_LIMIT 120

/*
 * A key of the trie. Method: zeros after its end, all zeros: any. A path that must be equal, and not
 * only begin like that, is followed by a 0: no path contains one.
 */
struct route_key {
	__u32 bits; /* of the method and the path */
	__u8 method[ROUTE_METHOD];
	__u8 path[ROUTE_PATH];
};

#define ROUTE_BITS(path_bytes) (8U * (ROUTE_METHOD + (path_bytes)))

_Static_assert(sizeof(struct route_key) == 4 + ROUTE_METHOD + ROUTE_PATH, "no padding");

struct route_found {
	__u32 row;  /* of the route, from 0 on in the order given; the row after all is of others */
	__u32 bits; /* of its key: the longer one of two wins */
};

/* Reasons why a request's route is not known. */
enum route_unknown {
	ROUTE_UNSEEN, /* its first bytes cannot be seen (splice, io_uring) */
	ROUTE_TLS,
	ROUTE_HTTP2,
	ROUTE_CUT,	 /* the response began before the request's line was complete */
	ROUTE_STRANGE,	 /* it does not begin with a method and a target */
	ROUTE_PIPELINED, /* a read holds several requests */
	ROUTE_UNKNOWN_COUNT
};

/* The stages that are kept by route: all of the residence but the first one. */
#define ROUTE_STAGE_FIRST STAGE_SOCKET_QUEUE
#define ROUTE_STAGE_COUNT (STAGE_RESIDENCE_END - ROUTE_STAGE_FIRST)
#define ROUTE_CLASSES	  6 /* [1] … [5] are 1xx … 5xx; [0]: the status is not known */

struct service_route {
	__u64 responses[ROUTE_CLASSES];
	struct stage_histogram stages[ROUTE_STAGE_COUNT];
};

_Static_assert(sizeof(struct service_route) ==
		       8 * ROUTE_CLASSES + ROUTE_STAGE_COUNT * sizeof(struct stage_histogram),
	       "no padding");

#endif
