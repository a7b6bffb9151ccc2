// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The sockets that exist now. One pass over a network namespace picks up listeners and connections that are older
 * than the observation, and counts the gauges that no event reports. Listeners come first (net/ipv4/tcp_ipv4.c,
 * tcp_seek_last_pos()), so a connection always finds its service.
 */
#include "open.h"
#include "ports.h"
#include "service.h"
#include "tcp/connection/arrival.h"
#include "tcp/connection/mptcp.h"
#include "tcp/connection/place.h"
#include "tcp/connection/sample.h"

static __always_inline void address_of(const struct sock_common *skc, __u8 *ret_address)
{
	if (skc->skc_family == FAMILY_INET6)
		BPF_CORE_READ_INTO((struct in6_addr___kernel *)ret_address, skc, skc_v6_rcv_saddr);
	else
		BPF_CORE_READ_INTO((__be32 *)ret_address, skc, skc_rcv_saddr);
}

static __always_inline bool same_address(const __u8 *a, const __u8 *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	return x[0] == y[0] && x[1] == y[1];
}

static __always_inline void gauge_address(struct service_gauges *g, const struct sock_common *skc)
{
	__u8 address[16] __attribute__((aligned(8))) = {};

	address_of(skc, address);
	if (!g->addresses) {
		__builtin_memcpy(g->address, address, sizeof(address));
		g->family = skc->skc_family;
		g->addresses = 1;
	} else if (g->family != skc->skc_family || !same_address(g->address, address)) {
		g->addresses = 2;
	}
}

static __always_inline void gauge_listener(struct service_gauges *g, const struct sock *sk)
{
	gauge_address(g, &sk->__sk_common);
	g->listeners++;
	g->depth += sk->sk_ack_backlog;
	g->limit += sk->sk_max_ack_backlog;
}

/*
 * Keep @first as the state of @skc, and return it. A listener's state must be in socket storage,
 * which its children inherit.
 */
static __always_inline struct conn *keep(struct sock_common *skc, struct conn *first)
{
	struct conn *c = NULL;

	/* A reader may find the place while it is filled. Only x86 then orders the reader's reads. */
	if (READS_IN_ORDER && !(first->flags & CONN_LISTENER))
		c = place_take(skc, first, bpf_ktime_get_ns());
	return c ? c : conn_new(skc, first);
}

/*
 * Return whether a process may have read a request without answering it. It has read something, and the peer sent data
 * after the last data to it. The times are in ticks: a request answered within the same tick is not seen.
 */
static __always_inline bool perhaps_waits(const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = (const void *)tp;

	if (tp->bytes_received == tp->rcv_nxt - tp->copied_seq)
		return false;
	return (__s32)(icsk->icsk_ack.lrcvtime - tp->lsndtime) > 0;
}

/*
 * Pick up a socket that is older than the observation, or than its service's slot, unless an earlier
 * pass has done so. The iterator holds the socket's lock.
 */
static __always_inline void pick_up(struct sock_common *skc, __u32 service, __u32 flags)
{
	struct conn first = {.service = service, .flags = flags}, *c = conn_of(skc);
	struct service_slot *slot;
	struct tcp_sock *tp;

	if (c && (c->service == service || slot_of(c->service)))
		return;
	tp = bpf_skc_to_tcp_sock(skc);
	if (tp && flags & CONN_LISTENER) {
		first.drops = (__u32)((const struct sock *)tp)->sk_drops.counter;
		first.drops_before = first.drops;
		first.depth_max = ((const struct sock *)tp)->sk_ack_backlog;
	} else if (tp) {
		first.retransmits = tp->total_retrans;
		/* Unread bytes came before the observation, at an unknown time. */
		first.announced = tp->rcv_nxt;
		first.read_seq = tp->copied_seq;
		first.marks = MARK_GREETED;
		if (perhaps_waits(tp))
			first.phase = CONN_UNKNOWN;
		mptcp_note(tp, &first, slot_of(service));
	}
	if (c)
		*c = first;
	else
		c = keep(skc, &first);
	slot = slot_of(service);
	if (slot && !c)
		count_atomic(slot, COUNTER_STORAGE_FAILED, 1);
	else if (slot && flags & CONN_PREEXISTING)
		count_atomic(slot, COUNTER_PREEXISTING, 1);
}

/* @skc is the result of a cast, not the iterator's own pointer: netns.h says why. */
static __always_inline void key_of_common(const struct sock_common *skc,
					  struct service_key *ret_key)
{
	service_key_in(skc->skc_net.net, skc->skc_num, ret_key);
}

static __always_inline __u32 service_of_common(const struct sock_common *skc)
{
	struct service_key key = {};

	key_of_common(skc, &key);
	return port_observed(key.port) ? service_find(&key) : SERVICE_NONE;
}

static __always_inline struct service_gauges *gauges_of(__u32 service)
{
	__u32 index = service_index(service);

	return bpf_map_lookup_elem(&gauges, &index);
}

/*
 * Count a socket in TIME_WAIT. It is read without a helper's cast, because that knows TCP's sockets by their protocol's
 * table. Connections that an MPTCP listener has accepted have another one, plain TCP's too (tcp_prot_override,
 * net/mptcp/subflow.c), and Go's listeners are of MPTCP since 1.24.
 */
static __always_inline void visit_time_wait(const struct sock_common *skc)
{
	const struct tcp_timewait_sock *tw = (const void *)skc;
	struct service_key key = {.port = skc->skc_num, .protocol = PROTO_TCP};
	struct service_gauges *g;

	if (!port_observed(key.port))
		return;
	/* Such a socket also stands for one in FIN_WAIT2, which waits for the peer's FIN. */
	if (BPF_CORE_READ(tw, tw_sk.tw_substate) != TCP_TIME_WAIT)
		return;
	key.netns = BPF_CORE_READ(skc, skc_net.net, ns.inum);
	if (config.all_netns)
		key.cookie = (__u32)BPF_CORE_READ(skc, skc_net.net, net_cookie);
	g = gauges_of(service_find(&key));
	if (g)
		g->time_wait++;
}

/*
 * Note a depth that includes sockets whose queueing was not seen, because they are older than the
 * observation.
 */
static __always_inline void depth_seen(__u32 service, __u32 depth)
{
	struct service_slot *slot = slot_of(service);

	if (slot)
		copy_raise(&slot->depth_max, depth);
}

static __always_inline __u64 inode_of(const struct sock *sk)
{
	const struct socket *socket = sk->sk_socket;
	const struct file *file = socket ? socket->file : NULL;
	const struct inode *inode = file ? file->f_inode : NULL;

	return inode ? inode->i_ino : 0;
}

/* Report each of several listeners: a sum would hide the one that is full. */
static __always_inline void tell_listener(const struct sock *sk, const struct conn *c,
					  __u32 service)
{
	__u32 index = listeners_next++;
	struct listener_gauge *g = bpf_map_lookup_elem(&listeners, &index);
	__u32 depth = sk->sk_ack_backlog;

	if (!g)
		return;
	g->inode = inode_of(sk);
	__builtin_memset(g->address, 0, sizeof(g->address));
	address_of(&sk->__sk_common, g->address);
	g->family = sk->__sk_common.skc_family;
	g->service = service_index(service);
	g->depth = depth;
	g->depth_max = depth > c->depth_max ? depth : c->depth_max;
	g->limit = sk->sk_max_ack_backlog;
	g->drops = (__u32)sk->sk_drops.counter - c->drops_before;
}

static __always_inline void visit_listener(struct sock_common *skc)
{
	struct sock *sk = (struct sock *)bpf_skc_to_tcp_sock(skc);
	struct service_key key = {};
	struct service_gauges *g;
	struct conn *c;
	__u32 service;

	if (!sk)
		return;
	key_of_common(&sk->__sk_common, &key);
	if (!listener_wanted(&key, false))
		return;
	service = service_of_listener(&key);
	g = gauges_of(service);
	if (!g) {
		listeners_idle++;
		return;
	}
	pick_up(skc, service, CONN_LISTENER);
	gauge_listener(g, sk);
	depth_seen(service, sk->sk_ack_backlog);
	c = conn_of(skc);
	if (!c)
		return;
	listener_drops(c, sk);
	tell_listener(sk, c, service);
}

static __always_inline void gauge_rtt(struct service_gauges *g, const struct tcp_sock *tp)
{
	__u32 min_us = tp->rtt_min.s[0].v;

	if (!tp->srtt_us)
		return;
	g->rtt_known++;
	g->srtt_sum_us += tp->srtt_us >> 3;
	if (!g->rtt_min_us || min_us < g->rtt_min_us)
		g->rtt_min_us = min_us;
}

/* Set the flag at every visit, because another observer clears it when it ends. */
static __always_inline void request_stamps(struct sock_common *skc)
{
	__u32 flags = transmit_leaving ? 0 : SOCKET_TIMESTAMPS;

	if (config.transmit_stamps)
		bpf_setsockopt(skc, SOCKET_LEVEL, SOCKET_BPF_FLAGS, &flags, sizeof(flags));
}

/*
 * Return when the peer's last data came, in ns, to a tick: for requests that are older than the
 * observation.
 */
static __always_inline __u64 since_last_data(const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = (const void *)tp;
	__u32 ticks = (__u32)bpf_jiffies64() - icsk->icsk_ack.lrcvtime;

	return bpf_ktime_get_ns() - ticks * config.tick_ns;
}

/* Count a request that the server has read but not answered. */
static __always_inline void open_read(struct service_open *o, const struct conn *c,
				      const struct tcp_sock *tp)
{
	__u64 since_ns = c->start_ns ? c->start_ns - c->accept_delay_ns : c->first_read_ns;
	__u64 waits_ns = c->last_read_ns;

	o->read++;
	if (c->phase != CONN_READING)
		since_ns = waits_ns = since_last_data(tp);
	open_age(o, since_ns, waits_ns);
}

static __always_inline void open_unread(struct service_open *o, struct conn *c,
					const struct tcp_sock *tp)
{
	struct arrival arrival;

	o->unread++;
	if (!((const struct sock *)tp)->sk_socket)
		o->unaccepted++;
	arrival_of(c, tp->copied_seq, &arrival);
	if (!arrival.ns && c->flags & CONN_PREEXISTING)
		arrival.ns = since_last_data(tp);
	open_age(o, arrival.ns, arrival.ns);
}

/* Of requests that wait for their replies, the age of the oldest one is known. */
static __always_inline void open_commands(struct service_open *o, struct sock_common *skc,
					  struct conn *c, const struct tcp_sock *tp, __u32 unread)
{
	const struct command_conn *h = bpf_sk_storage_get(&command_conns, skc, 0, 0);
	const struct command_times *t;
	__u32 waiting;

	if (!h || h->over)
		return;
	waiting = h->asked - h->answered;
	t = &h->batches[h->done & (COMMANDS_BATCHES - 1)].times;
	o->read += waiting + h->lost;
	if (waiting)
		open_age(o, command_since(t), t->last_read_ns);
	else if (unread)
		open_unread(o, c, tp);
}

static __always_inline void gauge_open(__u32 service, struct sock_common *skc,
				       const struct tcp_sock *tp)
{
	struct service_open *o = open_of(service);
	__u32 unread = unread_between((const void *)tp, tp->copied_seq, tp->rcv_nxt);
	struct conn *c = conn_of(skc);

	if (!o)
		return;
	o->unread_bytes += unread;
	if (!c || c->flags & CONN_WRITES_OVER)
		return;
	if ((config.command_count || config.http) && c->marks & MARK_MULTIPLEXED)
		open_commands(o, skc, c, tp, unread);
	if (c->marks & MARK_MULTIPLEXED)
		return;
	if (c->phase == CONN_READING || (c->phase == CONN_UNKNOWN && !unread))
		open_read(o, c, tp);
	else if (unread)
		open_unread(o, c, tp);
}

/* Return whether the connection is outgoing: bind() may have given it an observed port. */
static __always_inline bool outgoing(const struct tcp_sock *tp)
{
	const struct sock *sk = (const void *)tp;

	return BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & LOCK_BOUND_PORT;
}

static __always_inline void visit_connection(struct sock_common *skc)
{
	struct service_key key = {};
	struct service_gauges *g;
	struct tcp_sock *tp;
	__u32 service;

	if (!port_observed(skc->skc_num))
		return;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return;
	key_of_common((const void *)tp, &key);
	if (!listener_wanted(&key, false) || outgoing(tp))
		return;
	service = service_of_connection(&key, 0);
	g = gauges_of(service);
	if (!g)
		return;
	g->connections++;
	gauge_rtt(g, tp);
	pick_up(skc, service, CONN_PREEXISTING);
	gauge_open(service, skc, tp);
	request_stamps(skc);
}

/* Visit a socket that the server has closed, but whose data may still have to be sent. */
static __always_inline void visit_closing(struct sock_common *skc)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(skc);
	struct service_open *o = tp ? open_of(service_of_common((const void *)tp)) : NULL;

	if (!o || outgoing(tp))
		return;
	o->closing++;
	o->closing_bytes += tp->write_seq - tp->snd_una;
	o->unread_bytes += unread_between((const void *)tp, tp->copied_seq, tp->rcv_nxt);
}

static __always_inline void visit_sampled(struct sock_common *skc)
{
	struct conn *c = conn_of(skc);

	if (c && !(c->flags & CONN_LISTENER))
		sample_flush(skc, c);
}

SEC("?iter/tcp")
int sockets_visit(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;

	if (!skc)
		return 0;
	if (skc->skc_state == TCP_LISTEN)
		ports_hold(skc->skc_num);
	else
		ports_count(skc);
	if (skc->skc_state == TCP_TIME_WAIT)
		visit_time_wait(skc);
	else if (skc->skc_state == TCP_LISTEN)
		visit_listener(skc);
	else if (skc->skc_state == TCP_ESTABLISHED || skc->skc_state == TCP_CLOSE_WAIT)
		visit_connection(skc);
	else if (skc->skc_state == TCP_FIN_WAIT1 || skc->skc_state == TCP_FIN_WAIT2 ||
		 skc->skc_state == TCP_LAST_ACK || skc->skc_state == TCP_CLOSING)
		visit_closing(skc);
	if (config.ring_bytes && sample_flushing && skc->skc_state != TCP_TIME_WAIT &&
	    skc->skc_state != TCP_NEW_SYN_RECV && skc->skc_state != TCP_LISTEN)
		visit_sampled(skc);
	return 0;
}
