/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * HTTP requests by route, with --route. The kernel finds a request's route byte by byte: at each place of a
 * method or path, each byte rules out some routes. It counts each route of each service on each CPU.
 */
#ifndef WIRE_ROUTE_H
#define WIRE_ROUTE_H

#include <linux/types.h>

#include "wire/counters.h"

/* Maximum of routes, which are bits. Each takes memory per service and CPU. */
#define ROUTES_MOST 32

/* The longest method and path of a route. */
#define ROUTE_METHOD_LIMIT 15
#define ROUTE_PATH_LIMIT   120

/*
 * Places of bytes. A text has one more than its longest route needs: no longer text differs from one with
 * that many bytes. Huffman's code (RFC 7541, B) is compared as it is: a text begins with another one exactly
 * if the code's bits do. A letter of a method has up to 8 bits, one of a path up to 19, and "?" has 10.
 */
#define ROUTE_METHOD_PLACES	  16
#define ROUTE_PATH_PLACES	  128
#define ROUTE_PATH_HUFFMAN_PLACES 288
#define ROUTE_AT_METHOD		  0
#define ROUTE_AT_METHOD_HUFFMAN	  (ROUTE_AT_METHOD + ROUTE_METHOD_PLACES)
#define ROUTE_AT_PATH		  (ROUTE_AT_METHOD_HUFFMAN + ROUTE_METHOD_PLACES)
#define ROUTE_AT_PATH_HUFFMAN	  (ROUTE_AT_PATH + ROUTE_PATH_PLACES)
#define ROUTE_AT_STATIC		  (ROUTE_AT_PATH_HUFFMAN + ROUTE_PATH_HUFFMAN_PLACES) /* by index, not byte */
#define ROUTE_PLACES		  (ROUTE_AT_STATIC + 1)

_Static_assert(ROUTE_METHOD_LIMIT < ROUTE_METHOD_PLACES && ROUTE_PATH_LIMIT < ROUTE_PATH_PLACES,
	       "the place after the longest");
_Static_assert((19 * ROUTE_PATH_LIMIT + 10 + 7) / 8 < ROUTE_PATH_HUFFMAN_PLACES,
	       "of the longest code, too");

/* The routes that a text of a request does not match, as bits: those that it misses. */
struct route_place {
	__u32 by_byte[256]; /* if it has this byte here */
	__u32 at_end;	    /* if it ends before this place */
	__u32 pad;
};

/* Reasons why a request's route is not known. */
enum route_unknown {
	ROUTE_UNSEEN, /* its first bytes cannot be seen (splice, io_uring) */
	ROUTE_TLS,
	ROUTE_HTTP2,	 /* a compressed field is not known */
	ROUTE_CUT,	 /* the response began before the request's method and path were complete */
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

/*
 * Paths of a service's requests that match no route, with --propose-routes. They are a fair sample: each of the
 * requests is in it with the same probability (Vitter's algorithm R, 1985). A path of HTTP/1 ends before the query.
 * Those of HTTP/2 are as clients send them, and user space cuts off the query (observer/kernel/tables/route.h).
 */
#define ROUTE_PATHS	 256 /* a power of 2 */
#define ROUTE_PATH_BYTES 57
/* The latest texts of paths in the dynamic tables of all connections with HTTP/2. */
#define ROUTE_TEXTS 16384

struct route_path {
	__u32 turn;   /* odd: it is being written; 0: it never was */
	__u8 length;  /* bytes of the text */
	__u8 whole;   /* the path ends after them */
	__u8 huffman; /* the text is in Huffman's code */
	__u8 text[ROUTE_PATH_BYTES];
};

struct route_paths {
	__u64 requests; /* of which it is a sample */
	__u64 unknown;	/* requests of HTTP/2 whose path is not known */
	struct route_path list[ROUTE_PATHS];
};

_Static_assert(sizeof(struct route_path) == 64 &&
		       sizeof(struct route_paths) == 16 + 64 * ROUTE_PATHS,
	       "no padding");

#endif
