/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Find or make the service of a listener, and note the processes that serve it. */
#ifndef BPF_SERVICE_H
#define BPF_SERVICE_H

#include "netns.h"
#include "state.h"

#define PID_NAMESPACE_INITIAL 0xeffffffc /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

/*
 * Return the process id of the current task as the observer sees it; 0 if the observer does not see the task. The
 * helper translates only tasks of exactly that namespace (kernel/bpf/helpers.c). An observer in the initial namespace
 * also sees tasks of containers, and for these the plain number is right.
 */
static __always_inline __u32 current_pid(void)
{
	struct bpf_pidns_info info = {};

	if (config.pidns_ino == PID_NAMESPACE_INITIAL)
		return bpf_get_current_pid_tgid() >> 32;
	if (bpf_get_ns_current_pid_tgid(config.pidns_dev, config.pidns_ino, &info, sizeof(info)))
		return 0;
	return info.tgid;
}

static __always_inline bool port_observed(__u16 port)
{
	return observed_ports[port >> 6] & (1ULL << (port & 63));
}

/* The cookie is the lower half of the namespace's (since 5.12, 3d368ab87cf6). @net: NULL if it is not known. */
static __always_inline void service_key_in(const struct net *net, __u16 port,
					   struct service_key *ret_key)
{
	ret_key->netns = net ? net->ns.inum : 0;
	ret_key->cookie = net && config.all_netns ? (__u32)net->net_cookie : 0;
	ret_key->port = port;
	ret_key->protocol = PROTO_TCP;
}

static __always_inline void service_key_of(const struct sock *sk, struct service_key *ret_key)
{
	service_key_in(netns_of(sk), sk->__sk_common.skc_num, ret_key);
}

static __always_inline __u32 service_find(const struct service_key *key)
{
	__u32 *index = bpf_map_lookup_elem(&services, key);

	return index ? *index : SERVICE_NONE;
}

/* Return how many services can still get a slot. */
static __always_inline __s32 services_left(__u32 taken)
{
	return (__s32)(PLAIN(&services_given) - taken);
}

/*
 * Take the next number out of the ring, if more than @kept are in it. User space finds numbers that were claimed and
 * not used.
 */
static __always_inline __u32 service_claim(__u32 kept)
{
	for (int i = 0; i < 4; i++) {
		__u32 place = PLAIN(&services_taken), at = place % config.max_services;
		__u32 *number = bpf_map_lookup_elem(&services_free, &at);
		__u32 service;

		if (!number || services_left(place) <= (__s32)kept)
			return SERVICE_NONE;
		service = PLAIN(number);
		if (__sync_val_compare_and_swap(&services_taken, place, place + 1) == place)
			return service;
	}
	return SERVICE_NONE;
}

/* Set the bit of @port. */
static __always_inline void port_observe(__u16 port)
{
	if (!config.floor)
		__sync_fetch_and_or(&observed_ports[(port >> 6) & 1023], 1ULL << (port & 63));
}

/* Count @connections of a service that has no slot as not observed. */
static __always_inline void service_drop(const struct service_key *key, __u64 connections)
{
	__u64 *before = bpf_map_lookup_elem(&services_dropped, key);

	/*
	 * clang turns the addition of a constant 0 into a barrier, which old kernels take for a
	 * call.
	 */
	if (connections)
		__sync_fetch_and_add(&connections_dropped, connections);
	if (before && connections)
		__sync_fetch_and_add(before, connections);
	if (before)
		return;
	if (!bpf_map_update_elem(&services_dropped, key, &connections, BPF_NOEXIST))
		__sync_fetch_and_add(&services_dropped_count, 1);
}

/*
 * Return the service of @key. If it has no slot it gets one now, provided that more than @kept are
 * free.
 */
static __always_inline __u32 service_allot(const struct service_key *key, __u32 kept)
{
	__u32 service = service_find(key);

	if (service != SERVICE_NONE)
		return service;
	service = service_claim(kept);
	/* Another CPU may be faster: then the number stays unused, and user space finds it. */
	if (service != SERVICE_NONE && bpf_map_update_elem(&services, key, &service, BPF_NOEXIST))
		service = service_find(key);
	return service;
}

/*
 * Return the service of a connection. Services get slots with their first connection, because
 * thousands of listeners may be unused. @connections: how many to count as not observed if there is
 * no slot.
 */
static __always_inline __u32 service_of_connection(const struct service_key *key, __u64 connections)
{
	__u32 service = service_allot(key, 0);

	if (service == SERVICE_NONE)
		service_drop(key, connections);
	return service;
}

/* Return whether listeners of the current task are observed because of --pid or --cgroup. */
static __always_inline bool current_wanted(void)
{
	if (config.pid && current_pid() == config.pid)
		return true;
	return config.cgroup && bpf_current_task_under_cgroup(&target_cgroup, 0) == 1;
}

/*
 * Return whether a listener's connections are to be observed. @by_current: the current task is the
 * one that listens.
 */
static __always_inline bool listener_wanted(const struct service_key *key, bool by_current)
{
	if (service_find(key) != SERVICE_NONE)
		return true;
	if ((config.all_netns || key->netns == config.netns) &&
	    (config.all_listeners || port_observed(key->port)))
		return true;
	return by_current && current_wanted();
}

/*
 * Return the service of a listener. SERVICE_NONE: it is unused so far, and the free slots are kept
 * for used ones.
 */
static __always_inline __u32 service_of_listener(const struct service_key *key)
{
	port_observe(key->port);
	return service_allot(key, config.slots_kept);
}

static __always_inline void owner_seen(__u32 service)
{
	struct owner_key key = {.service = service, .pid = current_pid()};
	__u8 one = 1;

	if (service == SERVICE_NONE || !key.pid || bpf_map_lookup_elem(&owners, &key))
		return;
	bpf_map_update_elem(&owners, &key, &one, BPF_ANY);
	bpf_map_update_elem(&serving, &key.pid, &service, BPF_ANY);
}

#endif
