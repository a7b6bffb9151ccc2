/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Which processes of this host connect to observed services: a service may be the upstream of another one
 * (docs/measurement.md, "Upstreams"). And to which places those connect that serve observed services: their upstream
 * may be observed on another host.
 *
 * Only connect() runs in the client's process, and it chooses the source port after SYN_SENT. So the process is first
 * noted by the client's socket. When that is established, which precedes the server's side, it is noted by the flow.
 */
#ifndef BPF_TCP_CONNECTION_FRONT_H
#define BPF_TCP_CONNECTION_FRONT_H

#include "sample.h"
#include "service.h"

/* A process reaches only services of its own network namespace in a way that can be followed. */
static __always_inline void connect_key_of(const struct sock *sk, const struct flow *flow,
					   __u32 hash, struct connect_key *ret_key)
{
	*ret_key = (struct connect_key){
		.socket = (__u64)flow->client_port << 16 | flow->server_port,
		.hash = hash,
		.netns = netns_inode(sk),
	};
}

static __always_inline bool to_observed_port(const struct sock *sk)
{
	return port_observed(__builtin_bswap16(sk->__sk_common.skc_dport));
}

/* A process connects, perhaps to an observed service, or serves one itself. */
static __always_inline void front_connects(const struct sock *sk)
{
	struct connect_key key = {.socket = (__u64)sk};
	__u32 pid = current_pid();

	if (pid && (to_observed_port(sk) || bpf_map_lookup_elem(&serving, &pid)))
		bpf_map_update_elem(&connects, &key, &pid, BPF_ANY);
}

/* Swap the ends, so that the flow is the one that the server's socket has. */
static __always_inline void flow_of_client(const struct sock_common *skc, struct flow *ret_flow)
{
	struct flow own;

	flow_of(skc, skc->skc_num, &own);
	__builtin_memcpy(ret_flow->client, own.server, sizeof(own.server));
	__builtin_memcpy(ret_flow->server, own.client, sizeof(own.client));
	ret_flow->client_port = own.server_port;
	ret_flow->server_port = own.client_port;
}

/* Count a connection of a process that serves an observed service, by where it leads. */
static __always_inline void call_count(const struct flow *flow, __u32 pid)
{
	struct call_key key = {.pid = pid, .port = flow->server_port};
	__u64 none = 0, *count;

	if (!bpf_map_lookup_elem(&serving, &pid))
		return;
	__builtin_memcpy(key.server, flow->server, sizeof(key.server));
	count = bpf_map_lookup_elem(&calls, &key);
	if (!count) {
		bpf_map_update_elem(&calls, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&calls, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* The process's connection is established, on its side. */
static __always_inline void front_connected(const struct sock *sk)
{
	struct connect_key key = {.socket = (__u64)sk};
	struct flow flow = {};
	__u32 *found, pid;

	found = bpf_map_lookup_elem(&connects, &key);
	if (!found)
		return;
	pid = *found;
	bpf_map_delete_elem(&connects, &key);
	flow_of_client(&sk->__sk_common, &flow);
	call_count(&flow, pid);
	if (!to_observed_port(sk))
		return;
	connect_key_of(sk, &flow, flow_hash(&flow), &key);
	bpf_map_update_elem(&connects, &key, &pid, BPF_ANY);
}

static __always_inline void front_count(__u32 service, __u32 pid)
{
	const struct owner_key key = {.service = service, .pid = pid};
	__u64 none = 0, *count = bpf_map_lookup_elem(&fronts, &key);

	if (!count) {
		bpf_map_update_elem(&fronts, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&fronts, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* The service's side is established: count whose connection it is, if that is a process of this host. */
static __always_inline void front_accepted(const struct sock *sk, const struct conn *c)
{
	struct connect_key key;
	struct flow flow = {};
	__u32 *pid;

	flow_of(&sk->__sk_common, sk->__sk_common.skc_num, &flow);
	connect_key_of(sk, &flow, c->flow_hash, &key);
	pid = bpf_map_lookup_elem(&connects, &key);
	if (!pid)
		return;
	front_count(c->service, *pid);
	bpf_map_delete_elem(&connects, &key);
}

#endif
