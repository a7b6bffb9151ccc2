/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * How a connection ends after our own FIN: with a TIME_WAIT socket, or with an RST. Of observer and doctor.
 */
#ifndef BPF_FIN_H
#define BPF_FIN_H

#include "kernel.h"

/* The state of reception when our side sent its FIN. */
struct fin {
	__u32 rcv_nxt;
	__u32 segments; /* data_segs_in */
};

static __always_inline void fin_note(const struct tcp_sock *tp, struct fin *ret_fin)
{
	ret_fin->rcv_nxt = tp->rcv_nxt;
	ret_fin->segments = tp->data_segs_in;
}

/* Return whether data came later and TCP discarded it: it counts the segment, but does not receive its bytes. */
static __always_inline bool fin_refused_data(const struct tcp_sock *tp, const struct fin *fin)
{
	return tp->data_segs_in != fin->segments && tp->rcv_nxt == fin->rcv_nxt;
}

/*
 * Return whether a socket that goes to CLOSE left a twin in TIME_WAIT. No socket enters TIME_WAIT itself: a small
 * twin replaces it (tcp_time_wait(), net/ipv4/tcp_minisocks.c). That happens in FIN_WAIT2 when the peer's FIN comes
 * (tcp_fin()), or at once if no process has the socket any more. The other ways to CLOSE send an RST:
 * - close() in FIN_WAIT2 with SO_LINGER 0, or with unread data (__tcp_close()): the process still has the socket;
 * - a negative TCP_LINGER2;
 * - data that came with the acknowledgement of our FIN, after close(). No error is set then, and there is no
 *   tcp_receive_reset (tcp_rcv_state_process()).
 * A socket in CLOSING has the peer's FIN, and always leaves a twin when ours is acknowledged.
 */
static __always_inline bool fin_left_twin(const struct sock *sk, const struct tcp_sock *tp,
					  const struct fin *fin, int old)
{
	unsigned long flags = sk->__sk_common.skc_flags;

	if (sk->sk_err || (old != TCP_FIN_WAIT2 && old != TCP_CLOSING))
		return false;
	if (old == TCP_CLOSING || flags & SOCKET_DONE)
		return true;
	return flags & SOCKET_DEAD && tp && tp->linger2 >= 0 && !fin_refused_data(tp, fin);
}

#endif
