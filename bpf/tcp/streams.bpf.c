// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The end of connections whose streams are followed (streams.h): streams that are open then will not be answered.
 * This program is separate so that it does not run without --http, and kernels without bpf_loop() load the others.
 */
#include "streams.h"

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(streams_state, const struct sock *sk, int old, int new)
{
	struct http2_conn *h;

	if (sk->sk_protocol != PROTO_TCP ||
	    (new != TCP_FIN_WAIT1 &&new != TCP_LAST_ACK &&new != TCP_CLOSE))
		return 0;
	h = http2_of(sk);
	if (h)
		streams_end(h);
	return 0;
}
