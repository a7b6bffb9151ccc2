// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Where an exchange's time goes: arrival, reads and writes on one connection, cut into stages.
 *
 *   sk_data_ready      softirq: data became readable (and, on a listener, a child was queued)
 *   sock_recv_length   process: a read returned
 *   sock_send_length   process: a write returned
 *
 * These three run for every request: each tests a bit before it calls any helper, looks up the
 * connection once and the service's slot at most once. What they do is in exchange.h.
 */
#include "state.h"

/*
 * A kernel object seen as a type that it is part of, without a copy (since Linux 6.2).
 * Declared in this file alone: libbpf 1.1 cannot link two declarations of a kfunc.
 */
#define RDONLY(ptr, type) ((type *)bpf_rdonly_cast(ptr, bpf_core_type_id_kernel(type)))

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

#define TCP_FIELD(sk, field) (RDONLY(sk, struct tcp_sock)->field)

#include "exchange.h"

/*
 * How deep each listener's accept queue gets, of whatever port: what event_backlog.bpf.c sees for the
 * doctor, which would be a second program of ours at every segment.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);	/* the socket's cookie */
	__type(value, __u32);
} listener_depths SEC(".maps");

static __always_inline void listener_depth(const struct sock *sk, __u32 depth)
{
	__u64 cookie = bpf_get_socket_cookie((void *)sk);
	__u32 *deepest = bpf_map_lookup_elem(&listener_depths, &cookie);

	if (!deepest)
		bpf_map_update_elem(&listener_depths, &cookie, &depth, BPF_NOEXIST);
	else if (depth > *deepest)
		*deepest = depth;
}

static __always_inline void listener_ready(const struct sock *sk)
{
	__u32 depth = sk->sk_ack_backlog;
	struct service_slot *slot;
	struct conn *c;

	if (config.listener_depths)
		listener_depth(sk, depth);
	if (!port_observed(sk->__sk_common.skc_num))
		return;
	c = conn_of(sk);
	slot = c ? slot_of(c->service) : NULL;
	if (slot && depth > slot->depth_max)
		slot->depth_max = depth;
}

static __always_inline void exchange_arrival(const struct sock *sk)
{
	struct conn *c = conn_of(sk);

	if (!c || !arrival_awaited(c))
		return;
	/* A FIN alone raises sk_data_ready too; it is no request. */
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED && !unread_bytes(sk))
		return;
	arrival_note(sk, c);
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(exchange_ready, const struct sock *sk)
{
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		listener_ready(sk);
	else if (port_observed(sk->__sk_common.skc_num) && !config.floor)
		exchange_arrival(sk);
	return 0;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(exchange_recv, struct sock *sk, int ret, int flags)
{
	if (ret <= 0 || flags & FLAG_PEEK)
		return 0;
	if (!port_observed(sk->__sk_common.skc_num) || config.floor)
		return 0;
	exchange_read(sk, ret);
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(exchange_send, struct sock *sk, int ret, int flags)
{
	if (ret <= 0)
		return 0;
	if (!port_observed(sk->__sk_common.skc_num) || config.floor)
		return 0;
	exchange_write(sk, ret);
	return 0;
}
