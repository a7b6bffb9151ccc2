/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Whether Nagle's algorithm holds back the bytes that a write has left in the socket. They are less than a segment,
 * and a small segment before them is not acknowledged (tcp_nagle_check(), net/ipv4/tcp_output.c). A peer may delay
 * that ACK by 40 ms. The first write of a response finds nothing in flight, so only later ones are looked at.
 * Neighbour: exchange.h.
 */
#ifndef BPF_TCP_CONNECTION_NAGLE_H
#define BPF_TCP_CONNECTION_NAGLE_H

#include "arrival.h"

static __always_inline bool nagle_holds(const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;
	__u32 next = TCP_FIELD(sk, snd_nxt), unsent = TCP_FIELD(sk, write_seq) - next;
	__u32 small_end, acked;

	if (!unsent || unsent >= TCP_FIELD(sk, mss_cache))
		return false;
	acked = TCP_FIELD(sk, snd_una);
	small_end = TCP_FIELD(sk, snd_sml);
	/* nonagle has bits for TCP_NODELAY and TCP_CORK. */
	return seq_after(small_end, acked) && !seq_after(small_end, next) &&
	       !BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle);
}

#endif
