/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Ephemeral ports in use, by destination. The pass over the sockets counts them. A socket with an
 * ephemeral port costs a hash and mostly one lookup, any other socket two compares.
 */
#ifndef BPF_PORTS_H
#define BPF_PORTS_H

#include "tcp/connection/sample.h"

/* Exclude a listener's port: connect() does not choose it, and its connections are incoming. */
static __always_inline void ports_hold(__u16 port)
{
	ports_held[port >> 6] |= 1ULL << (port & 63);
}

static __always_inline bool ports_has(__u16 port)
{
	return port >= ports_low && port <= ports_high &&
	       !(ports_held[port >> 6] & (1ULL << (port & 63)));
}

static __always_inline void ports_towards(const struct sock_common *skc, struct flow *ret_flow)
{
	ret_flow->server_port = __builtin_bswap16(skc->skc_dport);
	if (skc->skc_family == FAMILY_INET6 && bpf_core_field_exists(skc->skc_v6_daddr)) {
		flow_ipv6(ret_flow->client, &skc->skc_v6_rcv_saddr);
		flow_ipv6(ret_flow->server, &skc->skc_v6_daddr);
	} else {
		flow_ipv4(ret_flow->client, skc->skc_rcv_saddr);
		flow_ipv4(ret_flow->server, skc->skc_daddr);
	}
}

static __always_inline __u32 ports_hash(const struct flow *flow)
{
	const __u32 *from = flow->client, *to = flow->server;
	__u32 h = flow_add(0, from[0] ^ from[1] ^ from[2] ^ from[3]);

	h = flow_add(h, to[0] ^ to[1] ^ to[2] ^ to[3]);
	return flow_add(h, flow->server_port);
}

static __always_inline bool ports_same(const struct flow *a, const struct flow *b)
{
	for (int i = 0; i < 4; i++)
		if (a->client[i] != b->client[i] || a->server[i] != b->server[i])
			return false;
	return a->server_port == b->server_port;
}

/* A pass frees no place, so one place counts all sockets of a destination, or none does. */
static __always_inline void ports_count(const struct sock_common *skc)
{
	struct flow towards = {};
	__u32 hash;

	if (!ports_has(skc->skc_num))
		return;
	ports_towards(skc, &towards);
	if (!towards.server_port)
		return;
	hash = ports_hash(&towards);
	for (__u32 i = 0; i < PORT_TRIES; i++) {
		__u32 index = (hash + i) % PORT_PLACES;
		struct port_place *place = bpf_map_lookup_elem(&port_places, &index);

		if (!place)
			return;
		if (!place->towards.server_port)
			place->towards = towards;
		else if (!ports_same(&place->towards, &towards))
			continue;
		place->used++;
		return;
	}
	ports_unplaced++;
}

#endif
