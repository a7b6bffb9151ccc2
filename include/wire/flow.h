/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Who talks to whom, in one form for kernel, observer and driver, and the hash by which all of them
 * sample the same exchanges without talking to each other (docs/measurement.md, consistent sampling).
 */
#ifndef WIRE_FLOW_H
#define WIRE_FLOW_H

#include <linux/types.h>

/*
 * A TCP connection or a UDP pair. Addresses in network order, IPv4 as ::ffff:a.b.c.d (RFC 4291,
 * 2.5.5.2): a server on [::] and its IPv4 client name the same flow alike. Ports in host order.
 */
struct flow {
	__u32 client[4];
	__u32 server[4];
	__u16 client_port;
	__u16 server_port;
};

_Static_assert(sizeof(struct flow) == 36, "compared as bytes: no padding");

/* MurmurHash3's finalizer (Appleby, 2011, public domain): every bit of @h reaches every other. */
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
 * Hash of @flow; the order of its words matters. Member by member: read through a pointer to words,
 * the ports would be those of before they were set (GCC, strict aliasing).
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
 * Hash of the exchange that is number @index (from 0) on a connection whose flow_hash() is
 * @connection. It is sampled where this is below the threshold: uniform over 0 … 2^32 - 1.
 */
static inline __attribute__((always_inline)) __u32 exchange_hash(__u32 connection, __u32 index)
{
	return flow_mix(connection + index * 0x9e3779b9U);
}

#endif
