/* SPDX-License-Identifier: MIT */
/* Processes: their descriptors and limit, and which of them holds a socket. */
#ifndef OBSERVER_RESOURCE_PROCESS_H
#define OBSERVER_RESOURCE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREND_POINTS 64

struct resource_process {
	uint32_t pid;
	char comm[16];
	uint64_t fds;
	uint64_t limit;		      /* soft RLIMIT_NOFILE */
	uint32_t trend[TREND_POINTS]; /* descriptors at the points of the sample */
};

struct process_list {
	struct resource_process *entries; /* by pid */
	size_t count, room;
	uint64_t unseen; /* processes whose descriptors we may not count */
};

/* All processes; @pid: this one alone, unless 0. 0 or -errno. */
int resource_process_list(uint32_t pid, struct process_list *ret_list);
/* Counts their descriptors again, as point @point of the trend; those that ended become 0. */
void resource_process_point(struct process_list *list, unsigned int point);
/* Counts them once more, as no point. */
void resource_process_count(struct process_list *list);
void resource_process_free(struct process_list *list);
/* The fewest points that have quarters. */
#define RESOURCE_PROCESS_QUARTERED 5
/* Whether it had more descriptors at the end of each quarter of @points than at its begin. */
bool resource_process_grew(const struct resource_process *process, unsigned int points);
/* The same of a process in @list; true too where it is not known: too few points, or begun since. */
bool resource_process_may_grow(const struct process_list *list, uint32_t pid, unsigned int points);

/* The unit or container: the last part of the cgroup's path that names one; "" if none does. */
void resource_process_unit(uint32_t pid, char *buffer, size_t size);

enum descriptor_type {
	DESCRIPTOR_SOCKET,
	DESCRIPTOR_FILE,
	DESCRIPTOR_PIPE,
	DESCRIPTOR_EVENT, /* epoll, eventfd, timerfd, inotify, … */
	DESCRIPTOR_OTHER,
	DESCRIPTOR_TYPES
};

extern const char *const resource_process_types[DESCRIPTOR_TYPES];

/* What its descriptors are. 0 or -errno. */
int resource_process_kinds(uint32_t pid, uint32_t ret_counts[DESCRIPTOR_TYPES]);

/* A socket whose holder is looked for. */
struct socket_owner {
	uint64_t inode;
	uint32_t pid; /* the first process found; 0: none */
};

/* Sorts @owners by inode and fills in the processes; one walk over /proc. */
void resource_process_owners(struct socket_owner *owners, size_t count);
/* The process of @inode in sorted @owners; 0: none. */
uint32_t resource_process_owner(const struct socket_owner *owners, size_t count, uint64_t inode);

int resource_process_comm(uint32_t pid, char *buffer, size_t size);

#endif
