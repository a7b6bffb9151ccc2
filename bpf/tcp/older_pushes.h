/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Connections of WebSocket that were upgraded before the observation, with --http. Any read may begin with a frame of the
 * client's, any write with one of the server's. Two whole frames of the client's in a row, which have to be masked, and one of
 * the server's prove it. A frame has to end where its call does, or where another one begins. Until then all are counted aside.
 *
 * From the client's first whole frame on reads and writes are no exchanges. If the connection is never proved, it is counted, and its
 * messages are not. If the next read is no frame, all is as before.
 *
 * The functions are not inline, as those of status.h: older_pushes.bpf.c. Neighbours: pushes.h, older.h (HTTP/2).
 */
#ifndef BPF_TCP_OLDER_PUSHES_H
#define BPF_TCP_OLDER_PUSHES_H

#include "pushes.h"

enum older_frames {
	OLDER_NONE,  /* perhaps it is another protocol */
	OLDER_SEEMS, /* what the call has moved is of WebSocket, it seems */
	OLDER_FOUND,
};

/* Return whether the current read of @count bytes may begin with a client's frame. */
int older_seems(__u32 count);

/*
 * Follow a read, or with @written a write, of @count bytes up to the sequence number @end. @p may be new. Return enum
 * older_frames.
 */
int older_frames(struct push_conn *p, __u32 count, __u32 end, __u32 written);

static __always_inline bool older_may_push(const struct conn *c)
{
	return c->flags & CONN_PREEXISTING &&
	       !(c->marks & (MARK_HTTP1 | MARK_TLS | MARK_MULTIPLEXED));
}

/* The read or write belongs to no exchange. */
static __always_inline void older_pushes(const struct sock *sk, struct conn *c, int said)
{
	exchange_cancel(sk, c);
	if (said != OLDER_FOUND)
		return;
	c->phase = CONN_PUSHING;
	c->marks |= MARK_MULTIPLEXED | MARK_SETTLED;
}

/* After all else of a read. */
static __always_inline void older_pushes_read(const struct sock *sk, struct conn *c, __u32 bytes,
					      __u32 flags)
{
	struct push_conn *p;
	int said;

	if (!older_may_push(c))
		return;
	p = push_conn_of(sk);
	if (!p && older_seems(bytes))
		p = bpf_sk_storage_get(&push_conns, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!p)
		return;
	p->service = c->service;
	said = older_frames(p, flags & FLAG_TRUNCATES ? 0 : bytes, read_end(sk), false);
	if (said)
		older_pushes(sk, c, said);
}

/* Handle a write that may push something. False: it is like any other. */
static __always_inline bool older_pushes_write(const struct sock *sk, struct conn *c, __u32 bytes)
{
	struct service_slot *slot;
	struct push_conn *p;
	int said;

	if (!older_may_push(c))
		return false;
	p = push_conn_of(sk);
	slot = slot_of(c->service);
	if (!p || !slot)
		return false;
	p->service = c->service;
	said = older_frames(p, bytes, TCP_FIELD(sk, write_seq), true);
	if (!said)
		return false;
	older_pushes(sk, c, said);
	SLOT_COUNT(slot, COUNTER_BYTES_OUT, bytes);
	return true;
}

#endif
