/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* A process that found no source port towards a destination: bpf/ports.bpf.c counts them. */
#ifndef WIRE_PORTS_H
#define WIRE_PORTS_H

#include <linux/types.h>

#define PORT_FAILURES_MAX 1024

struct port_failure {
	__u32 netns; /* inode number, as in /proc/PID/ns/net */
	__u32 pid;   /* thread group, in the initial pid namespace */
	__u8 address[16]
		__attribute__((aligned(8))); /* network order; IPv4: the first four bytes */
	__u16 family;
	__u16 port; /* host order */
	__u32 unused;
};

_Static_assert(sizeof(struct port_failure) == 32, "one layout for kernel and user space");

#endif
