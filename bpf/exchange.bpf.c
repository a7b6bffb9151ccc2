// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Where an exchange's time goes: arrival, reads and writes on one connection, cut into stages.
 *
 *   sk_data_ready      softirq: data became readable (and, on a listener, a child was queued)
 *   sock_recv_length   process: a read returned
 *   sock_send_length   process: a write returned
 *
 * These three run for every request: each tests a bit before it calls any helper, looks up the
 * connection once and the service's slot at most once. Rules: docs/measurement.md.
 */
#include "accept.h"
#include "preface.h"
#include "service.h"

/*
 * A kernel object seen as a type that it is part of, without a copy (since Linux 6.2).
 * Declared in this file alone: libbpf 1.1 cannot link two declarations of a kfunc.
 */
#define RDONLY(ptr, type) ((type *)bpf_rdonly_cast(ptr, bpf_core_type_id_kernel(type)))

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* Bytes received in order and not yet read; a FIN counts as one until it was read as EOF. */
static __always_inline __u32 unread_bytes(const struct sock *sk)
{
	const struct tcp_sock *tp = RDONLY(sk, struct tcp_sock);
	__u32 unread = tp->rcv_nxt - tp->copied_seq;

	if (unread && sk->__sk_common.skc_state != TCP_ESTABLISHED)
		unread--;
	return unread;
}

static __always_inline void listener_ready(const struct sock *sk)
{
	struct conn *c = conn_of(sk);
	struct service_slot *slot = c ? slot_of(c->service) : NULL;

	if (slot && sk->sk_ack_backlog > slot->depth_max)
		slot->depth_max = sk->sk_ack_backlog;
}

static __always_inline void exchange_arrival(const struct sock *sk)
{
	struct conn *c = conn_of(sk);

	if (!c || c->arrival_ns || c->flags & CONN_WRITES_OVER)
		return;
	/* A FIN alone raises sk_data_ready too; it is no request. */
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED && !unread_bytes(sk))
		return;
	if (!c->touched && !sk->sk_socket)
		c->flags |= CONN_QUEUED;
	c->arrival_write_seq = RDONLY(sk, struct tcp_sock)->write_seq;
	c->arrival_ns = bpf_ktime_get_ns();
}

/* First read or write of the server on a connection: it has been accepted. */
static __always_inline __u64 conn_touched(const struct sock *sk, struct conn *c, __u64 now)
{
	struct service_slot *slot = slot_of(c->service);
	__u64 accepted_ns;

	c->touched = 1;
	owner_seen(c->service);
	if (!slot || !c->established_ns)
		return 0;
	accepted_ns = accept_time(sk, c, now);
	if (!accepted_ns)
		count(slot, COUNTER_ACCEPT_UNSEEN, 1);
	else if (accept_unrecorded(c, accepted_ns))
		stage_add(&slot->stages[STAGE_ACCEPT_QUEUE], accept_wait(c, accepted_ns));
	if (accepted_ns > c->arrival_ns && c->arrival_ns) {
		count(slot, COUNTER_ACCEPT_DELAYED, 1);
		count(slot, COUNTER_ACCEPT_DELAY_NS, accepted_ns - c->arrival_ns);
	}
	return accepted_ns;
}

/*
 * The server wrote between arrival and first read: the request came before the previous response
 * was complete. Not told by time: on loopback the client may have read the response, and sent its
 * next request, before the server's write has returned.
 */
static __always_inline bool pipelined(const struct sock *sk, const struct conn *c)
{
	return c->arrival_write_seq != RDONLY(sk, struct tcp_sock)->write_seq;
}

/*
 * Takes the arrival time of what was just read. It is cleared before looking for more: data that
 * arrives in between then sets its own time, instead of finding the old one and being lost with it.
 */
static __always_inline __u64 take_arrival(const struct sock *sk, struct conn *c)
{
	__u64 arrival_ns = __sync_lock_test_and_set(&c->arrival_ns, 0);

	if (unread_bytes(sk))
		__sync_val_compare_and_swap(&c->arrival_ns, 0, arrival_ns);
	return arrival_ns;
}

/* Only from its very first bytes, so not on connections older than the observation. */
static __always_inline void recognise_http2(struct conn *c, __u32 bytes)
{
	struct service_slot *slot;

	if (!c->established_ns || !read_http2_preface(bytes))
		return;
	c->multiplexed = 1;
	slot = slot_of(c->service);
	if (slot)
		count(slot, COUNTER_MULTIPLEXED, 1);
}

static __always_inline void exchange_read(const struct sock *sk, __u32 bytes)
{
	struct conn *c = conn_of(sk);
	__u64 now, arrival_ns, accepted_ns = 0;

	if (!c)
		return;
	now = bpf_ktime_get_ns();
	if (!c->touched)
		accepted_ns = conn_touched(sk, c, now);
	if (!c->last_read_ns)
		recognise_http2(c, bytes);
	arrival_ns = take_arrival(sk, c);
	c->bytes_in += bytes;
	c->last_read_ns = now;
	if (c->multiplexed || c->phase == CONN_READING || c->flags & CONN_WRITES_OVER)
		return;
	c->phase = CONN_READING;
	c->first_read_ns = now;
	c->overlapped = arrival_ns && pipelined(sk, c);
	c->start_ns = arrival_ns > accepted_ns || !arrival_ns ? arrival_ns : accepted_ns;
}

/* The response begins: everything but its own length is known. */
static __always_inline void exchange_answered(struct conn *c, struct service_slot *slot, __u64 now)
{
	count(slot, COUNTER_EXCHANGES, 1);
	count(slot, COUNTER_BYTES_IN, c->bytes_in);
	c->bytes_in = 0;
	c->phase = CONN_RESPONDING;
	c->respond_bucket = 0;
	if (c->overlapped)
		count(slot, COUNTER_OVERLAPPED, 1);
	if (!c->start_ns) {
		count(slot, COUNTER_UNTIMED, 1);
	} else {
		note_messages(slot, c->start_ns, now);
		stage_add(&slot->stages[STAGE_SOCKET_QUEUE], c->first_read_ns - c->start_ns);
		if (c->last_read_ns != c->first_read_ns)
			stage_add(&slot->stages[STAGE_RECEIVE], c->last_read_ns - c->first_read_ns);
		stage_add(&slot->stages[STAGE_SERVICE], now - c->last_read_ns);
	}
	c->first_write_ns = now;
	c->last_write_ns = now;
}

/*
 * The response goes on: its RESPOND time moves from bucket to bucket, so that every reading shows
 * each exchange once, with what is known of it. The decrement may happen on another CPU than the
 * increment: only the sum over the CPUs means something.
 */
static __always_inline void exchange_responding(struct conn *c, struct service_slot *slot,
						__u64 now)
{
	struct stage_histogram *h = &slot->stages[STAGE_RESPOND];
	__u64 respond_ns = now - c->first_write_ns;
	__u32 old = c->respond_bucket;
	bool counted = old;

	/* Or clang makes old - 1 < BUCKET_COUNT - 1 of both tests, which bounds nothing for 6.12. */
	barrier_var(old);
	if (c->start_ns && respond_ns) {
		if (counted && old < BUCKET_COUNT) {
			h->buckets[old]--;
			h->sum_ns -= c->last_write_ns - c->first_write_ns;
		}
		stage_add(h, respond_ns);
		c->respond_bucket = bucket_of(respond_ns);
		slot->last_message_ns = now;
	}
	c->last_write_ns = now;
}

static __always_inline void unsolicited(struct conn *c, struct service_slot *slot)
{
	bool first = c->flags & CONN_PREEXISTING && !c->last_write_ns && !c->last_read_ns;

	count(slot, first ? COUNTER_CUT_OFF : COUNTER_UNSOLICITED, 1);
}

static __always_inline void exchange_write(const struct sock *sk, __u32 bytes)
{
	struct conn *c = conn_of(sk);
	struct service_slot *slot;
	__u64 now;

	if (!c)
		return;
	slot = slot_of(c->service);
	if (!slot)
		return;
	now = bpf_ktime_get_ns();
	if (!c->touched)
		conn_touched(sk, c, now);
	count(slot, COUNTER_BYTES_OUT, bytes);
	if (c->multiplexed) {
		count(slot, COUNTER_BYTES_IN, c->bytes_in);
		c->bytes_in = 0;
	} else if (c->phase == CONN_READING) {
		exchange_answered(c, slot, now);
	} else if (c->phase == CONN_RESPONDING) {
		exchange_responding(c, slot, now);
	} else {
		unsolicited(c, slot);
		c->last_write_ns = now;
	}
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(exchange_ready, const struct sock *sk)
{
	if (!port_observed(sk->__sk_common.skc_num) || config.floor)
		return 0;
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		listener_ready(sk);
	else
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
