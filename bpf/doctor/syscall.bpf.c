// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * EMFILE, ENFILE and EADDRINUSE from the results of system calls. Any such tracepoint puts every thread of the host
 * on the kernel's slow system-call path (syscall_regfunc(), kernel/tracepoint.c), so it is the user's choice. Calls
 * by io_uring are not seen.
 */
#include "event.h"
#include "syscall.h"

#define ERR_NFILE     -23
#define ERR_MFILE     -24
#define ERR_ADDRINUSE -98

/* struct sockaddr_in and sockaddr_in6, as far as they go. */
struct socket_address {
	__u16 family;
	__be16 port;
	__u32 first; /* IPv4: the address; IPv6: flow information */
	__u8 v6[16];
};

static __always_inline void bound_address(const struct pt_regs *regs, struct event_key *key)
{
	struct socket_address address = {};

	if (syscall_number(regs) != NR_BIND)
		return;
	/* IPv4's is shorter, and the bytes after it may not be readable. */
	if (bpf_probe_read_user(&address, 8, (const void *)syscall_second(regs)))
		return;
	key->family = address.family;
	key->port = __builtin_bswap16(address.port);
	if (address.family == FAMILY_INET6)
		bpf_probe_read_user(key->address, sizeof(key->address),
				    (const void *)(syscall_second(regs) + 8));
	else
		__builtin_memcpy(key->address, &address.first, sizeof(address.first));
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(event_returned, struct pt_regs *regs, long ret)
{
	struct event_key key = {};

	if (ret == ERR_MFILE)
		key.kind = EVENT_NO_DESCRIPTOR;
	else if (ret == ERR_NFILE)
		key.kind = EVENT_NO_FILE;
	else if (ret == ERR_ADDRINUSE)
		key.kind = EVENT_ADDRESS_IN_USE;
	else
		return 0;
	key.netns = event_netns_of_task();
	key.pid = event_pid();
	if (ret == ERR_ADDRINUSE)
		bound_address(regs, &key);
	event_failed(&key, 0);
	return 0;
}
