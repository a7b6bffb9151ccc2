/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where a connection is kept. The socket's own storage is a call of the kernel away and two pointers, so most
 * connections have a place in an array, which the hash of their addresses and ports gives: an inlined lookup.
 * Who comes when its place is taken stays in its storage.
 *
 * A connection moves there when nobody uses it yet. Who has found it may still write to it when it has left, and be
 * preempted before: a storage is freed when no program can see it any more; a place is given to somebody else
 * after a time that no program takes.
 */
#ifndef BPF_TCP_PLACE_H
#define BPF_TCP_PLACE_H

#include "state.h"

#define PLACE_REST_NS 10000000000ULL
/* Of nobody, and not to be had: it is being filled. No socket has this address. */
#define PLACE_FILLED 1

/*
 * Has @sk kept at its place from now on, beginning like @first; NULL: it has none. What was missed of a socket's
 * end may have left its own address there.
 */
static __always_inline struct conn *place_take(const void *sk, const struct conn *first, __u64 now)
{
	struct conn_place *place = config.plain ? NULL : place_of(sk);
	__u64 key = (__u64)sk, before;

	if (!place)
		return NULL;
	before = PLAIN(&place->sk);
	if ((before && before != key) || (place->left_ns && now - place->left_ns < PLACE_REST_NS) ||
	    __sync_val_compare_and_swap(&place->sk, before, PLACE_FILLED) != before)
		return NULL;
	place->conn = *first;
	atomic_publish(&place->sk, key);
	return &place->conn;
}

/* The connection is over. A closed socket has no port any more (tcp_set_state()), so nobody asks for it again. */
static __always_inline void place_leave(const void *sk)
{
	struct conn_place *place = config.plain ? NULL : place_of(sk);

	if (!place || place->sk != (__u64)sk)
		return;
	place->left_ns = bpf_ktime_get_ns();
	atomic_publish(&place->sk, 0);
}

#endif
