// SPDX-License-Identifier: MIT
/*
 * Counts the packets arriving at an interface twice, by interrupted task. One program is in the
 * packets' path, which they cannot bypass; the other is a tracing program.
 */
#include "../../bpf/kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "seen.h"

char licence[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
};

struct task_struct___pids {
	int tgid;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct seen);
} tasks SEC(".maps");

__u32 interface;
__u32 netns;

static __always_inline struct seen *seen_by_task(void)
{
	const struct task_struct___pids *task = (const void *)bpf_get_current_task();
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct seen nothing = {};

	bpf_map_update_elem(&tasks, &tgid, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks, &tgid);
}

SEC("tc")
int seen_passed(struct __sk_buff *skb)
{
	struct seen *seen = seen_by_task();

	if (seen)
		__sync_fetch_and_add(&seen->passed, 1);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(seen_traced, const struct sk_buff *skb)
{
	const struct net_device *device = skb->dev;
	struct seen *seen;

	if ((__u32)device->ifindex != interface || device->nd_net.net->ns.inum != netns)
		return 0;
	seen = seen_by_task();
	if (seen)
		__sync_fetch_and_add(&seen->traced, 1);
	return 0;
}
