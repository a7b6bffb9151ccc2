// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Clients that connect, sides that close first, and connect() calls that found no source port (EADDRNOTAVAIL). All of
 * it comes from changes of a socket's state, a few per connection, without a hook on any system call.
 *
 * tcp_v4_connect() and tcp_v6_connect() set SYN_SENT and search a port. If there is none they go back to CLOSE, and
 * the socket has neither a source port nor an error. After a reset the socket has an error. After a connect() that
 * was given up it has a source port.
 *
 * The time in connect() is the time from SYN_SENT to ESTABLISHED, less the handshake's round trip. TCP has measured
 * the round trip by then (tcp_ack() comes before tcp_finish_connect()). The rest is mostly the search for a port. If
 * the SYN was sent twice there is no such measurement, and no time.
 */
#include "event.h"
#include "fin.h"
#include "netns.h"

struct event_conn {
	__u64 begin_ns; /* when SYN_SENT began */
	__u32 pid;	/* of the process that connected, later of the one that closed first */
	__u16 port;	/* the service's: the destination's, or our own */
	__u8 active;	/* we connected */
	__u8 pad;
	struct fin fin; /* if our side closed first */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct event_conn);
} event_conns SEC(".maps");

static __always_inline struct event_conn *conn_of(const struct sock *sk, bool make)
{
	return bpf_sk_storage_get(&event_conns, (void *)sk, 0,
				  make ? BPF_SK_STORAGE_GET_F_CREATE : 0);
}

/* connect() runs in its caller. */
static __always_inline void conn_begins(const struct sock *sk)
{
	struct event_conn *c = conn_of(sk, true);

	if (!c)
		return;
	c->begin_ns = bpf_ktime_get_ns();
	c->pid = event_pid();
	c->port = __builtin_bswap16(sk->__sk_common.skc_dport);
	c->active = 1;
}

static __always_inline void key_of(const struct sock *sk, __u32 pid, __u16 port,
				   enum event_kind kind, struct event_key *ret_key)
{
	ret_key->netns = netns_inode(sk);
	ret_key->pid = pid;
	ret_key->port = port;
	ret_key->kind = kind;
}

static __always_inline void conn_established(const struct sock *sk)
{
	struct event_conn *c = conn_of(sk, false);
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);
	struct event_key key = {};
	__u64 elapsed_ns, trip_ns;

	if (!c || !c->active || !tp || tp->total_retrans || !tp->srtt_us)
		return;
	elapsed_ns = bpf_ktime_get_ns() - c->begin_ns;
	trip_ns = (tp->srtt_us >> 3) * 1000ULL;
	key_of(sk, c->pid, c->port, EVENT_CONNECTED, &key);
	event_destination(sk, &key);
	event_acted(&key, elapsed_ns > trip_ns ? elapsed_ns - trip_ns : 0);
}

static __always_inline void conn_without_port(const struct sock *sk)
{
	struct event_conn *c = conn_of(sk, false);
	struct event_key key = {};

	key_of(sk, event_pid(), __builtin_bswap16(sk->__sk_common.skc_dport), EVENT_NO_PORT, &key);
	event_destination(sk, &key);
	event_failed(&key, c && c->active ? bpf_ktime_get_ns() - c->begin_ns : 0);
}

/* close() and shutdown() run in their caller; later on the port is gone from the socket. */
static __always_inline void conn_closes_first(const struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);
	struct event_conn *c = conn_of(sk, true);

	if (!c || !tp)
		return;
	fin_note(tp, &c->fin);
	c->pid = event_pid();
	if (!c->active)
		c->port = sk->__sk_common.skc_num;
}

static __always_inline void conn_left(const struct sock *sk, enum event_kind client,
				      enum event_kind server, bool by_current)
{
	struct event_conn *c = conn_of(sk, false);
	struct event_key key = {};
	__u32 pid = by_current ? event_pid() : c ? c->pid : 0;

	if (c && c->active) {
		key_of(sk, pid, c->port, client, &key);
		event_destination(sk, &key);
	} else {
		const struct inet_sock *inet = (const struct inet_sock *)sk;
		__u16 port = c ? c->port : 0;

		if (!port)
			port = __builtin_bswap16(BPF_CORE_READ(inet, inet_sport));
		key_of(sk, pid, port, server, &key);
	}
	event_acted(&key, 0);
}

/* Return whether the socket left a twin in TIME_WAIT. If its FIN was not seen, no data is taken to be refused. */
static __always_inline bool conn_left_twin(const struct sock *sk, int before)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);
	struct event_conn *c = conn_of(sk, false);
	struct fin fin = {};

	if (c)
		fin = c->fin;
	return fin_left_twin(sk, tp, &fin, before);
}

static __always_inline void conn_ended(const struct sock *sk, int before)
{
	if (before == TCP_SYN_SENT) {
		if (!sk->sk_err && !BPF_CORE_READ((const struct inet_sock *)sk, inet_sport))
			conn_without_port(sk);
	} else if (sk->sk_err) {
		return;
	} else if (conn_left_twin(sk, before)) {
		conn_left(sk, EVENT_TIME_WAIT_CLIENT, EVENT_TIME_WAIT_SERVER, false);
	} else if (before == TCP_ESTABLISHED || before == TCP_CLOSE_WAIT) {
		conn_left(sk, EVENT_RESET_CLIENT, EVENT_RESET_SERVER, true);
	} else if (before == TCP_FIN_WAIT1 || before == TCP_FIN_WAIT2) {
		conn_left(sk, EVENT_RESET_CLIENT, EVENT_RESET_SERVER, false);
	}
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(event_conn_state, const struct sock *sk, int before, int after)
{
	if (sk->sk_protocol != PROTO_TCP)
		return 0;
	if (after == TCP_SYN_SENT)
		conn_begins(sk);
	else if (after == TCP_ESTABLISHED && before == TCP_SYN_SENT)
		conn_established(sk);
	else if (after == TCP_FIN_WAIT1)
		conn_closes_first(sk);
	else if (after == TCP_CLOSE)
		conn_ended(sk, before);
	return 0;
}
