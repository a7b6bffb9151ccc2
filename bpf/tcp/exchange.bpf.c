// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Where an exchange's time goes: arrival, reads and writes on one connection, cut into stages.
 *
 *   sk_data_ready      softirq: data became readable (and, on a listener, a child was queued)
 *   sock_recv_length   process: a read returned
 *   sock_send_length   process: a write returned
 *
 * These three run for every request. Each tests a bit before it calls any helper, looks up the connection once, and
 * the service's slot at most once. exchange.h has their rules.
 */
#include "state.h"

/*
 * View a kernel object as a type that it is part of, without a copy (since Linux 6.2). Declared
 * only in this file: libbpf 1.1 cannot link two declarations of a kfunc.
 */
#define RDONLY(ptr, type) ((type *)bpf_rdonly_cast(ptr, bpf_core_type_id_kernel(type)))

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* bpf_loop() is older than the tracepoints. */
#define WALK_CALLS
/* sk_data_ready and sock_send_length run within the call in which TCP has read the clock. */
#define TCP_CLOCK
#define TCP_FIELD(sk, field) (RDONLY(sk, struct tcp_sock)->field)
/* For what @sk points to, see netns.h. */
#define UNTRUSTED(sk) ((const struct sock *)RDONLY(sk, struct tcp_sock))
#define ACCEPTED(sk)  (!!UNTRUSTED(sk)->sk_socket)
#define STREAMS_BESIDE

#include "exchange.h"
#include "commands.h"
#include "listener.h"
#include "older_pushes.h"
#include "pipeline.h"
#include "pushes.h"
#include "tcp/tls/clear_pushes.h"

/* Depths of all listeners' queues, instead of doctor/backlog.bpf.c's. The size is set before load. */
LISTENER_DEPTHS(listener_depths, 1);

/* Raise depth_max to @depth. Several CPUs may do this at once, and none may lower it. */
static __always_inline void listener_deepest(struct conn *c, __u32 depth)
{
	__u32 old = PLAIN(&c->depth_max), seen;

	for (int i = 0; i < 4 && depth > old; i++) {
		seen = __sync_val_compare_and_swap(&c->depth_max, old, depth);
		if (seen == old)
			return;
		old = seen;
	}
}

static __always_inline void listener_ready(const struct sock *sk)
{
	__u32 depth = sk->sk_ack_backlog;
	struct service_key key = {};
	struct service_slot *slot;
	struct conn *c;

	if (config.listener_depths)
		listener_depth(&listener_depths, sk);
	if (!port_observed(sk->__sk_common.skc_num))
		return;
	c = conn_of(sk);
	slot = c ? slot_of(c->service) : NULL;
	if (c && !slot) {
		/* The service got slots with its first connection. A helper here (netns.h) would slow down every arrival. */
		service_key_in(UNTRUSTED(sk)->__sk_common.skc_net.net, sk->__sk_common.skc_num,
			       &key);
		c->service = service_find(&key);
		slot = slot_of(c->service);
	}
	if (slot)
		copy_raise(&slot->depth_max, depth);
	if (slot && c->flags & CONN_LISTENER)
		listener_deepest(c, depth);
}

/* @http: streams of HTTP/2 are followed. */
static __always_inline void exchange_arrival(const struct sock *sk, bool http)
{
	struct conn *c = conn_of(sk);
	__u32 begin, oldest, end;

	if (!c || c->flags & CONN_WRITES_OVER)
		return;
	oldest = TCP_FIELD(sk, copied_seq);
	end = TCP_FIELD(sk, rcv_nxt);
	/* A FIN alone raises sk_data_ready too; it is no request. */
	if (!unread_between(sk, oldest, end))
		return;
	begin = c->announced;
	arrival_note(sk, c, oldest, end);
	if (http && c->marks & MARK_MULTIPLEXED && seq_after(end, begin))
		streams_arrival(sk, arrival_range(begin, end));
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(exchange_ready, const struct sock *sk)
{
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		listener_ready(sk);
	else if (port_observed(sk->__sk_common.skc_num))
		exchange_arrival(sk, false);
	return 0;
}

/* Return the connection of a read or write that has moved @ret bytes. NULL: it is not observed. */
static __always_inline struct conn *conn_observed(const struct sock *sk, int ret)
{
	return ret > 0 && port_observed(sk->__sk_common.skc_num) ? conn_of(sk) : NULL;
}

static __always_inline struct conn *conn_read(const struct sock *sk, int ret, int flags)
{
	return flags & FLAGS_NO_READ ? NULL : conn_observed(sk, ret);
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(exchange_recv, struct sock *sk, int ret, int flags)
{
	struct conn *c = conn_read(sk, ret, flags);

	if (c)
		exchange_read(sk, c, ret, flags, false);
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(exchange_send, struct sock *sk, int ret, int flags)
{
	struct conn *c = conn_observed(sk, ret);

	if (c)
		exchange_write(sk, c, ret, false);
	return 0;
}

/*
 * The streams of HTTP/2 alone, beside the plain programs (beside.h). Those below could do it, but the verifier would check
 * every function that they may call: most of the CPU time of a start.
 */
SEC("?tp_btf/sk_data_ready")
int BPF_PROG(streams_ready, const struct sock *sk)
{
	if (port_observed(sk->__sk_common.skc_num))
		beside_arrival(sk);
	return 0;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(streams_recv, struct sock *sk, int ret, int flags)
{
	struct conn *c = conn_read(sk, ret, flags);

	if (c)
		beside_read(sk, c, ret, flags);
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(streams_send, struct sock *sk, int ret, int flags)
{
	struct conn *c = conn_observed(sk, ret);

	if (c)
		beside_write(sk, c, ret);
	return 0;
}

/* All of it with --http or --protocol, in separate programs: the plain ones pay nothing for it. */
SEC("?tp_btf/sk_data_ready")
int BPF_PROG(exchange_ready_http, const struct sock *sk)
{
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		listener_ready(sk);
	else if (port_observed(sk->__sk_common.skc_num))
		exchange_arrival(sk, config.streams);
	return 0;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(exchange_recv_http, struct sock *sk, int ret, int flags)
{
	struct conn *c = conn_read(sk, ret, flags);
	__u64 last_read_ns;

	if (!c || (config.streams && http2_read(sk, c, ret, flags)) ||
	    commands_read(sk, c, ret, flags))
		return 0;
	if (config.route_rows)
		c->route_skip = ret; /* unless the read has bytes of a message */
	last_read_ns = pipeline_last_read(c);
	exchange_read(sk, c, ret, flags, config.streams);
	if (config.route_rows)
		route_follow(sk, c, ret, flags);
	if (config.http)
		pipeline_follow(sk, c, ret, flags, last_read_ns);
	if (config.http) {
		pushes_read(sk, c, ret, flags);
		older_pushes_read(sk, c, ret, flags);
	}
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(exchange_send_http, struct sock *sk, int ret, int flags)
{
	struct conn *c = conn_observed(sk, ret);
	int suspicion;
	__u32 phase;

	if (!c || (config.streams && http2_write(sk, c, ret)) ||
	    (config.http && pushes_write(sk, c, ret)) || commands_write(sk, c, ret) ||
	    (config.http && older_pushes_write(sk, c, ctx[1])))
		return 0;
	phase = c->phase;
	suspicion = exchange_write(sk, c, ret, config.http);
	if (config.command_count && phase == CONN_READING && c->phase == CONN_RESPONDING)
		commands_none(sk, c);
	if (config.tls && phase == CONN_READING && c->phase == CONN_RESPONDING &&
	    c->marks & MARK_TLS)
		clear_pushes_follow(c);
	/* The argument is read again: the verifier would go this way once for each thing that it knows of @ret. */
	if (suspicion == PUSH_SUSPECTED)
		pushes_follow(sk, c, ctx[1], 0);
	else if (suspicion == PUSH_CUT_SHORT)
		pushes_cut_short(sk);
	return 0;
}
