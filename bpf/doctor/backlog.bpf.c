// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * How deep each listener's accept queue gets. The kernel announces every queued connection by sk_data_ready (6.3 and
 * newer), as it announces data. For sockets that do not listen the program returns at once.
 */
#include "event.h"
#include "listener.h"

LISTENER_DEPTHS(event_depths, EVENT_LISTENERS);

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(event_backlog_ready, const struct sock *sk)
{
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		listener_depth(&event_depths, sk);
	return 0;
}
