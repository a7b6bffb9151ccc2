/* SPDX-License-Identifier: MIT */
/* The system calls that a process may still make once it is confined; used by confine.c. */
#ifndef OBSERVER_PROCESS_CALLS_H
#define OBSERVER_PROCESS_CALLS_H

/*
 * Tasks that a confined process still has, as bits. With none it may compute, and use its open
 * descriptors.
 */
enum calls_task {
	CALLS_OBSERVE = 1 << 0, /* reads BPF maps, /proc and sockets, and serves the endpoint */
	CALLS_NETNS = 1 << 1,	/* enters the network namespace that it observes */
	CALLS_FILES = 1 << 2,	/* creates and replaces files that the user has named */
	CALLS_SEND = 1 << 3,	/* sends to an HTTP server, whose name it resolves */
};

/*
 * Allow only the calls of @tasks, by seccomp and for good. Needs no_new_privs or CAP_SYS_ADMIN. 0
 * or -errno.
 */
int calls_allow(unsigned int tasks);

#endif
