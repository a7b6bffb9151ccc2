/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The network namespace of a socket. */
#ifndef BPF_NETNS_H
#define BPF_NETNS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>

/*
 * Read the pointer through one that the verifier does not trust: @sk is of TCP. After a trusted one it would look for
 * four names among all of the kernel's types (btf_nested_type_is_trusted(), since 6.2). That takes 1 ms before 7.0,
 * which sorts the types. The read is typed, so it also works under lockdown.
 */
static __always_inline const struct net *netns_of(const struct sock *sk)
{
	const struct sock *untrusted = (const void *)bpf_skc_to_tcp_sock((void *)sk);

	return untrusted ? untrusted->__sk_common.skc_net.net : NULL;
}

/* Return the namespace's inode number; 0: not known. */
static __always_inline __u32 netns_inode(const struct sock *sk)
{
	const struct net *net = netns_of(sk);

	return net ? net->ns.inum : 0;
}

#endif
