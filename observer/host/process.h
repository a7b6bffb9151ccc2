/* SPDX-License-Identifier: MIT */
/* Processes as /proc shows them: names, descriptors and their limit, holders of a socket or a listener. */
#ifndef OBSERVER_HOST_PROCESS_H
#define OBSERVER_HOST_PROCESS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/run.h"

#define TREND_POINTS 64

struct resource_process {
	uint32_t pid;
	char comm[16];
	bool late;		      /* it began after the first reading: it has no trend */
	uint64_t fds;		      /* 0: it has ended */
	uint64_t most;		      /* at the time of any reading */
	uint64_t limit;		      /* soft RLIMIT_NOFILE */
	uint32_t trend[TREND_POINTS]; /* descriptors at the points of the sample */
};

/* From this share of the limit on, nearly all descriptors are in use. */
#define PROCESS_FULL_SHARE 0.8

/* Return whether they were so for a time, and are not so any more, or the process has ended. */
static inline bool process_was_full(const struct resource_process *process)
{
	return process->most > process->fds &&
	       (double)process->most >= PROCESS_FULL_SHARE * (double)process->limit;
}

struct process_list {
	struct resource_process *entries;
	size_t count;
	uint64_t unseen; /* processes whose descriptors we may not count */
};

/* Return the next process in @proc, an open /proc; 0: there are no more. */
uint32_t process_next(DIR *proc);

/* List all processes; @pid: only this one, unless 0. 0 or -errno. */
int process_list(uint32_t pid, struct process_list *ret_list);
/* Count the processes' descriptors again, as point @point of the trend. Ended processes have 0. */
void process_point(struct process_list *list, unsigned int point);
/*
 * Count the descriptors once more, without adding a point. Add processes that have begun since, and drop those that have
 * ended, except a few that were nearly full. @pid: as above. 0 or -ENOMEM.
 */
int process_renew(uint32_t pid, struct process_list *list);
void process_free(struct process_list *list);

/* Read name, open descriptors and soft limit of process @pid. -ESRCH if it is gone. */
int process_read(uint32_t pid, struct run_process *ret_process);
/* Return whether the soft limit of descriptors is the hard one: nobody but root raises it then. */
bool process_is_at_hard_limit(uint32_t pid);
int process_comm(uint32_t pid, char *buffer, size_t size);
/*
 * Return the real user of process @pid, which the setuid programs that a user starts keep. -ESRCH
 * if it is gone.
 */
int process_user(uint32_t pid, uint32_t *ret_user);
/*
 * Find the unit or container: the last part of the cgroup's path that names one; "" if none does.
 */
void process_unit(uint32_t pid, char *buffer, size_t size);

enum descriptor_type {
	DESCRIPTOR_SOCKET,
	DESCRIPTOR_FILE,
	DESCRIPTOR_PIPE,
	DESCRIPTOR_EVENT, /* epoll, eventfd, timerfd, inotify, … */
	DESCRIPTOR_OTHER,
	DESCRIPTOR_TYPES
};

extern const char *const process_types[DESCRIPTOR_TYPES];

/* Count the descriptors of process @pid by type. Return 0 or -errno. */
int process_kinds(uint32_t pid, uint32_t ret_counts[DESCRIPTOR_TYPES]);

/* A socket whose holder is wanted. */
struct socket_owner {
	uint64_t inode;
	uint32_t pid; /* the first process found; 0: none */
};

/* Sort @owners by inode and fill in the processes; one walk over /proc. */
void process_owners(struct socket_owner *owners, size_t count);
/* Fill in those of @owners, sorted by inode, that process @pid holds. */
void process_owned(uint32_t pid, struct socket_owner *owners, size_t count);
/* Return the process of @inode in sorted @owners; 0: none. */
uint32_t process_owner(const struct socket_owner *owners, size_t count, uint64_t inode);

/* ---- listeners ---- */

struct process_listener {
	uint16_t port;
	uint64_t inode;
};

typedef void (*process_holder)(void *context, uint32_t pid,
			       const struct process_listener *listener);

/*
 * List the TCP listeners (IPv4 and IPv6) in the network namespace of process @pid (0: our own), one
 * entry each. The caller frees *ret_listeners. 0, -ESRCH without such a process, or -errno.
 */
int process_listeners(uint32_t pid, struct process_listener **ret_listeners, size_t *ret_count);

/*
 * Call @visit for each of @listeners that process @pid holds a descriptor of.
 * 0, -ESRCH, -EACCES if we may not look.
 */
int process_held(uint32_t pid, const struct process_listener *listeners, size_t count,
		 process_holder visit, void *context);

/* The same for all processes, except those that end meanwhile or refuse. */
void process_held_by_all(const struct process_listener *listeners, size_t count,
			 process_holder visit, void *context);

/*
 * Return whether process @pid holds a listener of its network namespace, TCP or Unix. False if it has
 * ended, true if that cannot be seen.
 */
bool process_listens(uint32_t pid);

#endif
