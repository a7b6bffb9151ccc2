// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * With --calls: the connections that services' processes open to other places, and the reads and writes on them. These
 * programs run beside those for exchanges, which they leave alone. See calls.h.
 */
#include "calls.h"
#include "tcp/connection/mptcp.h"

struct call_conns_map call_conns SEC(".maps");
struct call_places_map call_places SEC(".maps");
struct call_rows_map call_rows SEC(".maps");
__u32 call_rows_taken = 0;

/* Return the row of a new place; CALL_ROWS: there is no room. */
static __always_inline __u32 call_row_new(const struct call_place *place)
{
	__u32 row = PLAIN(&call_rows_taken), *found;

	if (row >= CALL_ROWS)
		return CALL_ROWS;
	row = __sync_fetch_and_add(&call_rows_taken, 1);
	/* If another CPU was faster, this row stays unused. */
	if (row < CALL_ROWS && !bpf_map_update_elem(&call_places, place, &row, BPF_NOEXIST))
		return row;
	found = bpf_map_lookup_elem(&call_places, place);
	return found ? *found : CALL_ROWS;
}

static __always_inline __u32 call_row_of(const struct sock *sk, __u32 service)
{
	struct call_place place = {.service = service};
	struct flow flow = {};
	__u32 *found;

	flow_of_client(&sk->__sk_common, &flow);
	__builtin_memcpy(place.server, flow.server, sizeof(place.server));
	place.port = flow.server_port;
	found = bpf_map_lookup_elem(&call_places, &place);
	return found ? *found : call_row_new(&place);
}

/* Follow a connection of the current process, if that serves an observed service. */
static __always_inline struct call_conn *call_follow(const struct sock *sk, struct call_conn *first)
{
	__u32 pid = current_pid(), *service = bpf_map_lookup_elem(&serving, &pid);
	struct service_slot *slot = pid && service ? slot_of(*service) : NULL;
	struct call_conn *c;

	if (!slot)
		return NULL;
	first->service = *service;
	first->row = call_row_of(sk, *service);
	if (first->row >= CALL_ROWS) {
		count_atomic(slot, COUNTER_CALLS_LOST, 1);
		return NULL;
	}
	c = bpf_sk_storage_get(&call_conns, (void *)sk, first, BPF_SK_STORAGE_GET_F_CREATE);
	if (c)
		*c = *first;
	else
		count_atomic(slot, COUNTER_CALLS_LOST, 1);
	return c;
}

/*
 * Follow a connection that is older than the observation, or than the first connection to the service. Those that the
 * process has accepted have the backlog of their listener.
 */
static __always_inline struct call_conn *call_pick_up(const struct sock *sk)
{
	struct call_conn first = {.phase = CALL_JOINED, .looks = CALL_LOOKS}, *c;

	if (sk->sk_max_ack_backlog || sk->__sk_common.skc_state != TCP_ESTABLISHED)
		return NULL;
	c = call_follow(sk, &first);
	if (c)
		call_add(c, CALLS_OLDER, 1);
	return c;
}

static __always_inline void call_connects(const struct sock *sk)
{
	struct call_conn first = {.phase = CALL_NEW, .begin_ns = bpf_ktime_get_ns()};
	struct call_conn *c = bpf_sk_storage_get(&call_conns, (void *)sk, 0, 0);

	if (c) /* it has connected before */
		c->phase = CALL_IGNORED;
	(void)call_follow(sk, &first);
}

static __always_inline void call_connected(const struct sock *sk)
{
	struct call_conn *c = bpf_sk_storage_get(&call_conns, (void *)sk, 0, 0);
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);

	if (!c || !tp)
		return;
	if (c->phase == CALL_NEW && is_mptcp(tp)) {
		call_ignore(c, CALLS_UNSEEN);
	} else if (c->phase == CALL_NEW) {
		c->end_seq = tp->write_seq;
		call_number(sk, c);
	}
	call_add(c, CALLS_CONNECTS, 1);
	call_add(c, CALLS_CONNECT_NS, bpf_ktime_get_ns() - c->begin_ns);
}

/* By close(), in contrast to shutdown(SHUT_WR): SHUTDOWN_MASK of include/net/sock.h. */
#define SHUTDOWN_BOTH 3

/* Nothing more is read or written: a request that waits gets no answer. */
static __always_inline void call_ends(const struct sock *sk, int old, int new)
{
	struct call_conn *c = bpf_sk_storage_get(&call_conns, (void *)sk, 0, 0);

	if (!c || (new != TCP_CLOSE && sk->sk_shutdown != SHUTDOWN_BOTH))
		return;
	if (old == TCP_SYN_SENT)
		call_add(c, CALLS_CONNECTS_FAILED, 1);
	if (c->phase == CALL_WAITING)
		call_add(c, c->flags & CALL_SHORT ? CALLS_GIVEN_UP : CALLS_FAILED, 1);
	c->phase = CALL_IGNORED;
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(calls_state, const struct sock *sk, int old, int new)
{
	if (sk->sk_protocol != PROTO_TCP)
		return 0;
	if (new == TCP_SYN_SENT)
		call_connects(sk);
	else if (new == TCP_ESTABLISHED && old == TCP_SYN_SENT)
		call_connected(sk);
	else if (tcp_ends_writes(new))
		call_ends(sk, old, new);
	return 0;
}

/* Return whether a read or write may be of a connection to another place: accepted ones have an observed port. */
static __always_inline bool call_may_be(const struct sock *sk, int ret)
{
	return ret > 0 && sk->sk_protocol == PROTO_TCP &&
	       (sk->__sk_common.skc_family == FAMILY_INET ||
		sk->__sk_common.skc_family == FAMILY_INET6) &&
	       !port_observed(sk->__sk_common.skc_num);
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(calls_recv, struct sock *sk, int ret, int flags)
{
	struct call_conn *c;

	if (flags & FLAGS_NO_READ || !call_may_be(sk, ret))
		return 0;
	c = bpf_sk_storage_get(&call_conns, sk, 0, 0);
	if (c && c->phase != CALL_IGNORED)
		call_read(sk, c, ret);
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(calls_send, struct sock *sk, int ret, int flags)
{
	struct call_conn *c;

	if (!call_may_be(sk, ret))
		return 0;
	c = bpf_sk_storage_get(&call_conns, sk, 0, 0);
	if (!c)
		c = call_pick_up(sk);
	if (c && c->phase != CALL_IGNORED)
		call_written(sk, c, ret);
	return 0;
}
