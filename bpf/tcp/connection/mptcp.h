/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Connections with MPTCP. Their data is read and written on a socket above the one that is observed. Neighbours:
 * conn.bpf.c, which sees them begin, sockets_iter.bpf.c, which finds older ones, and calls.bpf.c, of those that are
 * opened here.
 */
#ifndef BPF_TCP_CONNECTION_MPTCP_H
#define BPF_TCP_CONNECTION_MPTCP_H

#include "state.h"

static __always_inline bool is_mptcp(const struct tcp_sock *tp)
{
	return bpf_core_field_exists(tp->is_mptcp) && BPF_CORE_READ_BITFIELD(tp, is_mptcp);
}

/*
 * If the connection is of MPTCP, count it, and judge none of its requests. Reads and answers of these do not show
 * here.
 */
static __always_inline void mptcp_note(const struct tcp_sock *tp, struct conn *c,
				       struct service_slot *slot)
{
	if (!is_mptcp(tp))
		return;
	c->marks |= MARK_MULTIPLEXED | MARK_SETTLED;
	if (slot)
		count_atomic(slot, COUNTER_MPTCP, 1);
}

#endif
