/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The two ends of a flow, in one form for kernel, observer and driver. By its hash all of them
 * sample the same exchanges without communicating (docs/measurement.md, consistent sampling).
 */
#ifndef WIRE_FLOW_H
#define WIRE_FLOW_H

#include <linux/types.h>

/*
 * A TCP connection or a UDP pair. Addresses in network order, IPv4 as ::ffff:a.b.c.d (RFC 4291,
 * 2.5.5.2): a server on [::] and its IPv4 client use the same form. Ports in host order.
 */
struct flow {
	__u32 client[4];
	__u32 server[4];
	__u16 client_port;
	__u16 server_port;
};

_Static_assert(sizeof(struct flow) == 36, "compared as bytes: no padding");

/* MurmurHash3's finalizer (Appleby, 2011, public domain): every bit of @h affects every other. */
static inline __attribute__((always_inline)) __u32 flow_mix(__u32 h)
{
	h ^= h >> 16;
	h *= 0x85ebca6bU;
	h ^= h >> 13;
	h *= 0xc2b2ae35U;
	h ^= h >> 16;
	return h;
}

static inline __attribute__((always_inline)) __u32 flow_add(__u32 h, __u32 word)
{
	return flow_mix(h ^ word) + 0x9e3779b9U;
}

/*
 * Hash @flow, depending on the order of its words. Member by member: through a pointer to words,
 * stale ports could be read (GCC, strict aliasing).
 */
static inline __attribute__((always_inline)) __u32 flow_hash(const struct flow *flow)
{
	__u32 h = 0;

	for (int i = 0; i < 4; i++)
		h = flow_add(h, flow->client[i]);
	for (int i = 0; i < 4; i++)
		h = flow_add(h, flow->server[i]);
	return flow_add(h, flow->client_port | (__u32)flow->server_port << 16);
}

/*
 * Hash exchange @index (from 0) of the connection with flow_hash() @connection, uniformly over 0 …
 * 2^32 - 1. The exchange is sampled if the hash is below the threshold.
 */
static inline __attribute__((always_inline)) __u32 exchange_hash(__u32 connection, __u32 index)
{
	return flow_mix(connection + index * 0x9e3779b9U);
}

#endif
