/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Code that fexit programs share: exchange_fexit.bpf.c, exchange_steps.bpf.c. They can be preempted: SLOT_SHARED. */
#ifndef BPF_TCP_EXCHANGE_FEXIT_H
#define BPF_TCP_EXCHANGE_FEXIT_H

#define SLOT_SHARED
#include "exchange.h"

struct page;
struct msghdr;

static __always_inline void was_read(const struct sock *sk, int flags, int ret)
{
	struct conn *c;

	if (ret <= 0 || flags & FLAGS_NO_READ)
		return;
	if (!port_observed(sk->__sk_common.skc_num))
		return;
	c = conn_of(sk);
	if (c)
		exchange_read(sk, c, ret, flags, false);
}

static __always_inline void written(const struct sock *sk, int ret)
{
	struct conn *c;

	if (ret <= 0 || !port_observed(sk->__sk_common.skc_num))
		return;
	c = conn_of(sk);
	if (c)
		exchange_write(sk, c, ret, false);
}

/* The programs of writes. sendfile() and splice() called tcp_sendpage() until 6.5 removed it. */
#define EXCHANGE_WRITES(sendmsg, sendpage)                                                  \
	SEC("?fexit/tcp_sendmsg")                                                           \
	int BPF_PROG(sendmsg, struct sock *sk, struct msghdr *message, __u64 size, int ret) \
	{                                                                                   \
		written(sk, ret);                                                           \
		return 0;                                                                   \
	}                                                                                   \
	SEC("?fexit/tcp_sendpage")                                                          \
	int BPF_PROG(sendpage, struct sock *sk, struct page *page, int offset, __u64 size,  \
		     int flags, int ret)                                                    \
	{                                                                                   \
		written(sk, ret);                                                           \
		return 0;                                                                   \
	}

#endif
