/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Commands of a protocol as exchanges, with --protocol, and pipelined requests of HTTP/1 (pipeline.h). A client may send several requests before it has the reply to
 * the first one, and the server answers in that order. So requests wait in a queue of their connection, and each
 * reply answers the oldest one.
 *
 * Bytes of either direction are followed from the connection's first one on. On an older connection that is from the
 * first read after a reply on. If some were not seen or not understood, the connection is given up. Its reads and
 * writes are exchanges from then on, as without the option, and the reason is counted with each.
 *
 * The functions are not inline, as those of status.h: commands.bpf.c. Neighbours: protocol/command.h (parsers),
 * exchange.h, exchange.bpf.c.
 */
#ifndef BPF_TCP_COMMANDS_H
#define BPF_TCP_COMMANDS_H

#include "exchange.h"
#include "protocol/http1.h"
#include "protocol/postgres.h"
#include "pushes.h"
#include "tcp/state/command.h"

/*
 * Follow the bytes of a read or write, whose numbers are in @h. Return 0, or why the connection is given up: enum
 * route_unknown plus 1.
 */
int commands_in(struct command_conn *h, struct conn *c);
int commands_out(struct command_conn *h, struct conn *c);

/* The same for HTTP/1 (pipeline.bpf.c). */
int pipeline_in(struct command_conn *h, struct conn *c);
int pipeline_out(struct command_conn *h, struct conn *c);
int pipeline_lost(struct command_conn *h, __u32 over);

/* The connection is over: its requests will not be answered. Return 0. */
int commands_end(struct command_conn *h);

/* Count an exchange of @service whose command is not known, for @reason. Return 0. */
int commands_unnamed(__u32 service, __u32 reason);

/* Return the protocol that is given for the socket's port. */
static __always_inline __u32 command_protocol(const struct sock *sk)
{
	__u32 protocol = COMMAND_NONE;

#pragma clang loop unroll(full)
	for (int i = 0; i < COMMAND_PORTS; i++)
		if (config.command_ports[i].port == sk->__sk_common.skc_num)
			protocol = config.command_ports[i].protocol;
	return protocol;
}

static __always_inline struct command_conn *command_conn_of(const struct sock *sk)
{
	return bpf_sk_storage_get(&command_conns, (void *)sk, 0, 0);
}

/*
 * Return the state of a connection from whose current read on commands are followed; NULL: none are. Of an older one
 * that may be in the middle of a request, the exchange under way comes first.
 */
static __always_inline struct command_conn *command_conn_new(const struct sock *sk, struct conn *c)
{
	bool old = !c->established_ns;
	struct command_conn *h;

	if (old ? c->phase == CONN_UNKNOWN || c->phase == CONN_READING || c->phase == CONN_CUT_OFF
		: c->first_read_ns || c->last_read_ns)
		return NULL;
	h = bpf_sk_storage_get(&command_conns, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return NULL;
	h->protocol = command_protocol(sk);
	h->flow_hash = c->flow_hash;
	if (old && h->protocol == COMMAND_POSTGRES)
		h->in.stage = h->out.stage = POSTGRES_TYPE;
	if (config.ring_bytes && !old)
		flow_of(&sk->__sk_common, sk->__sk_common.skc_num, &h->flow);
	transmit_end(sk, c);
	c->phase = CONN_IDLE;
	c->marks |= MARK_MULTIPLEXED | MARK_SETTLED;
	return h;
}

/*
 * Reads and writes are exchanges from now on, the current one included. Of requests of earlier reads the oldest one is
 * under way.
 */
static __always_inline void command_gives_up(const struct sock *sk, struct command_conn *h,
					     struct conn *c, __u32 over)
{
	const struct command_batch *b = &h->batches[h->done & (COMMANDS_BATCHES - 1)];

	h->over = over;
	if (h->protocol == COMMAND_HTTP1)
		pipeline_lost(h, over);
	c->marks &= ~(MARK_MULTIPLEXED | MARK_SETTLED);
	c->phase = CONN_IDLE;
	c->route = ROUTE_PIPELINED;
	c->index = h->index;
	if (h->asked == h->answered || b->times.first_read_ns == h->now) {
		if (h->index)
			c->index--; /* the next request counts it again */
		return;
	}
	c->phase = CONN_READING;
	c->start_ns = b->times.start_ns;
	c->accept_delay_ns = b->times.accept_delay_ns;
	c->first_read_ns = b->times.first_read_ns;
	c->last_read_ns = b->times.last_read_ns;
	c->bytes_in = h->waiting;
	sample_begin(sk, c, c->accept_delay_ns);
}

/* Return whether the connection's messages may be followed. */
static __always_inline bool commands_possible(const struct sock *sk, const struct conn *c)
{
	return (config.http && c->marks & MARK_MULTIPLEXED) ||
	       (config.command_count && command_protocol(sk));
}

/* After an upgrade the first bytes identify the protocol, as at the start of a connection. */
static __always_inline void command_upgrades(const struct command_conn *h, struct conn *c)
{
	c->marks &= ~(MARK_MULTIPLEXED | MARK_SETTLED | MARK_HTTP1);
	c->looks = 0;
	c->phase = CONN_IDLE;
	c->index = h->index ? h->index - 1 : 0; /* the next request counts it again */
}

/* Handle a read of a connection whose commands are followed. False: they are not. */
static __always_inline bool commands_read(const struct sock *sk, struct conn *c, __u32 bytes,
					  __u32 flags)
{
	struct reading r = {.sk = sk, .bytes = bytes, .flags = flags};
	struct command_conn *h;
	__u32 over;

	if (!commands_possible(sk, c) || c->flags & CONN_WRITES_OVER)
		return false;
	h = command_conn_of(sk);
	if (!h && config.command_count && command_protocol(sk))
		h = command_conn_new(sk, c);
	if (!h || !h->protocol || h->over) /* without: it is only looked at (pipeline.h) */
		return false;
	r.now = bpf_ktime_get_ns();
	r.slot = slot_of(c->service);
	if (!r.slot)
		return true;
	if (!c->touched)
		c->start_ns = conn_touched(sk, c, r.slot, r.now);
	r.end = read_end(sk);
	h->service = c->service;
	h->now = r.now;
	h->accepted_ns = c->first_read_ns ? 0 : c->start_ns;
	h->end = r.end;
	h->rest = bytes;
	if (flags & FLAG_TRUNCATES || seq_after(r.end - bytes, c->read_seq))
		over = ROUTE_UNSEEN + 1;
	else
		over = h->protocol == COMMAND_HTTP1 ? pipeline_in(h, c) : commands_in(h, c);
	if (over) {
		command_gives_up(sk, h, c, over);
		return false;
	}
	reading_goes_on(&r, c);
	if (!c->first_read_ns)
		c->first_read_ns = r.now;
	c->last_read_ns = r.now;
	return true;
}

/* The same for a write. */
static __always_inline bool commands_write(const struct sock *sk, struct conn *c, __u32 bytes)
{
	struct service_slot *slot;
	struct command_conn *h;
	__u32 over;

	if (!commands_possible(sk, c))
		return false;
	h = command_conn_of(sk);
	if (!h || !h->protocol || h->over) /* without: it is only looked at (pipeline.h) */
		return false;
	slot = slot_of(c->service);
	if (!slot)
		return true;
	h->service = c->service;
	h->now = clock_written(sk, c);
	h->end = TCP_FIELD(sk, write_seq);
	h->rest = bytes;
	if (seq_after(read_end(sk), c->read_seq))
		over = ROUTE_UNSEEN + 1;
	else
		over = h->protocol == COMMAND_HTTP1 ? pipeline_out(h, c) : commands_out(h, c);
	if (over == COMMAND_UPGRADED) {
		command_upgrades(h, c);
		if (h->out.type & HTTP1_PUSHES && !seq_after(h->end - bytes, h->reply.begun_seq))
			pushes_follow(sk, c, bytes, h->reply.begun_seq - (h->end - bytes));
	} else if (over && over != COMMAND_LEFT) {
		command_gives_up(sk, h, c, over);
		return false;
	}
	SLOT_COUNT(slot, COUNTER_BYTES_OUT, bytes);
	c->last_write_ns = h->now;
	return true;
}

/* An exchange was counted whose connection is not followed, or not any more. */
static __always_inline void commands_none(const struct sock *sk, const struct conn *c)
{
	const struct command_conn *h;
	__u32 reason = ROUTE_UNSEEN;

	if (!command_protocol(sk))
		return;
	h = command_conn_of(sk);
	if (c->marks & MARK_TLS)
		reason = ROUTE_TLS;
	else if (h && h->over)
		reason = h->over - 1;
	commands_unnamed(c->service, reason);
}

#endif
