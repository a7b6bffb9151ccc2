/* SPDX-License-Identifier: MIT */
/* The system calls that a process may still make once it is confined; used by confine.c. */
#ifndef OBSERVER_PROCESS_CALLS_H
#define OBSERVER_PROCESS_CALLS_H

/* What the process goes on to do, as bits. Without any: it computes, and uses what it has open. */
enum calls_task {
	CALLS_OBSERVE = 1 << 0, /* reads maps of BPF, /proc and sockets; answers at the endpoint */
	CALLS_NETNS = 1 << 1,	/* enters the network namespace that it observes */
	CALLS_FILES = 1 << 2,	/* makes and replaces files that the user has named */
	CALLS_SEND = 1 << 3,	/* asks a server over HTTP, by name */
};

/*
 * Allows the calls of @tasks and no others, by seccomp. Needs no_new_privs, or CAP_SYS_ADMIN. Irrevocable. 0 or
 * -errno.
 */
int calls_allow(unsigned int tasks);

#endif
