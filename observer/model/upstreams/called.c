// SPDX-License-Identifier: MIT
/* The places on other hosts to which the processes of services connect; see parts.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/process.h"
#include "sojourn/address.h"
#include "sojourn/array.h"
#include "sojourn/units.h"
#include "parts.h"

bool upstreams_is_looked_at(const struct reading *reading, const struct run_service *service)
{
	return service->netns == reading->upstreams->netns && !strcmp(service->protocol, "tcp");
}

int upstreams_compare_processes(const void *a, const void *b)
{
	const struct front *x = a, *y = b;

	return x->key.pid < y->key.pid ? -1 : x->key.pid > y->key.pid;
}

const struct front *upstreams_first_owned(const struct reading *reading, uint32_t pid)
{
	const struct front wanted = {.key.pid = pid}, *list = reading->owners.list;
	const struct front *found = reading->owners.count
					    ? bsearch(&wanted, list, reading->owners.count,
						      sizeof(*list), upstreams_compare_processes)
					    : NULL;

	while (found && found > list && found[-1].key.pid == pid)
		found--;
	return found;
}

bool upstreams_is_owned(const struct reading *reading, const struct front *owned, uint32_t pid)
{
	return owned && owned < reading->owners.list + reading->owners.count &&
	       owned->key.pid == pid;
}

void upstreams_served_too(const struct reading *reading, const struct run_service *front,
			  const struct run_service *ret_others[2])
{
	const struct front *owner = reading->owners.list;
	size_t count = 0;

	ret_others[0] = ret_others[1] = NULL;
	for (size_t i = 0; i < reading->owners.count && count < 2; i++, owner++) {
		uint32_t pid = owner->key.pid;

		if (owner->service != front)
			continue;
		for (const struct front *owned = upstreams_first_owned(reading, pid);
		     count < 2 && upstreams_is_owned(reading, owned, pid); owned++) {
			const struct run_service *other = owned->service;

			if (other && other != front && other != ret_others[0] && other->exchanges)
				ret_others[count++] = other;
		}
	}
}

static void add_called(void *context, const void *key, uint64_t connections)
{
	struct called_list *called = context;

	if (ARRAY_GROW(called->list, called->count))
		called->short_of_memory = true;
	else
		called->list[called->count++] =
			(struct called){*(const struct call_key *)key, connections};
}

static int compare_called(const void *a, const void *b)
{
	const struct called *x = a, *y = b;

	return memcmp(&x->key, &y->key, sizeof(x->key));
}

int upstreams_read_called(const struct loader *loader, struct called_list *ret_called)
{
	loader_calls(loader, add_called, ret_called);
	if (ret_called->count)
		qsort(ret_called->list, ret_called->count, sizeof(*ret_called->list),
		      compare_called);
	return ret_called->short_of_memory ? -ENOMEM : 0;
}

/* The list stays for the whole period. Connections without room are others', so that their part is not known. */
#define FAR_MOST 4096

static bool is_far(const struct outgoing *outgoing)
{
	return outgoing->port && !outgoing->here;
}

size_t upstreams_far_inodes(const struct outgoing_list *open, struct socket_owner *ret_owners)
{
	size_t count = 0;

	for (size_t i = 0; i < open->count && count < FAR_MOST; i++)
		if (is_far(&open->list[i]))
			ret_owners[count++].inode = open->list[i].inode;
	return count;
}

int upstreams_keep_far(const struct outgoing_list *open, const struct socket_owner *owners,
		       size_t count, struct far_list *ret_far)
{
	size_t most = open->count < FAR_MOST ? open->count : FAR_MOST;

	ret_far->list = calloc(most + 1, sizeof(*ret_far->list));
	if (!ret_far->list)
		return -ENOMEM;
	for (size_t i = 0; i < open->count && ret_far->count < most; i++) {
		const struct outgoing *outgoing = &open->list[i];
		uint32_t pid = is_far(outgoing) ? process_owner(owners, count, outgoing->inode) : 0;
		struct far *one = &ret_far->list[ret_far->count];

		if (!pid)
			continue;
		one->pid = pid;
		snprintf(one->towards, sizeof(one->towards), "%.*s", (int)sizeof(one->towards) - 1,
			 outgoing->towards);
		ret_far->count++;
	}
	return 0;
}

#define CALLED_MOST 64

static int add_place(struct run_service *front, const char *towards, uint64_t connections)
{
	struct run_call *row;

	for (size_t i = 0; i < front->called_count; i++) {
		if (strcmp(front->called[i].towards, towards) != 0)
			continue;
		front->called[i].connections += connections;
		return 0;
	}
	if (front->called_count == CALLED_MOST)
		return 0;
	row = ARRAY_APPEND(front->called, front->called_count);
	if (!row)
		return -ENOMEM;
	snprintf(row->towards, sizeof(row->towards), "%.*s", (int)sizeof(row->towards) - 1,
		 towards);
	row->connections = connections;
	return 0;
}

static uint64_t called_since(const struct called_list *before, const struct called *now)
{
	const struct called *found = before->count ? bsearch(now, before->list, before->count,
							     sizeof(*now), compare_called)
						   : NULL;

	return found && found->connections <= now->connections
		       ? now->connections - found->connections
		       : now->connections;
}

/* Add connections of a process to all services that it serves. */
static int add_to_served(const struct reading *reading, uint32_t pid, const char *towards,
			 uint64_t connections)
{
	int r = 0;

	for (const struct front *owned = upstreams_first_owned(reading, pid);
	     !r && upstreams_is_owned(reading, owned, pid); owned++)
		if (owned->service && owned->service->exchanges)
			r = add_place(owned->service, towards, connections);
	return r;
}

/* Add those that were opened in the period. */
static int add_opened(const struct reading *reading, const struct called_list *now)
{
	int r = 0;

	for (size_t i = 0; !r && i < now->count; i++) {
		const struct called *called = &now->list[i];
		uint64_t connections = called_since(&reading->upstreams->called_before, called);
		char towards[sizeof(((struct run_call *)NULL)->towards)];

		if (!connections || address_is_loopback(AF_INET6, called->key.server))
			continue;
		units_format_endpoint(called->key.server, called->key.port, towards,
				      sizeof(towards));
		r = add_to_served(reading, called->key.pid, towards, connections);
	}
	return r;
}

/* Add those that were open when it began. */
static int add_older(const struct reading *reading)
{
	const struct far_list *far = &reading->upstreams->far_before;
	int r = 0;

	for (size_t i = 0; !r && i < far->count; i++)
		r = add_to_served(reading, far->list[i].pid, far->list[i].towards, 1);
	return r;
}

/* If the front's processes serve another service, too, which of both they call for is not known. */
static void tell_served_too(const struct reading *reading, struct run_service *front)
{
	const struct run_service *others[2];

	if (!front->called_count)
		return;
	upstreams_served_too(reading, front, others);
	for (size_t i = 0; others[0] && i < front->called_count; i++)
		front->called[i].serves_too = (struct run_number){true, others[0]->port};
}

int upstreams_name_places(const struct reading *reading, const struct loader *loader)
{
	const struct upstreams *upstreams = reading->upstreams;
	struct called_list now = {};
	struct run *run = reading->run;
	int r = upstreams_read_called(loader, &now);

	if (!r)
		r = add_opened(reading, &now);
	free(now.list);
	if (!r)
		r = add_older(reading);
	for (size_t i = 0; !r && i < run->service_count; i++) {
		struct run_service *service = &run->services[i];

		if (!upstreams_is_looked_at(reading, service))
			continue;
		service->older_connections = (struct run_number){.known = true};
		tell_served_too(reading, service);
	}
	for (size_t i = 0; i < upstreams->older_count; i++) {
		struct run_service *service = reading->by_port[upstreams->older[i].port];

		if (service)
			service->older_connections.value += upstreams->older[i].connections;
	}
	return r;
}
