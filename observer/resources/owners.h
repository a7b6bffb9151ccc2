/* SPDX-License-Identifier: MIT */
/* Finds the processes behind the sockets that look suspicious in a reading, and only those. */
#ifndef OBSERVER_RESOURCES_OWNERS_H
#define OBSERVER_RESOURCES_OWNERS_H

#include "host/net/netns.h"
#include "host/process.h"

#define OWNED_DESTINATIONS 16
#define OWNED_SOCKETS	   8192
/* After this silence, a peer that has closed waits only for our close(). */
#define CLOSE_WAIT_MS 1000

/* A socket towards one of the heaviest destinations. */
struct owned_socket {
	size_t destination; /* its index in the reading's ports */
	uint64_t inode;
};

struct owner_table {
	struct socket_owner *owners; /* sorted by inode */
	size_t count;
	struct owned_socket *sockets;
	size_t socket_count;
	unsigned int walks; /* over /proc/PID/fd of all processes */
};

/* Owners are looked for if a destination takes at least this share of the range. */
#define OWNED_SHARE 0.25

/*
 * Look for the owners of sockets in @after. @before shows growth. The caller has entered the namespace. Short-lived
 * sockets may be gone when /proc is read, so try up to five times. @all: also owners that are not suspicious. @port: also those of its listeners; 0: of none. Return
 * 0 or -errno.
 */
int owners_find(const struct resource_netns *before, const struct resource_netns *after, bool all,
		uint16_t port, struct owner_table *ret_table);
void owners_free(struct owner_table *table);

/* Return the process that holds the socket; 0: not known. */
uint32_t owners_pid(const struct owner_table *table, uint64_t inode);

#endif
