/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Who is observed: finds or makes the service that a listener belongs to, and its processes. */
#ifndef BPF_SERVICE_H
#define BPF_SERVICE_H

#include "state.h"

#define SERVICE_NONE	      0xffffffffU
#define PID_NAMESPACE_INITIAL 0xeffffffc /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

/*
 * Process id of the current task as the observer sees it; 0 if it does not. The helper that
 * translates knows only tasks of exactly that namespace (kernel/bpf/helpers.c), but an observer in
 * the initial one also sees those of containers: there, the plain number is the right one.
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

static __always_inline void service_key_of(const struct sock *sk, struct service_key *ret_key)
{
	ret_key->netns = sk->__sk_common.skc_net.net->ns.inum;
	ret_key->port = sk->__sk_common.skc_num;
	ret_key->protocol = PROTO_TCP;
}

static __always_inline __u32 service_find(const struct service_key *key)
{
	__u32 *index = bpf_map_lookup_elem(&services, key);

	return index ? *index : SERVICE_NONE;
}

/*
 * The next free index. Without atomics that return, each index is claimed in a map that lets only one
 * have it, under a key that is no address.
 */
static __always_inline __u32 service_claim(void)
{
	struct conn nothing = {};

	if (!config.plain)
		return __sync_fetch_and_add(&service_next, 1);
	for (int i = 0; i < 4; i++) {
		__u32 index = service_next;
		__u64 key = (__u64)index + 1;

		__sync_fetch_and_add(&service_next, 1);
		if (!bpf_map_update_elem(&conns_by_address, &key, &nothing, BPF_NOEXIST))
			return index;
	}
	return SERVICE_NONE;
}

/* Twice, where it is no single operation: another CPU may have set its own bit in between. */
static __always_inline void port_observe(__u16 port)
{
	__u64 *word = &observed_ports[(port >> 6) & 1023];
	__u64 bit = 1ULL << (port & 63);

	if (config.floor)
		return;
	if (!config.plain) {
		__sync_fetch_and_or(word, bit);
		return;
	}
	PLAIN(word) |= bit;
	PLAIN(word) |= bit;
}

static __always_inline __u32 service_new(const struct service_key *key)
{
	__u32 index = service_claim();

	if (index >= config.max_services)
		return SERVICE_NONE;
	if (bpf_map_update_elem(&services, key, &index, BPF_NOEXIST))
		return service_find(key); /* another CPU was faster; the index stays unused */
	port_observe(key->port);
	return index;
}

/* The service of a listener; @by_current: the current task is the one that listens. */
static __always_inline __u32 service_of_listener(const struct sock *sk, bool by_current)
{
	struct service_key key = {};
	__u32 index;

	service_key_of(sk, &key);
	index = service_find(&key);
	if (index != SERVICE_NONE)
		return index;
	if (config.all_listeners && key.netns == config.netns)
		return service_new(&key);
	if (by_current && config.pid && current_pid() == config.pid)
		return service_new(&key);
	return SERVICE_NONE;
}

static __always_inline void owner_seen(__u32 service)
{
	struct owner_key key = {.service = service, .pid = current_pid()};
	__u8 one = 1;

	if (key.pid && !bpf_map_lookup_elem(&owners, &key))
		bpf_map_update_elem(&owners, &key, &one, BPF_ANY);
}

#endif
