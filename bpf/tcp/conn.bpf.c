// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * How connections begin and end: accepted connections, closes by kind, TIME_WAIT created.
 * inet_sock_set_state fires a few times per connection, never per request.
 */
#include "service.h"
#include "tcp/connection/accept.h"
#include "tcp/connection/arrival.h"
#include "tcp/connection/front.h"
#include "tcp/connection/mptcp.h"
#include "tcp/connection/place.h"
#include "tcp/connection/sample.h"
#include "tcp/connection/transmit.h"
#include "tcp/http/older.h"
#include "tcp/tls/tls.h"

/* Mark a listener: its children inherit the storage (BPF_F_CLONE), whatever their port. */
static __always_inline void listener_mark(const struct sock *sk)
{
	struct conn first = {.flags = CONN_LISTENER};
	struct service_key key = {};
	struct conn *c;

	service_key_of(sk, &key);
	if (!listener_wanted(&key, true))
		return;
	first.service = service_of_listener(&key);
	c = conn_new(sk, &first);
	if (!c)
		return;
	*c = first; /* it may have listened before */
	c->drops = (__u32)sk->sk_drops.counter;
	c->drops_before = c->drops;
	owner_seen(first.service);
}

/*
 * Return the child's storage, a copy of the listener's. It is made here if the listener has none: it was idle when
 * the observation began, or the kernel had no memory. The listener's service may have no slot yet, or not any more.
 * NULL: the connection is not observed, and @connections counts it as such.
 */
static __always_inline struct conn *child_storage(const struct sock *sk, __u64 connections)
{
	struct conn *c = conn_of(sk);
	struct service_key key = {};
	struct service_slot *slot;
	__u32 service;

	if (c && slot_of(c->service))
		return c;
	service_key_of(sk, &key);
	if (!c && (!port_observed(key.port) || !listener_wanted(&key, false)))
		return NULL;
	service = service_of_connection(&key, connections);
	if (!c && service != SERVICE_NONE)
		c = conn_new(sk, (void *)conn_nothing);
	if (c) {
		c->service = service;
		c->flags |= CONN_LISTENER; /* until it is established, like a copy */
		return service == SERVICE_NONE ? NULL : c;
	}
	slot = slot_of(service);
	if (slot)
		count_atomic(slot, COUNTER_STORAGE_FAILED, 1);
	return NULL;
}

/*
 * Typed, so that it also works under lockdown, where programs may not read arbitrary kernel memory.
 */
static __always_inline const struct tcp_sock *tcp_of(const struct sock *sk)
{
	return bpf_skc_to_tcp_sock((void *)sk);
}

static __always_inline __u32 retransmits_of(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_of(sk);

	return tp ? tp->total_retrans : 0;
}

/* Copy the socket's own data when the connection is established. */
static __always_inline void conn_begins(const struct sock *sk, struct conn *c,
					struct service_slot *slot)
{
	const struct tcp_sock *tp = tcp_of(sk);

	if (!tp)
		return;
	c->retransmits = tp->total_retrans;
	if (!c->touched) {
		c->announced = tp->rcv_nxt;
		c->read_seq = tp->copied_seq;
	}
	mptcp_note(tp, c, slot);
}

/*
 * Move a connection from its storage to its place, if there is one, with the data that accept() has added meanwhile. The
 * storage stays, and is found again once the place is left: by a read, say, within which the client's RST comes. It
 * belongs to no service from now on.
 */
static __always_inline struct conn *conn_placed(const struct sock *sk, struct conn *c, __u64 now)
{
	struct conn *placed = place_take(sk, c, now);

	if (!placed)
		return c;
	if (PLAIN(&c->accepted_ns))
		placed->accepted_ns = c->accepted_ns;
	c->service = SERVICE_NONE;
	return placed;
}

static __always_inline void conn_established(const struct sock *sk)
{
	struct conn *c = child_storage(sk, 1);
	struct service_slot *slot;
	__u64 now;

	if (!c)
		return;
	now = bpf_ktime_get_ns();
	c = conn_placed(sk, c, now);
	c->flags = 0;
	c->established_ns = now;
	sample_connection(sk, c);
	slot = slot_of(c->service);
	conn_begins(sk, c, slot);
	if (slot) {
		count_atomic(slot, COUNTER_ACCEPTED, 1);
		front_accepted(sk, c);
	}
	accept_expect(sk, c);
}

/* The length of the longest alert record of TLS 1.2, with the usual ciphers. */
#define ALERT_LONGEST 31

/* Return whether the bytes after @seq may be a request. Typed like tcp_of(). */
static __always_inline bool has_request(const struct sock *sk, const struct conn *c, __u32 seq)
{
	const struct tcp_sock *tp = tcp_of(sk);
	__u32 bytes = tp ? unread_between(sk, seq, tp->rcv_nxt) : 0;

	return bytes > (c->marks & MARK_TLS ? ALERT_LONGEST : 0);
}

static __always_inline bool has_unread(const struct sock *sk, const struct conn *c)
{
	const struct tcp_sock *tp = tcp_of(sk);

	return tp && has_request(sk, c, tp->copied_seq);
}

/*
 * Return whether a request was taken from the socket, and no read of it was seen. The client's RST may come within the
 * read: TCP handles it before the read returns, to a connection that is forgotten by then.
 */
static __always_inline bool read_within(const struct sock *sk, const struct conn *c)
{
	return c->phase != CONN_READING && has_request(sk, c, c->read_seq);
}

/*
 * Return when a request became readable that will not be answered. If that is not known, return when
 * it was first read, or 0.
 */
static __always_inline __u64 waits_since(struct conn *c)
{
	struct arrival arrival;

	if (c->phase == CONN_READING)
		return c->start_ns ? c->start_ns - c->accept_delay_ns : c->first_read_ns;
	arrival_of(c, c->read_seq, &arrival);
	return arrival.ns;
}

/*
 * Return whether the message without an answer came before the server's last write. It may be the rest of the request
 * that was answered then, or a pipelined one. In TLS that write may be an alert. Arrivals beside unread bytes are not
 * looked up: that would take more stack than there is.
 */
static __always_inline bool may_be_answered(const struct sock *sk, const struct conn *c)
{
	const struct tcp_sock *tp = tcp_of(sk);

	if (!c->last_write_ns || c->marks & MARK_TLS || !tp)
		return false;
	if (c->phase == CONN_READING)
		return c->marks & MARK_OVERLAPPED;
	return c->arrival_write_seq[c->newest & 1] != tp->write_seq;
}

static __always_inline void abandoned(const struct sock *sk, struct conn *c,
				      struct service_slot *slot)
{
	__u64 since_ns = waits_since(c), now = bpf_ktime_get_ns();

	if (may_be_answered(sk, c))
		return;
	count_atomic(slot, COUNTER_UNANSWERED, 1);
	if (since_ns && since_ns <= now)
		span_add(c->service, SPAN_ABANDONED, now - since_ns);
}

/*
 * Return whether the last message was read and wanted no answer. In HTTP/1 each request wants one,
 * however soon its client leaves.
 */
static __always_inline bool said_goodbye(const struct conn *c)
{
	if ((c->marks & (MARK_HTTP1 | MARK_TLS)) == MARK_HTTP1)
		return false;
	return c->flags & CONN_GOODBYE || c->marks & MARK_GOODBYE;
}

/*
 * Return how many bytes of the response are written, though no write has returned. On loopback the client may have read
 * the response and reset the connection before that. Each write that has returned ended CONN_READING, and one between
 * arrival and read makes the request MARK_OVERLAPPED. In TLS the bytes may be an alert. After the client's FIN nobody
 * may have been there to read them.
 */
static __always_inline __u32 written_unseen(const struct sock *sk, const struct conn *c)
{
	const struct tcp_sock *tp = tcp_of(sk);

	if (!tp || c->phase != CONN_READING || !c->start_ns || c->flags & CONN_CLIENT_FIN ||
	    c->marks & (MARK_TLS | MARK_OVERLAPPED | MARK_MULTIPLEXED))
		return 0;
	return tp->write_seq - c->arrival_write_seq[c->newest & 1];
}

/* Return whether the connection ends within the write of its response. The write returns to no connection. */
static __always_inline bool response_cut(const struct sock *sk, struct conn *c,
					 struct service_slot *slot)
{
	__u32 bytes = written_unseen(sk, c);

	if (!bytes)
		return false;
	count_atomic(slot, COUNTER_CUT_RESPONSES, 1);
	count_atomic(slot, COUNTER_CUT_BYTES, bytes);
	if (c->marks & MARK_HTTP1)
		count_atomic(slot, COUNTER_CUT_HTTP, 1);
	return true;
}

/* A connection with HTTP/2 ends. Count it here if the programs that follow streams are not attached yet (beside.h). */
static __always_inline void beside_ends(const struct sock *sk, const struct conn *c)
{
	struct http2_stored *stored = NULL;

	if (config.beside && !streams_attached)
		stored = bpf_sk_storage_get(&http2_conns, (void *)sk, 0, 0);
	if (!stored)
		return;
	stored->conn.service = c->service;
	(void)http2_sought_to_the_end(&stored->conn);
}

/*
 * Return whether plain text has not decided before this what the connection carries (tls_decides() of speaks.h). Whether it has
 * by now is not asked: on 6.8 the stack has no room for a call here.
 */
static __always_inline bool is_undecided(const struct sock *sk, const struct conn *c)
{
	const struct talk *t = NULL;

	if (config.tls && (c->marks & (MARK_TLS | MARK_HTTP1)) == MARK_TLS)
		t = talk_of(sk);
	return t && t->flags & TLS_UNDECIDED;
}

/* The server's side is shut: no read or unread request will be answered. @reset: by the client's RST. */
static __always_inline void conn_writes_over(const struct sock *sk, struct conn *c, __u64 reset)
{
	__u64 unread = has_unread(sk, c), within = !unread && read_within(sk, c);
	struct service_slot *slot;

	FORGET(reset, REREAD(&c->service));
	FORGET(unread, REREAD(&c->service));
	FORGET(within, REREAD(&c->service));
	if (c->flags & CONN_WRITES_OVER)
		return;
	c->flags |= CONN_WRITES_OVER;
	if (c->marks & MARK_MULTIPLEXED)
		beside_ends(sk, c);
	if (c->marks & MARK_MULTIPLEXED || (c->phase != CONN_READING && !unread && !within) ||
	    is_undecided(sk, c))
		return;
	slot = slot_of(c->service);
	if (slot && !unread && reset && response_cut(sk, c, slot))
		; /* it is counted as an exchange */
	else if (slot && (within ? c->flags & CONN_GOODBYE : !unread && said_goodbye(c)))
		count_atomic(slot, COUNTER_GOODBYES, 1);
	else if (slot)
		abandoned(sk, c, slot);
	c->bytes_in = 0;
	c->phase = CONN_IDLE;
}

/* The longest time between a message and a FIN that was sent right after it. */
#define GOODBYE_NS 1000000

/*
 * Note the client's FIN. If it came with or right after the last bytes, take their message for a
 * goodbye, unless it is answered. A client that gives up a request leaves later.
 */
static __always_inline void client_fin(const struct sock *sk, struct conn *c)
{
	const struct tcp_sock *tp = tcp_of(sk);
	__u64 latest_ns = c->arrival_ns[c->newest & 1];
	struct service_slot *slot = slot_of(c->service);

	if (c->flags & CONN_SERVER_FIN)
		return;
	c->flags |= CONN_CLIENT_FIN;
	if (slot && c->marks & MARK_HELD)
		count_atomic(slot, COUNTER_NAGLE_HELD, 1);
	if (tp && (seq_after(tp->rcv_nxt - 1, c->announced) ||
		   (latest_ns && bpf_ktime_get_ns() - latest_ns < GOODBYE_NS)))
		c->flags |= CONN_GOODBYE;
}

/*
 * The server has closed, or shut its side. Note what it has received until then, for
 * reset_by_server().
 */
static __always_inline void server_fin(const struct sock *sk, struct conn *c)
{
	const struct tcp_sock *tp = tcp_of(sk);

	c->flags |= CONN_SERVER_FIN;
	if (!tp)
		return;
	fin_note(tp, &c->fin);
}

static __always_inline enum counter close_kind(const struct sock *sk, const struct conn *c, int old,
					       bool twin)
{
	if (sk->sk_err == ERR_TIMEDOUT)
		return COUNTER_TIMED_OUT;
	if (c->flags & CONN_RESET)
		return c->flags & CONN_REFUSED_DATA ? COUNTER_RESET_BY_SERVER
						    : COUNTER_RESET_BY_CLIENT;
	if (old == TCP_ESTABLISHED || old == TCP_CLOSE_WAIT || old == TCP_SYN_RECV)
		return COUNTER_RESET_BY_SERVER;
	if (old == TCP_FIN_WAIT1 || (old == TCP_FIN_WAIT2 && !twin))
		return COUNTER_RESET_BY_SERVER;
	/*
	 * Only the side that sent its FIN second comes to LAST_ACK. CONN_SERVER_FIN does not decide: the kernel runs no
	 * program within itself, so a state that changes in an interrupt of this program is not seen.
	 */
	return old == TCP_LAST_ACK ? COUNTER_CLOSED_BY_CLIENT : COUNTER_CLOSED_BY_SERVER;
}

/*
 * Return whether the namespace has its maximum of TIME_WAIT sockets (tcp_max_tw_buckets): the twin
 * may have found no room, or the last one. Older kernels do not show that.
 */
static __always_inline bool time_wait_full(const struct sock *sk)
{
	const struct net *net = netns_of(sk);
	const struct net___pointer *older = (const void *)net;
	const struct inet_timewait_death_row *row = NULL;

	if (!net || !bpf_core_field_exists(row->tw_refcount))
		return false;
	if (bpf_core_field_size(net->ipv4.tcp_death_row) == sizeof(row)) {
		row = older->ipv4.tcp_death_row;
		return row->tw_refcount.refs.counter - 1 >= row->sysctl_max_tw_buckets;
	}
	return net->ipv4.tcp_death_row.tw_refcount.refs.counter - 1 >=
	       net->ipv4.tcp_death_row.sysctl_max_tw_buckets;
}

static __always_inline void conn_closed(const struct sock *sk, struct conn *c, int old)
{
	__u64 twin = fin_left_twin(sk, tcp_of(sk), &c->fin, old);
	struct service_slot *slot = slot_of(c->service);

	FORGET(twin, REREAD(&c->service));
	sample_complete(sk, c);
	accept_forget(sk);
	if (slot) {
		count_atomic(slot, close_kind(sk, c, old, twin), 1);
		if (twin)
			count_atomic(slot,
				     time_wait_full(sk) ? COUNTER_TIME_WAIT_UNSURE
							: COUNTER_TIME_WAIT_CREATED,
				     1);
	}
	place_leave(sk);
}

/*
 * Time the acknowledgement of a response after which the connection closes. tcp_probe fires only in ESTABLISHED. The
 * peer acknowledges the response and the FIN at nearly the same time, so take the time of the FIN's. An
 * acknowledgement in CLOSE_WAIT is not seen. TX timestamps report the response separately.
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
	if (over || (begins && (all || (c->phase != CONN_RESPONDING && c->phase != CONN_PUSHING))))
		transmit_end(sk, c);
}

/*
 * With TCP Fast Open the server may have answered and closed before the handshake is over. The connection then never
 * becomes ESTABLISHED, and is taken to be established now.
 */
static __always_inline struct conn *conn_fast(const struct sock *sk, struct conn *c, int old)
{
	if (!c || old != TCP_SYN_RECV || !(c->flags & CONN_LISTENER) || !c->touched)
		return c;
	conn_established(sk);
	return conn_of(sk);
}

static __always_inline void conn_changed(const struct sock *sk, int old, int new)
{
	struct conn *c = conn_fast(sk, conn_of(sk), old);

	if (c && c->flags & CONN_LISTENER && new == TCP_CLOSE)
		listener_drops(c, sk);
	if (!c || c->flags & CONN_LISTENER)
		return;
	FORGET(old, REREAD(&c->service));
	if (config.transmit_below && c->marks & MARK_TRANSMIT)
		transmit_closing(sk, c, old, new);
	if (new == TCP_CLOSE_WAIT)
		client_fin(sk, c);
	else if (new == TCP_FIN_WAIT1)
		server_fin(sk, c);
	FORGET(new, REREAD(&c->service));
	if (tcp_ends_writes(new))
		conn_writes_over(sk, c, new == TCP_CLOSE && c->flags &CONN_RESET);
	FORGET(new, REREAD(&c->service));
	if (new == TCP_CLOSE)
		conn_closed(sk, c, old);
}

/* With TCP Fast Open the server may use the child from now on, before it is established. */
static __always_inline void child_begins(const struct sock *sk)
{
	if (port_observed(sk->__sk_common.skc_num))
		(void)child_storage(sk, 0);
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(conn_state, const struct sock *sk, int old, int new)
{
	if (sk->sk_protocol != PROTO_TCP)
		return 0;
	if (new == TCP_LISTEN)
		listener_mark(sk);
	else if (new == TCP_SYN_RECV && old == TCP_LISTEN)
		child_begins(sk);
	else if (new == TCP_ESTABLISHED && old == TCP_SYN_RECV)
		conn_established(sk);
	else if (new == TCP_SYN_SENT)
		front_connects(sk);
	else if (new == TCP_ESTABLISHED && old == TCP_SYN_SENT)
		front_connected(sk);
	else if (new != TCP_SYN_RECV)
		conn_changed(sk, old, new);
	return 0;
}

/*
 * Data came after the server had closed: TCP discards it, ends the connection as if an RST had come and then
 * sends one itself (tcp_rcv_state_process()). The segment is counted then, but its bytes are not received.
 */
static __always_inline bool data_refused(const struct sock *sk, const struct conn *c)
{
	const struct tcp_sock *tp = tcp_of(sk);

	return c->flags & CONN_SERVER_FIN && tp && fin_refused_data(tp, &c->fin);
}

SEC("?tp_btf/tcp_receive_reset")
int BPF_PROG(conn_reset, struct sock *sk)
{
	struct conn *c = port_observed(sk->__sk_common.skc_num) ? conn_of(sk) : NULL;

	if (c)
		c->flags |= data_refused(sk, c) ? CONN_RESET | CONN_REFUSED_DATA : CONN_RESET;
	return 0;
}

/*
 * The tracepoint fires once per buffer, which may hold many segments. So the socket's total_retrans
 * gives their number. Since 6.18 it also fires for buffers that could not be sent, which do not
 * change that number.
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
