/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Pushes of a server, with --http: messages of WebSocket, in both directions, and server-sent events. They are
 * counted, and are no exchanges: nothing says which message answers which. The response that began it, with 101 or of type text/event-stream, is over with its head. So what follows is no part of `respond`.
 *
 * The write that begins a response is looked at (answer.h). It has to hold the whole head. If bytes that follow are not seen or not
 * understood, the connection is counted, and its messages are not any more.
 *
 * Neighbours: push.h (the state), pushed.h (what is counted).
 */
#ifndef BPF_TCP_PUSHES_H
#define BPF_TCP_PUSHES_H

#include "exchange.h"
#include "tcp/http/pushed.h"

static __always_inline struct push_conn *push_conn_of(const struct sock *sk)
{
	return bpf_sk_storage_get(&push_conns, (void *)sk, 0, 0);
}

/* A response has begun with the current write, of which @skip bytes were before it: is it over, and do pushes follow? */
static __always_inline void pushes_follow(const struct sock *sk, struct conn *c, __u32 bytes,
					  __u32 skip)
{
	const struct command_conn *asked;
	struct push_conn *p;
	int kind;

	p = bpf_sk_storage_get(&push_conns, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!p)
		return;
	p->service = c->service;
	p->in.end = c->read_seq;
	/* Bytes of the client's that are no request were found with it, or after it (pipeline.h). */
	asked = bpf_sk_storage_get(&command_conns, (void *)sk, 0, 0);
	p->missed = asked && asked->over && asked->over < COMMAND_LEFT;
	kind = pushes_begin(p, bytes, skip, TCP_FIELD(sk, write_seq));
	if (kind <= PUSH_HEAD) {
		bpf_sk_storage_delete(&push_conns, (void *)sk);
		return;
	}
	c->phase = CONN_PUSHING;
	if (kind == PUSH_WEBSOCKET || p->head.number == STATUS_UPGRADE)
		c->marks |= MARK_MULTIPLEXED | MARK_SETTLED;
}

/*
 * A write answers what was read during a response of events, and is no response: the response goes on. Bytes of its request had
 * come late, or a next request early.
 */
static __always_inline void pushes_cut_short(const struct sock *sk)
{
	struct push_conn *p = push_conn_of(sk);

	if (p && p->kind == PUSH_EVENTS)
		pushes_lose(p);
}

/* After all else of a read. */
static __always_inline void pushes_read(const struct sock *sk, struct conn *c, __u32 bytes,
					__u32 flags)
{
	struct push_conn *p;

	if (c->phase != CONN_PUSHING)
		return;
	p = push_conn_of(sk);
	if (!p || p->kind != PUSH_WEBSOCKET)
		return;
	p->service = c->service;
	pushes_in(p, flags & FLAG_TRUNCATES ? 0 : bytes, read_end(sk));
}

/* Handle a write that pushes something. False: it does not. */
static __always_inline bool pushes_write(const struct sock *sk, struct conn *c, __u32 bytes)
{
	struct service_slot *slot;
	struct push_conn *p;

	if (c->phase != CONN_PUSHING)
		return false;
	p = push_conn_of(sk);
	slot = slot_of(c->service);
	if (!p || !slot)
		return false;
	p->service = c->service;
	/* A request that was read unseen, or no request: what the server writes is no event any more. */
	if (!(c->marks & MARK_MULTIPLEXED) &&
	    (p->kind == PUSH_OVER || seq_after(read_end(sk), c->read_seq))) {
		c->phase = CONN_IDLE;
		return false;
	}
	pushes_out(p, bytes, TCP_FIELD(sk, write_seq));
	SLOT_COUNT(slot, COUNTER_BYTES_OUT, bytes);
	return true;
}

#endif
