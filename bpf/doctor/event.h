/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Maps of `sojourn doctor` that count by process and address. They are an object of their own, defined in
 * state.bpf.c: the doctor loads nothing of the observer's.
 */
#ifndef BPF_DOCTOR_EVENT_H
#define BPF_DOCTOR_EVENT_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/events.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common___event {
	__be32 skc_daddr;
	struct in6_addr___kernel skc_v6_daddr;
};

struct inet_sock {
	__be16 inet_sport;
};

struct nsproxy {
	struct net *net_ns;
};

struct task_struct___event {
	struct nsproxy *nsproxy;
	struct task_struct___event *group_leader;
	char comm[16];
};

#pragma clang attribute pop

struct event_failures_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_FAILURES_MAX);
	__type(key, struct event_key);
	__type(value, struct event_count);
};

/* A map of their own, so that many short-lived processes leave room for failures. */
struct event_actions_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVENT_ACTIONS_MAX);
	__type(key, struct event_key);
	__type(value, struct event_count);
};

struct event_names_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EVENT_NAMES);
	__type(key, __u32);
	__type(value, struct event_name);
};

extern struct event_failures_map event_failures SEC(".maps");
extern struct event_actions_map event_actions SEC(".maps");
extern struct event_names_map event_names SEC(".maps");

/* Events that found no room. */
extern __u64 event_failures_lost;
extern __u64 event_actions_lost;

static __always_inline void event_count(void *map, __u64 *lost, const struct event_key *key,
					__u64 time_ns)
{
	struct event_count first = {.count = 1, .time_ns = time_ns};
	struct event_count *seen = bpf_map_lookup_elem(map, key);

	if (!seen && !bpf_map_update_elem(map, key, &first, BPF_NOEXIST))
		return;
	if (!seen) /* another CPU was faster */
		seen = bpf_map_lookup_elem(map, key);
	if (!seen) {
		__sync_fetch_and_add(lost, 1);
		return;
	}
	__sync_fetch_and_add(&seen->count, 1);
	__sync_fetch_and_add(&seen->time_ns, time_ns);
}

static __always_inline void event_failed(const struct event_key *key, __u64 time_ns)
{
	event_count(&event_failures, &event_failures_lost, key, time_ns);
}

static __always_inline void event_acted(const struct event_key *key, __u64 time_ns)
{
	event_count(&event_actions, &event_actions_lost, key, time_ns);
}

/* Return the current process, and keep its name. */
static __always_inline __u32 event_pid(void)
{
	struct task_struct___event *task = (void *)bpf_get_current_task();
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct event_name *known = bpf_map_lookup_elem(&event_names, &pid);
	struct event_name name = {};

	/* The name of the process: its threads may have others. */
	BPF_CORE_READ_INTO(&name.comm, task, group_leader, comm);
	/* It may be outdated: exec() changes the name, and pids are reused. */
	if (!known || __builtin_memcmp(known->comm, name.comm, sizeof(name.comm)))
		bpf_map_update_elem(&event_names, &pid, &name, BPF_ANY);
	return pid;
}

static __always_inline __u32 event_netns_of_task(void)
{
	struct task_struct___event *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, nsproxy, net_ns, ns.inum);
}

static __always_inline void event_destination(const struct sock *sk, struct event_key *key)
{
	const struct sock_common___event *skc = (const void *)&sk->__sk_common;

	key->family = sk->__sk_common.skc_family;
	if (key->family == FAMILY_INET6)
		BPF_CORE_READ_INTO((struct in6_addr___kernel *)key->address, skc, skc_v6_daddr);
	else
		BPF_CORE_READ_INTO((__be32 *)key->address, skc, skc_daddr);
}

#endif
