/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where a connection is kept. The socket's own storage is one kernel call and two pointers away. So most connections
 * have a place in an array, found by an inlined lookup with the hash of their addresses and ports. On a collision the
 * connection stays in socket storage.
 *
 * A connection moves into its place before any program uses it. A program that holds a pointer may be preempted, and
 * write after the place is released. Storage is freed only when no program can see it. A place is reused only after a
 * time longer than any program runs.
 */
#ifndef BPF_TCP_CONNECTION_PLACE_H
#define BPF_TCP_CONNECTION_PLACE_H

#include "state.h"

#define PLACE_REST_NS 10000000000ULL
/* The place is being initialised. Never a valid socket address. */
#define PLACE_FILLED 1

/*
 * Keep @sk at its place from now on, with the state @first. Return NULL if the place is taken. The place may still
 * have this address from an earlier socket whose end was missed, and is then free.
 */
static __always_inline struct conn *place_take(const void *sk, const struct conn *first, __u64 now)
{
	struct conn_place *place = place_of(sk);
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

/* The connection is over. A closed socket has no port any more (tcp_set_state()), so no program looks it up again. */
static __always_inline void place_leave(const void *sk)
{
	struct conn_place *place = place_of(sk);

	if (!place || place->sk != (__u64)sk)
		return;
	place->left_ns = bpf_ktime_get_ns();
	atomic_publish(&place->sk, 0);
}

#endif
