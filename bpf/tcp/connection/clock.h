/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * TCP's own clock. TCP reads CLOCK_MONOTONIC when a segment comes and when it begins to transmit. It keeps the time
 * in tcp_clock_cache (tcp_mstamp_refresh()). A program that defines TCP_CLOCK uses that time instead of reading the
 * clock. It does so only where TCP has read it for the very event that is timed:
 *
 *   arrival   tcp_rcv_established() and tcp_rcv_state_process() begin with it, and announce the segment's data then.
 *   write     tcp_write_xmit() begins with it. If every byte of the write is sent, that was after the copy.
 *   read      tcp_rcv_space_adjust() follows the copy. It read the clock up to 6.18, and does not any more
 *             (0ae1ac7335ca). User space asks the kernel which holds (observer/kernel/read_clock.h).
 *
 * Everywhere else the time may be that of any earlier segment, so the clock is read. Neighbours: arrival.h,
 * exchange.h.
 */
#ifndef BPF_TCP_CONNECTION_CLOCK_H
#define BPF_TCP_CONNECTION_CLOCK_H

#include "state.h"

/*
 * Return a field of @sk as a struct tcp_sock. @sk is evaluated before BPF_CORE_READ(), which would look up members of
 * our own structures in the kernel's BTF. A file that knows a cheaper way defines the macro before.
 */
#ifndef TCP_FIELD
#define TCP_FIELD(sk, field)                                \
	({                                                  \
		const struct tcp_sock *tcp_ = (void *)(sk); \
		BPF_CORE_READ(tcp_, field);                 \
	})
#endif

#ifdef TCP_CLOCK
#define CLOCK_KEPT	   bpf_core_field_exists(((struct tcp_sock *)0)->tcp_clock_cache)
#define CLOCK_OF(sk, what) TCP_FIELD(sk, what)
#else
#define CLOCK_KEPT	   0
#define CLOCK_OF(sk, what) 0
#endif

/*
 * Return when the bytes came that TCP announces now. A process that owns the socket may cause a late announcement
 * (SO_RCVLOWAT), or may go through the segments that came since it took the socket.
 */
static __always_inline __u64 clock_arrived(const struct sock *sk)
{
	return CLOCK_KEPT && !sk->sk_lock.owned ? CLOCK_OF(sk, tcp_clock_cache)
						: bpf_ktime_get_ns();
}

/*
 * Return whether TCP has sent all written bytes. Kernel TLS keeps back bytes that fill no record
 * yet.
 */
static __always_inline bool clock_sent(const struct sock *sk)
{
	return CLOCK_OF(sk, snd_nxt) == CLOCK_OF(sk, write_seq) &&
	       !CLOCK_OF(sk, inet_conn.icsk_ulp_ops);
}

/*
 * Return when TCP began to transmit the end of a write that has returned. TCP may have held it back
 * (autocork, Nagle's algorithm, a full window), or never have seen it (a sockmap's program). TCP's
 * time is then too old, and the clock is read.
 */
static __always_inline __u64 clock_written(const struct sock *sk, const struct conn *c)
{
	__u64 ns = CLOCK_KEPT && clock_sent(sk) ? CLOCK_OF(sk, tcp_clock_cache) : 0;

	return ns > c->last_read_ns && ns > c->last_write_ns ? ns : bpf_ktime_get_ns();
}

/*
 * Return when a read that has returned had copied its last bytes. It may be later, but not after the return. A segment
 * that came meanwhile, or that the process had kept waiting, had TCP read the clock again. Kernel TLS and a sockmap's
 * program read from TCP in their own way. If no acknowledgement waits, TCP may have sent one after the copy. On
 * loopback the client has then taken it within the call. The first bytes of a connection may come with its SYN, and TCP
 * reads no clock at their read. So its first read is not timed by TCP, and none whose time would be that of an arrival.
 */
static __always_inline __u64 clock_read(const struct sock *sk, const struct conn *c)
{
	__u64 ns = CLOCK_KEPT && read_clock ? CLOCK_OF(sk, tcp_clock_cache) : 0;

	if (ns > c->last_read_ns && ns > c->last_write_ns && c->last_read_ns &&
	    ns > PLAIN(&c->arrival_ns[PLAIN(&c->newest) & 1]) &&
	    CLOCK_OF(sk, inet_conn.icsk_ack.pending) && !CLOCK_OF(sk, inet_conn.icsk_ulp_ops) &&
	    !sk->sk_user_data)
		return ns;
	return bpf_ktime_get_ns();
}

/* Return the part of the last @ns that was before @written_ns of clock_written(). */
static __always_inline __u64 clock_before(__u64 ns, __u64 written_ns)
{
	__u64 since_ns;

	if (!CLOCK_KEPT)
		return ns;
	since_ns = bpf_ktime_get_ns() - written_ns;
	return ns > since_ns ? ns - since_ns : 0;
}

#endif
