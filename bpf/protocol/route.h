/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Compares the bytes of a request's method or path with those of the routes (wire/route.h).
 *
 * The same source runs in the kernel and in its unit test. The test first defines ROUTE_PLACE(index), which
 * returns a place or NULL, and ROUTE_KEEPS: whether texts of paths are kept. Neighbours: request.h (HTTP/1),
 * hpack_request.h (HTTP/2).
 */
#ifndef BPF_PROTOCOL_ROUTE_H
#define BPF_PROTOCOL_ROUTE_H

#include <linux/types.h>

#include "wire/route.h"

#ifndef ROUTE_PLACE
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "array.h"
#include "wire/config.h"

extern const volatile struct observer_config config;

/* With --route it has ROUTE_PLACES entries. User space fills it before the programs are attached. */
DECLARE_ARRAY(route_places, struct route_place, 1, BPF_F_MMAPABLE);

#define ROUTE_PLACE(index) ((struct route_place *)bpf_map_lookup_elem(&route_places, &(index)))
#define ROUTE_KEEPS	   config.propose
#endif

/* A text of a request, as far as it has come. All zeros: no byte has. */
struct route_text {
	__u32 misses; /* routes that it does not match, as bits */
	__u32 places; /* its bytes, up to those that matter */
};

/* Take the next byte of @text. The places of such texts are the @places ones from @first on. */
static inline __attribute__((always_inline)) void route_byte(struct route_text *text, __u32 first,
							     __u32 places, __u8 byte)
{
	__u32 index = first + text->places;
	const struct route_place *place = ROUTE_PLACE(index);

	if (place)
		text->misses |= place->by_byte[byte];
	/* All bytes from the last place on are the same to all routes. */
	if (text->places < places - 1)
		text->places++;
}

static inline __attribute__((always_inline)) void route_end(struct route_text *text, __u32 first)
{
	__u32 index = first + text->places;
	const struct route_place *place = ROUTE_PLACE(index);

	if (place)
		text->misses |= place->at_end;
}

/* Return the row of a request's route, of @routes and a row for others: the first one it does not miss. */
static inline __attribute__((always_inline)) __u32 route_row_of(__u32 misses, __u32 routes)
{
	__u32 row = 0, left = ~misses;

	for (__u32 bits = 16; bits; bits /= 2)
		if (!(left & ((1U << bits) - 1))) {
			left >>= bits;
			row += bits;
		}
	return !(left & 1) || row > routes ? routes : row;
}

#endif
