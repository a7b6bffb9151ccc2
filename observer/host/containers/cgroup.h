/* SPDX-License-Identifier: MIT */
/* Finds the cgroup (v2) of a service's sockets, for programs that are attached to one. */
#ifndef OBSERVER_HOST_CONTAINERS_CGROUP_H
#define OBSERVER_HOST_CONTAINERS_CGROUP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Open the cgroup whose directory is @path. Return -errno with @reason (of @size bytes) if there is none, if it is
 * not of version 2, or if it is the root. Programs attached to the root run for all of the host.
 */
int cgroup_open(const char *path, char *reason, size_t size, int *ret_fd);

/*
 * Open the one cgroup of all processes that hold a TCP listener on one of @ports. They are looked for in the network
 * namespace of process @pid (0: our own). Without @ports, open the cgroup of @pid itself. Return -errno with @reason
 * if nothing listens, if the processes are in several cgroups, and as above.
 */
int cgroup_of_services(uint32_t pid, const uint16_t *ports, size_t port_count, char *reason,
		       size_t size, int *ret_fd);

/*
 * Open the cgroup that process @pid is in or below, and whose name contains the number @part. In a slice the number's
 * dashes are underscores. Return 0 or -errno.
 */
int cgroup_of_part(uint32_t pid, const char *part, int *ret_fd);

#endif
