/* SPDX-License-Identifier: MIT */
/* What /proc tells: listeners, the processes that hold them, descriptors and their limit. */
#ifndef OBSERVER_PROCFS_H
#define OBSERVER_PROCFS_H

#include <stdint.h>

#include "sojourn/run.h"

struct procfs_listener {
	uint16_t port;
	uint64_t inode;
};

/*
 * The TCP listeners (IPv4 and IPv6) in the network namespace of process @pid (0: our own), one
 * entry each. The caller frees *ret_listeners. 0, -ESRCH without such a process, or -errno.
 */
int procfs_listeners(uint32_t pid, struct procfs_listener **ret_listeners, size_t *ret_count);

/*
 * Calls @visit for each of @listeners that process @pid holds a descriptor of.
 * 0, -ESRCH, -EACCES if we may not look.
 */
int procfs_held(uint32_t pid, const struct procfs_listener *listeners, size_t count,
		void (*visit)(void *context, uint32_t pid, const struct procfs_listener *listener),
		void *context);

/* procfs_held() for all processes; those that end meanwhile or refuse are passed over. */
void procfs_held_by_all(const struct procfs_listener *listeners, size_t count,
			void (*visit)(void *context, uint32_t pid,
				      const struct procfs_listener *listener),
			void *context);

/* Name, open descriptors and soft limit of process @pid. -ESRCH if it is gone. */
int procfs_process(uint32_t pid, struct run_process *ret_process);

#endif
