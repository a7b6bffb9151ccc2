// SPDX-License-Identifier: MIT
/* Listeners by port, and their processes; see listening.h. Neighbours: process.c and sockets.c, which read /proc. */
#include "listening.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "namespaces.h"
#include "host/net/netns.h"
#include "host/net/sockets.h"
#include "sojourn/cleanup.h"

#define PORTS_TOLD 8

struct wanted {
	uint16_t first, last;
	bool found;
};

static void match_udp(void *context, const struct resource_socket *socket)
{
	struct wanted *wanted = context;

	wanted->found |=
		socket->source_port >= wanted->first && socket->source_port <= wanted->last;
}

static bool is_bound_udp(uint16_t first, uint16_t last)
{
	struct wanted wanted = {.first = first, .last = last};

	return sockets_udp(match_udp, &wanted) < 0 || wanted.found;
}

bool listening_within(uint16_t first, uint16_t last, uint16_t protocol)
{
	autofree struct process_listener *listeners = NULL;
	size_t count;

	if (protocol == IPPROTO_UDP)
		return is_bound_udp(first, last);
	if (process_listeners(0, &listeners, &count) < 0)
		return true;
	for (size_t i = 0; i < count; i++)
		if (listeners[i].port >= first && listeners[i].port <= last)
			return true;
	return false;
}

static int compare_ports(const void *a, const void *b)
{
	return ((const struct process_listener *)a)->port -
	       ((const struct process_listener *)b)->port;
}

void listening_ports(char *text, size_t size)
{
	autofree struct process_listener *listeners = NULL;
	size_t count = 0, told = 0, more = 0, used = 0;

	*text = '\0';
	if (process_listeners(0, &listeners, &count) < 0 || !count)
		return;
	qsort(listeners, count, sizeof(*listeners), compare_ports);
	for (size_t i = 0; i < count; i++) {
		if (i && listeners[i].port == listeners[i - 1].port)
			continue;
		if (told == PORTS_TOLD || used >= size) {
			more++;
			continue;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%u", told++ ? ", " : "",
					 listeners[i].port);
	}
	if (more && used < size)
		snprintf(text + used, size - used, " and %zu more", more);
}

static void take_first(void *context, uint32_t pid, const struct process_listener *listener)
{
	uint32_t *first = context;

	(void)listener;
	if (!*first)
		*first = pid;
}

void listening_owner(uint16_t port, char *text, size_t size)
{
	autofree struct process_listener *listeners = NULL;
	size_t count = 0, kept = 0;
	uint32_t pid = 0;
	char comm[16];

	if (process_listeners(0, &listeners, &count) < 0)
		count = 0;
	for (size_t i = 0; i < count; i++)
		if (listeners[i].port == port)
			listeners[kept++] = listeners[i];
	process_held_by_all(listeners, kept, take_first, &pid);
	if (pid && !process_comm(pid, comm, sizeof(comm)))
		snprintf(text, size, "%s (pid %u)", comm, pid);
	else
		snprintf(text, size, "a process that cannot be seen");
}

int listening_in(int netns_fd, struct process_listener **ret_listeners, size_t *ret_count)
{
	autoclose int own_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = own_fd < 0 ? -errno : netns_enter(netns_fd);

	if (r < 0)
		return r;
	r = process_listeners(0, ret_listeners, ret_count);
	if (netns_fd >= 0 && netns_enter(own_fd) < 0)
		return -errno;
	return r;
}

int listening_in_all(size_t *ret_count)
{
	struct namespaces all;
	int r = namespaces_find(&all);

	*ret_count = 0;
	for (size_t i = 0; !r && i < all.count; i++) {
		autofree struct process_listener *listeners = NULL;
		autoclose int fd = -1;
		uint32_t inode;
		size_t count;

		if (!netns_open(all.list[i].path, &fd, &inode) &&
		    !listening_in(fd, &listeners, &count))
			*ret_count += count;
	}
	if (!r)
		namespaces_free(&all);
	return r;
}
