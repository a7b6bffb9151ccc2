/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * How deep each listener's accept queue gets, for the doctor's findings. Either the doctor's program or the
 * observer's keeps it at sk_data_ready, never both: a second program there costs every segment of the host.
 */
#ifndef BPF_LISTENER_H
#define BPF_LISTENER_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/*
 * A map of depths by the socket's cookie, the number that inet_diag reports. @most: how many listeners it has room
 * for.
 */
#define LISTENER_DEPTHS(name, most)                  \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_LRU_HASH); \
		__uint(max_entries, most);           \
		__type(key, __u64);                  \
		__type(value, __u32);                \
	} name SEC(".maps")

static __always_inline void listener_depth(void *depths, const struct sock *sk)
{
	__u64 cookie = bpf_get_socket_cookie((void *)sk);
	__u32 depth = sk->sk_ack_backlog;
	__u32 *deepest = bpf_map_lookup_elem(depths, &cookie);

	if (!deepest)
		bpf_map_update_elem(depths, &cookie, &depth, BPF_NOEXIST);
	else if (depth > *deepest)
		*deepest = depth;
}

#endif
