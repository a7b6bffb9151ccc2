/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Find when a write began that waited for room. The write's program runs when the write returns. For a response larger
 * than the socket's buffer the client has taken most of it by then. The same wait looks like the end of a response,
 * and is none.
 *
 * TCP counts, in ticks of the coarse clock, how long it had something to send (tcp_chrono_start(), net/ipv4/tcp.c;
 * since 4.10). The growth of that count since the request was read is the time since the first byte was written.
 * Neighbour: exchange.h.
 */
#ifndef BPF_TCP_CONNECTION_BUSY_H
#define BPF_TCP_CONNECTION_BUSY_H

#include "arrival.h"

/* Any socket has room for this much (tcp_wmem, its first value): such a write does not wait. */
#define BUSY_LEAST_BYTES 4096
/* Not known: something was in flight when the request was read. */
#define BUSY_UNKNOWN 0xffff
/* Ticks are kept in 15 bits: a larger difference may have wrapped. */
#define BUSY_LONGEST_TICKS 0x7fff

static __always_inline __u32 busy_ticks(const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;
	__u32 ticks = TCP_FIELD(sk, chrono_stat[0]) + TCP_FIELD(sk, chrono_stat[1]) +
		      TCP_FIELD(sk, chrono_stat[2]);

	if (BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type))
		ticks += (__u32)bpf_jiffies64() - TCP_FIELD(sk, chrono_start);
	return ticks;
}

/* Return the ticks at the first read of a request, modulo 2^15, or BUSY_UNKNOWN. */
static __always_inline __u16 busy_begin(const struct sock *sk)
{
	__u32 ticks;

	if (TCP_FIELD(sk, snd_una) != TCP_FIELD(sk, write_seq))
		return BUSY_UNKNOWN;
	ticks = TCP_FIELD(sk, chrono_stat[0]) + TCP_FIELD(sk, chrono_stat[1]) +
		TCP_FIELD(sk, chrono_stat[2]);
	return ticks & 0x7fff;
}

/*
 * Return for how long a write that ended @now has waited for room, in ns, to a tick. 0: it has not waited, or that is
 * not known. @since: when nothing was written yet. The ticks go on until the write's program runs, which may be much
 * later. So the time since @now is taken off.
 */
static __always_inline __u64 busy_waited(const struct sock *sk, const struct conn *c, __u64 since,
					 __u64 now)
{
	__u64 waited_ns;
	__u32 ticks;

	if (c->busy_ticks == BUSY_UNKNOWN || now - since < 2 * config.tick_ns ||
	    now - since > BUSY_LONGEST_TICKS * config.tick_ns)
		return 0;
	ticks = (busy_ticks(sk) - c->busy_ticks) & 0x7fff;
	if (ticks < 2)
		return 0;
	waited_ns = clock_before(ticks * config.tick_ns, now);
	return waited_ns < now - since ? waited_ns : now - since;
}

/*
 * Return whether the client's slowness explains why nothing was written since a response's last write. A server that
 * does not block writes when there is room again: more from before is unsent than fits any socket. A write that blocks
 * returns late, and may leave nothing unsent. It is a large one, and TCP had something to send all the time, but for
 * less than the quiet time.
 */
static __always_inline bool busy_explains(const struct sock *sk, const struct conn *c, __u32 bytes,
					  __u64 now)
{
	__u32 unsent = TCP_FIELD(sk, write_seq) - TCP_FIELD(sk, snd_nxt);

	if (unsent > bytes && unsent - bytes > BUSY_LEAST_BYTES)
		return true;
	if (bytes <= BUSY_LEAST_BYTES)
		return false;
	return busy_waited(sk, c, c->first_write_ns, now) + config.quiet_ns >
	       now - c->first_write_ns;
}

#endif
