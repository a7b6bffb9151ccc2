// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * How deep each listener's accept queue gets: the kernel announces every connection that it queues
 * by sk_data_ready (6.3 and newer), as it does data; for anything but a listener this returns at once.
 */
#include "event.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EVENT_LISTENERS);
	__type(key, __u64); /* the socket's cookie, as inet_diag tells it */
	__type(value, __u32);
} event_depths SEC(".maps");

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(event_backlog_ready, const struct sock *sk)
{
	__u32 depth, *deepest;
	__u64 cookie;

	if (sk->__sk_common.skc_state != TCP_LISTEN)
		return 0;
	depth = sk->sk_ack_backlog;
	cookie = bpf_get_socket_cookie((void *)sk);
	deepest = bpf_map_lookup_elem(&event_depths, &cookie);
	if (!deepest)
		bpf_map_update_elem(&event_depths, &cookie, &depth, BPF_NOEXIST);
	else if (depth > *deepest)
		*deepest = depth;
	return 0;
}
