// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * How connections begin and end: accepted connections, closes by kind, TIME_WAIT created.
 * inet_sock_set_state fires a few times per connection, never per request.
 */
#include "accept.h"
#include "arrival.h"
#include "place.h"
#include "sample.h"
#include "service.h"
#include "transmit.h"

/* Marks a listener: its children inherit the storage (BPF_F_CLONE), whatever their port. */
static __always_inline void listener_mark(const struct sock *sk)
{
	__u32 service = service_of_listener(sk, true);
	struct conn first = {.service = service, .flags = CONN_LISTENER};
	struct conn *c;

	if (service == SERVICE_NONE)
		return;
	c = conn_new(sk, &first);
	if (!c)
		return;
	*c = first; /* it may have listened before */
	owner_seen(service);
}

/* The child's storage; made here when cloning the listener's failed for want of memory. */
static __always_inline struct conn *child_storage(const struct sock *sk)
{
	struct service_key key = {};
	struct conn *c = conn_of(sk), first = {};
	struct service_slot *slot;

	if (c || !port_observed(sk->__sk_common.skc_num))
		return c;
	service_key_of(sk, &key);
	first.service = service_find(&key);
	if (first.service == SERVICE_NONE)
		return NULL;
	c = conn_new(sk, &first);
	if (c)
		return c;
	slot = slot_of(first.service);
	if (slot)
		count_atomic(slot, COUNTER_STORAGE_FAILED, 1);
	return NULL;
}

/* Typed, so that it works where programs may not read the kernel's memory at large (lockdown). */
static __always_inline __u32 retransmits_of(const struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);

	return tp ? tp->total_retrans : 0;
}

/* From its storage to its place, if there is one. What accept() has said of it meanwhile goes along. */
static __always_inline struct conn *conn_placed(const struct sock *sk, struct conn *c, __u64 now)
{
	struct conn *placed = place_take(sk, c, now);

	if (!placed)
		return c;
	if (PLAIN(&c->accepted_ns))
		placed->accepted_ns = c->accepted_ns;
	return placed;
}

static __always_inline void conn_established(const struct sock *sk)
{
	struct conn *c = child_storage(sk);
	struct service_slot *slot;
	__u64 now;

	if (!c)
		return;
	now = bpf_ktime_get_ns();
	c = conn_placed(sk, c, now);
	c->flags = 0;
	c->established_ns = now;
	c->retransmits = retransmits_of(sk);
	sample_connection(sk, c);
	slot = slot_of(c->service);
	if (slot)
		count_atomic(slot, COUNTER_ACCEPTED, 1);
	accept_expect(sk, c);
}

/* Typed too. */
static __always_inline bool has_unread(const struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);

	return tp && unread_between(sk, tp->copied_seq, tp->rcv_nxt);
}

/* The server's side is shut: whatever was read or is unread will not be answered any more. */
static __always_inline void conn_writes_over(const struct sock *sk, struct conn *c)
{
	struct service_slot *slot;

	if (c->flags & CONN_WRITES_OVER)
		return;
	c->flags |= CONN_WRITES_OVER;
	if (c->marks & MARK_MULTIPLEXED || (c->phase != CONN_READING && !has_unread(sk)))
		return;
	slot = slot_of(c->service);
	if (slot) {
		count_atomic(slot, COUNTER_UNANSWERED, 1);
		count_atomic(slot, COUNTER_BYTES_IN_UNANSWERED, c->bytes_in);
	}
	c->bytes_in = 0;
	c->phase = CONN_IDLE;
}

static __always_inline enum counter close_kind(const struct sock *sk, const struct conn *c, int old)
{
	if (sk->sk_err == ERR_TIMEDOUT)
		return COUNTER_TIMED_OUT;
	if (c->flags & CONN_RESET)
		return COUNTER_RESET_BY_CLIENT;
	if (old == TCP_ESTABLISHED || old == TCP_CLOSE_WAIT || old == TCP_SYN_RECV)
		return COUNTER_RESET_BY_SERVER;
	return c->flags & CONN_SERVER_FIN ? COUNTER_CLOSED_BY_SERVER : COUNTER_CLOSED_BY_CLIENT;
}

/*
 * Nothing ever enters state TIME_WAIT: a small twin replaces the socket, which goes straight to
 * CLOSE (tcp_time_wait(), net/ipv4/tcp_minisocks.c). From FIN_WAIT2 or CLOSING without an error
 * that is what happened; a failure to allocate the twin (TCPTimeWaitOverflow) looks the same.
 */
static __always_inline bool left_time_wait(const struct sock *sk, const struct conn *c, int old)
{
	return (old == TCP_FIN_WAIT2 || old == TCP_CLOSING) && !(c->flags & CONN_RESET) &&
	       !sk->sk_err;
}

static __always_inline void conn_closed(const struct sock *sk, struct conn *c, int old)
{
	struct service_slot *slot = slot_of(c->service);

	conn_writes_over(sk, c);
	sample_complete(sk, c);
	accept_forget(sk);
	if (slot) {
		count_atomic(slot, close_kind(sk, c, old), 1);
		if (left_time_wait(sk, c, old))
			count_atomic(slot, COUNTER_TIME_WAIT_CREATED, 1);
	}
	place_leave(sk);
	conn_free(sk);
}

/*
 * Behind the response only the FIN is sent, and the peer acknowledges both together or nearly so. TX
 * timestamps tell of the response by itself, tcp_probe fires only as long as nobody has sent a FIN.
 * What was acknowledged before, in CLOSE_WAIT, nobody saw when.
 */
static __always_inline void transmit_closing(const struct sock *sk, struct conn *c, int old,
					     int new)
{
	bool begins = new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK;
	bool over = new == TCP_FIN_WAIT2 || new == TCP_CLOSE;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);
	bool all = tp && !seq_after(c->sample.write_seq, tp->snd_una);

	if (over && all && !config.transmit_stamps &&
	    (old == TCP_FIN_WAIT1 || old == TCP_LAST_ACK || old == TCP_CLOSING))
		transmit_acked(c, c->sample.write_seq);
	if (over || (begins && (all || c->phase != CONN_RESPONDING)))
		transmit_end(sk, c);
}

static __always_inline void conn_changed(const struct sock *sk, int old, int new)
{
	struct conn *c = conn_of(sk);

	if (c && c->flags & CONN_LISTENER && new == TCP_CLOSE)
		conn_free(sk);
	if (!c || c->flags & CONN_LISTENER)
		return;
	if (config.transmit_below && c->marks & MARK_TRANSMIT)
		transmit_closing(sk, c, old, new);
	if (new == TCP_CLOSE_WAIT)
		c->flags |= c->flags & CONN_SERVER_FIN ? 0 : CONN_CLIENT_FIN;
	else if (new == TCP_FIN_WAIT1)
		c->flags |= CONN_SERVER_FIN;
	if (new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK)
		conn_writes_over(sk, c);
	else if (new == TCP_CLOSE)
		conn_closed(sk, c, old);
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(conn_state, const struct sock *sk, int old, int new)
{
	if (sk->sk_protocol != PROTO_TCP)
		return 0;
	if (new == TCP_LISTEN)
		listener_mark(sk);
	else if (new == TCP_ESTABLISHED && old == TCP_SYN_RECV)
		conn_established(sk);
	else if (new != TCP_SYN_RECV &&new != TCP_SYN_SENT)
		conn_changed(sk, old, new);
	return 0;
}

SEC("?tp_btf/tcp_receive_reset")
int BPF_PROG(conn_reset, struct sock *sk)
{
	struct conn *c = port_observed(sk->__sk_common.skc_num) ? conn_of(sk) : NULL;

	if (c)
		c->flags |= CONN_RESET;
	return 0;
}

/*
 * Once per buffer, which may hold many segments: their number is the socket's own. Since 6.18 it also
 * fires for what could not be sent, and then the number has not changed.
 */
SEC("?tp_btf/tcp_retransmit_skb")
int BPF_PROG(conn_retransmit, const struct sock *sk)
{
	struct conn *c = port_observed(sk->__sk_common.skc_num) ? conn_of(sk) : NULL;
	struct service_slot *slot = c ? slot_of(c->service) : NULL;
	__u32 total;

	if (!slot)
		return 0;
	total = retransmits_of(sk);
	count_atomic(slot, COUNTER_RETRANSMITS, total - c->retransmits);
	c->retransmits = total;
	return 0;
}
