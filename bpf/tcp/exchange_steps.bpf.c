// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Some of exchange_fexit.bpf.c for kernels before 5.17, which have no bpf_loop(): the verifier goes through each step
 * of a loop, so they follow fewer. TLS is recognised there, and not followed (tls.h).
 */
#include "exchange_fexit.h"

/* With `nonblock`, until Linux 5.19 (ec095263a965). */
SEC("?fexit/tcp_recvmsg")
int BPF_PROG(exchange_recvmsg_nonblock, struct sock *sk, struct msghdr *message, __u64 size,
	     int nonblock, int flags, int *address_size, int ret)
{
	was_read(sk, flags, ret);
	return 0;
}

EXCHANGE_WRITES(exchange_sendmsg_steps, exchange_sendpage_steps)
