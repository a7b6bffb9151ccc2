/* SPDX-License-Identifier: MIT */
/* Words of a command line that name a network namespace, a cgroup, a container or a pod of this host. */
#ifndef OBSERVER_HOST_CONTAINERS_TARGET_H
#define OBSERVER_HOST_CONTAINERS_TARGET_H

#include <stddef.h>
#include <stdint.h>

struct target {
	char netns[288]; /* a path to the network namespace; "": our own */
	int cgroup_fd;	 /* the processes are in this cgroup of version 2; -1: none is known */
	uint32_t *pids;	 /* the processes there now */
	size_t pid_count;
};

void target_free(struct target *target);

/*
 * Each returns 0, -ENOMEM, or another -errno with a sentence in @reason, which lists the existing names.
 * target_free() is needed only after 0.
 */
int target_of_netns(const char *name, char *reason, size_t size, struct target *ret_target);
int target_of_cgroup(const char *path, char *reason, size_t size, struct target *ret_target);
/* @word: the container's number, its first digits, or its name. */
int target_of_container(const char *word, char *reason, size_t size, struct target *ret_target);
/* @word: NAMESPACE/NAME. */
int target_of_pod(const char *word, char *reason, size_t size, struct target *ret_target);

#endif
