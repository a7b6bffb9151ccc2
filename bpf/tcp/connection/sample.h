/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Sampled exchanges: which exchanges are sampled, and how they are sent when they are complete (docs/measurement.md,
 * "Joining with the driver"). An exchange that is not sampled costs a hash of two words and a compare.
 *
 * The first program that sees the end of the response sends the event. That is the next read, the end of the
 * connection, or the pass over the sockets at the end of a phase. They may run at the same time, so one of them takes
 * `pending`.
 */
#ifndef BPF_TCP_CONNECTION_SAMPLE_H
#define BPF_TCP_CONNECTION_SAMPLE_H

#include "state.h"
#include "transmit.h"

/* An IPv4 address as ::ffff:a.b.c.d. */
static __always_inline void flow_ipv4(__u32 words[4], __be32 address)
{
	words[0] = words[1] = 0;
	words[2] = __builtin_bswap32(0xffff);
	words[3] = address;
}

static __always_inline void flow_ipv6(__u32 words[4], const struct in6_addr___kernel *address)
{
	for (int i = 0; i < 4; i++)
		words[i] = address->in6_u.u6_addr32[i];
}

/* @server_port: given, because a socket forgets it when it closes. */
static __always_inline void flow_of(const struct sock_common *skc, __u16 server_port,
				    struct flow *ret_flow)
{
	ret_flow->client_port = __builtin_bswap16(skc->skc_dport);
	ret_flow->server_port = server_port;
	if (skc->skc_family == FAMILY_INET6 && bpf_core_field_exists(skc->skc_v6_daddr)) {
		flow_ipv6(ret_flow->client, &skc->skc_v6_daddr);
		flow_ipv6(ret_flow->server, &skc->skc_v6_rcv_saddr);
	} else {
		flow_ipv4(ret_flow->client, skc->skc_daddr);
		flow_ipv4(ret_flow->server, skc->skc_rcv_saddr);
	}
}

/* Called once per connection, when it is established. */
static __always_inline void sample_connection(const struct sock *sk, struct conn *c)
{
	struct flow flow = {};

	flow_of(&sk->__sk_common, sk->__sk_common.skc_num, &flow);
	c->flow_hash = flow_hash(&flow);
}

/*
 * Return whether to sample the exchange: not if it is untimed, or its connection's begin was not
 * seen.
 */
static __always_inline bool sample_wanted(const struct conn *c)
{
	return exchange_hash(c->flow_hash, c->index) < sample_threshold && c->start_ns &&
	       c->established_ns;
}

/* Called at the first read. @delay_ns: how long its request waited for accept(). */
static __always_inline void sample_begin(const struct sock *sk, struct conn *c, __u64 delay_ns)
{
	if (!config.ring_bytes || !sample_wanted(c))
		return;
	c->marks |= MARK_SAMPLED;
	c->server_port = sk->__sk_common.skc_num;
	c->sample = (struct conn_sample){.accept_delay_ns = delay_ns};
}

/* The response begins: from now on the exchange counts, and will be sent. */
static __always_inline void sample_answered(struct conn *c, __u32 pid)
{
	c->sample.bytes_in = c->bytes_in;
	c->sample.pid = pid;
	atomic_publish(&c->pending, 1);
}

/* Add @bytes to those of the response. */
static __always_inline void sample_wrote(struct conn *c, __u32 bytes)
{
	__u32 sum = c->sample.bytes_out + bytes;

	c->sample.bytes_out = sum < bytes ? ~0U : sum;
}

static __always_inline void sample_lost(__u32 service)
{
	struct service_slot *slot = slot_of(service);

	if (slot)
		count_atomic(slot, COUNTER_SAMPLES_LOST, 1);
}

static __always_inline void sample_fill(const struct sock_common *skc, const struct conn *c,
					struct exchange_event *e)
{
	flow_of(skc, c->server_port, &e->flow);
	e->index = c->index;
	e->service = c->service;
	e->pid = c->sample.pid;
	e->bytes_in = c->sample.bytes_in;
	e->bytes_out = c->sample.bytes_out;
	e->arrival_ns = c->start_ns - c->sample.accept_delay_ns;
	e->accepted_ns = c->sample.accept_delay_ns ? c->start_ns : 0;
	e->first_read_ns = c->first_read_ns;
	e->last_read_ns = c->last_read_ns;
	e->first_write_ns = c->first_write_ns;
	e->last_write_ns = c->last_write_ns;
	e->on_wire_ns = c->sample.on_wire_ns;
	e->acked_ns = c->sample.acked_ns;
	if (c->marks & MARK_TRANSMIT) /* unfinished: only when the pass over the sockets calls */
		transmit_times(c, &e->on_wire_ns, &e->acked_ns);
	e->running_ns = c->split.running_ns;
	e->runnable_ns = c->split.runnable_ns;
}

/* User space looks every second. It is woken when a quarter of the ring is full. */
static __always_inline __u64 sample_wakeup(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < config.ring_bytes / 4
		       ? BPF_RB_NO_WAKEUP
		       : BPF_RB_FORCE_WAKEUP;
}

/* Take the right to send the exchange. False: it was sent already, or there is no response yet. */
static __always_inline bool sample_take(struct conn *c)
{
	return c->marks & MARK_SAMPLED && atomic_take(&c->pending);
}

/* The response is over. Called before the exchange changes, by the program that changes it. */
static __always_inline void sample_complete(const struct sock *sk, struct conn *c)
{
	struct exchange_event *e;

	if (!config.ring_bytes || !sample_take(c))
		return;
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		sample_lost(c->service);
		return;
	}
	sample_fill(&sk->__sk_common, c, e);
	bpf_ringbuf_submit(e, sample_wakeup());
}

/*
 * Called by the pass over the sockets, while the server's process may be in its next read. Every
 * read first changes last_read_ns. If that is unchanged after the copy, the copy is whole. If not,
 * the exchange is lost.
 */
static __always_inline void sample_flush(const struct sock_common *skc, struct conn *c)
{
	const volatile __u64 *version = &c->last_read_ns;
	struct exchange_event *e;
	__u64 before = *version;

	if (!sample_take(c))
		return;
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		sample_lost(c->service);
		return;
	}
	sample_fill(skc, c, e);
	atomic_fence(&c->pending);
	if (*version != before) {
		bpf_ringbuf_discard(e, 0);
		sample_lost(c->service);
		return;
	}
	bpf_ringbuf_submit(e, sample_wakeup());
}

#endif
