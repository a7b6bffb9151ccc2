/* SPDX-License-Identifier: MIT */
/* The network namespaces of this host, as far as processes are in them or names lead to them. */
#ifndef OBSERVER_HOST_NAMESPACES_H
#define OBSERVER_HOST_NAMESPACES_H

#include <stddef.h>
#include <stdint.h>

#define NAMESPACES_MAX 1024

struct namespace
{
	uint32_t inode;
	char path[288]; /* a path that leads to it now */
};

struct namespaces {
	struct namespace *list; /* our own is the first */
	size_t count;
	uint64_t left_out; /* namespaces beyond the maximum */
	uint64_t unseen;   /* processes whose namespace we may not look at */
};

/* Look through /run/netns, Docker's names and all processes. Return 0 or -errno; namespaces_free() after 0 only. */
int namespaces_find(struct namespaces *ret_namespaces);
void namespaces_free(struct namespaces *namespaces);

/*
 * Return who owns the network namespace @fd: the user who made the user namespace that it belongs to. That is root for
 * those of container engines that root runs. -EPERM if that user namespace is above our own.
 */
int namespaces_owner(int fd, uint32_t *ret_user);
/* Open the network namespace of process @pid. -ENOENT if that is our own; another -errno. */
int namespaces_open(uint32_t pid, int *ret_fd);

#endif
