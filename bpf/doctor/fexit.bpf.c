// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * EMFILE, ENFILE and EADDRINUSE where they arise: in the kernel's functions that hand out a descriptor, a file and a
 * port. Only opening and binding calls them. Where such programs are refused, syscall.bpf.c sees the same at a higher
 * price.
 */
#include "event.h"

#define ERR_NFILE -23
#define ERR_MFILE -24

static __always_inline void no_file(enum event_kind kind)
{
	struct event_key key = {.kind = kind};

	key.netns = event_netns_of_task();
	key.pid = event_pid();
	event_failed(&key, 0);
}

SEC("?fexit/get_unused_fd_flags")
int BPF_PROG(event_descriptor, unsigned int flags, int ret)
{
	if (ret == ERR_MFILE)
		no_file(EVENT_NO_DESCRIPTOR);
	return 0;
}

SEC("?fexit/alloc_empty_file")
int BPF_PROG(event_file, int flags, const void *cred, void *ret)
{
	if ((long)ret == ERR_NFILE)
		no_file(EVENT_NO_FILE);
	return 0;
}

static __always_inline void own_address(const struct sock *sk, struct event_key *key)
{
	key->family = sk->__sk_common.skc_family;
	if (key->family == FAMILY_INET6)
		BPF_CORE_READ_INTO((struct in6_addr___kernel *)key->address, &sk->__sk_common,
				   skc_v6_rcv_saddr);
	else
		BPF_CORE_READ_INTO((__be32 *)key->address, &sk->__sk_common, skc_rcv_saddr);
}

SEC("?fexit/inet_csk_get_port")
int BPF_PROG(event_port, struct sock *sk, unsigned short port, int ret)
{
	struct event_key key = {.kind = EVENT_ADDRESS_IN_USE, .port = port};

	if (!ret)
		return 0;
	key.netns = sk->__sk_common.skc_net.net->ns.inum;
	key.pid = event_pid();
	own_address(sk, &key);
	event_failed(&key, 0);
	return 0;
}
