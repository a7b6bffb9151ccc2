// SPDX-License-Identifier: MIT
/* The list of resources: adding, evidence, owners, trend; see resource.h. */
#include "resource.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"

const char *const resource_names[RESOURCE_KINDS] = {
	[RESOURCE_PORTS] = "ephemeral_ports",
	[RESOURCE_DESCRIPTORS] = "descriptors",
	[RESOURCE_FILES] = "files",
	[RESOURCE_ACCEPT_QUEUE] = "accept_queue",
	[RESOURCE_SYN_QUEUE] = "syn_queue",
	[RESOURCE_CLOSE_WAIT] = "close_wait",
	[RESOURCE_UNREAD_DATA] = "unread_data",
	[RESOURCE_CLOSING_DATA] = "closing_data",
	[RESOURCE_DEAD_QUEUED] = "dead_queued",
	[RESOURCE_REQUESTS] = "open_requests",
	[RESOURCE_SERVICES] = "unobserved_services",
	[RESOURCE_TIME_WAIT] = "time_wait",
	[RESOURCE_ORPHANS] = "orphans",
	[RESOURCE_TCP_MEMORY] = "tcp_memory",
	[RESOURCE_CONNTRACK] = "conntrack",
	[RESOURCE_UDP_BUFFER] = "udp_buffer",
	[RESOURCE_PORT_FAILURES] = "port_failures",
	[RESOURCE_ADDRESS_FAILURES] = "address_failures",
	[RESOURCE_DESCRIPTOR_FAILURES] = "descriptor_failures",
	[RESOURCE_FILE_FAILURES] = "file_failures",
};

struct resource *resource_add(struct resource_list *list, enum resource_kind kind,
			      const struct resource_netns *netns)
{
	struct resource *resource;

	if (ARRAY_GROW(list->entries, list->count) < 0)
		return NULL;
	resource = &list->entries[list->count++];
	*resource = (struct resource){.kind = kind, .seconds_left = INFINITY, .deepest = NAN};
	if (netns) {
		resource->netns = netns->inode;
		memcpy(resource->netns_name, netns->name, sizeof(resource->netns_name));
	}
	return resource;
}

void resource_fact(struct resource *resource, const char *name, double value, const char *unit,
		   const char *source)
{
	if (resource->fact_count < RESOURCE_FACTS)
		resource->facts[resource->fact_count++] =
			(struct resource_fact){name, value, unit, source, false};
}

struct resource_owner *resource_owner(struct resource *resource, uint32_t pid)
{
	size_t i = 0;

	if (!pid)
		return NULL;
	while (i < resource->owner_count && resource->owners[i].pid != pid)
		i++;
	if (i == RESOURCE_OWNERS)
		return NULL;
	if (i == resource->owner_count)
		resource->owners[resource->owner_count++] = (struct resource_owner){.pid = pid};
	return &resource->owners[i];
}

void resource_own(struct resource *resource, uint32_t pid)
{
	struct resource_owner *owner = resource_owner(resource, pid);

	if (!owner)
		return;
	owner->sockets++;
	for (; owner > resource->owners && owner[-1].sockets < owner->sockets; owner--)
		SWAP(owner[-1], owner[0]);
}

void resource_did(struct resource *resource, uint32_t pid, const char *format, ...)
{
	struct resource_owner *owner = resource_owner(resource, pid);
	va_list arguments;
	size_t used;

	if (!owner)
		return;
	used = strlen(owner->did);
	if (used + 2 < sizeof(owner->did) && used)
		used += (size_t)snprintf(owner->did + used, sizeof(owner->did) - used, ", ");
	va_start(arguments, format);
	vsnprintf(owner->did + used, sizeof(owner->did) - used, format, arguments);
	va_end(arguments);
}

void resource_name_owners(struct resource *resource)
{
	for (size_t i = 0; i < resource->owner_count; i++) {
		struct resource_owner *owner = &resource->owners[i];

		if (process_comm(owner->pid, owner->comm, sizeof(owner->comm)) < 0)
			snprintf(owner->comm, sizeof(owner->comm), RESOURCE_ENDED);
		process_unit(owner->pid, owner->unit, sizeof(owner->unit));
	}
}

void resource_list_free(struct resource_list *list)
{
	free(list->entries);
	*list = (struct resource_list){};
}

double resource_slope(const uint32_t *points, unsigned int count, double *ret_share)
{
	double x = (count - 1) / 2.0, y = 0, xx = 0, xy = 0, yy = 0;

	*ret_share = 0;
	if (count < 2)
		return 0;
	for (unsigned int i = 0; i < count; i++)
		y += points[i] / (double)count;
	for (unsigned int i = 0; i < count; i++) {
		xx += (i - x) * (i - x);
		xy += (i - x) * (points[i] - y);
		yy += (points[i] - y) * (points[i] - y);
	}
	if (yy > 0)
		*ret_share = xy * xy / (xx * yy);
	return xy / xx;
}
