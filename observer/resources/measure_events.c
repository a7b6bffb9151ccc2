// SPDX-License-Identifier: MIT
/* Events of a sample: failures as resources of their own, actions as evidence of others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resource.h"
#include "events.h"
#include "sojourn/address.h"
#include "sojourn/units.h"

static const struct failure {
	enum resource_kind kind;
	const char *calls;
	const char *source;
} failures[EVENT_FAILURES] = {
	[EVENT_NO_PORT] = {RESOURCE_PORT_FAILURES, "connect() calls", "tp_btf/inet_sock_set_state"},
	[EVENT_ADDRESS_IN_USE] = {RESOURCE_ADDRESS_FAILURES, "bind() calls", "EADDRINUSE returned"},
	[EVENT_NO_DESCRIPTOR] = {RESOURCE_DESCRIPTOR_FAILURES, "calls", "EMFILE returned"},
	[EVENT_NO_FILE] = {RESOURCE_FILE_FAILURES, "calls", "ENFILE returned"},
};

struct change {
	const struct event_key *key;
	struct event_count all, now; /* since the programs run; in the sample */
};

static struct change change_of(const struct events_reading *before, const struct event_entry *entry)
{
	static const struct event_count none;
	const struct event_count *then = events_reading_find(before, &entry->key);

	then = then ? then : &none;
	return (struct change){
		.key = &entry->key,
		.all = entry->count,
		.now = {entry->count.count - then->count, entry->count.time_ns - then->time_ns},
	};
}

static char *format_address(const struct event_key *key, char *buffer, size_t size)
{
	return address_format((uint8_t)key->family, key->address, key->port, buffer, size);
}

/* Name processes that have ended from the kernel side, which keeps their names. */
static void name_owners(struct resource *resource, const struct events_reading *events)
{
	resource_name_owners(resource);
	for (size_t i = 0; i < resource->owner_count; i++) {
		struct resource_owner *owner = &resource->owners[i];
		const char *name = events_reading_name(events, owner->pid);

		if (!strcmp(owner->comm, RESOURCE_ENDED) && name)
			snprintf(owner->comm, sizeof(owner->comm), "%s", name);
	}
}

static void name_failure(struct resource *resource, const struct event_key *key)
{
	const struct resource_owner *who = resource->owners;

	if (key->family == AF_INET || key->family == AF_INET6)
		format_address(key, resource->object, sizeof(resource->object));
	else
		snprintf(resource->object, sizeof(resource->object), "%s (pid %u)", who->comm,
			 who->pid);
	resource->port = key->port;
}

static void add_failure(const struct change *change, const struct events_reading *events,
			const struct resource_netns *netns, struct resource_list *list)
{
	const struct failure *failure = &failures[change->key->kind];
	struct resource *resource = resource_add(list, failure->kind, netns);

	if (!resource)
		return;
	resource->used = (double)change->all.count;
	resource->events = (double)change->now.count;
	resource_fact(resource, "failed in the sample", resource->events, failure->calls,
		      failure->source);
	resource_fact(resource, "failed since the watch began", resource->used, failure->calls,
		      failure->source);
	if (change->now.count && change->now.time_ns)
		resource_fact(resource, "time in each, mean",
			      (double)change->now.time_ns / (double)change->now.count / 1000, "µs",
			      failure->source);
	resource_own(resource, change->key->pid);
	resource->owners[0].sockets = 0;
	name_owners(resource, events);
	snprintf(resource->owners[0].did, sizeof(resource->owners[0].did), "%.0f %s failed",
		 resource->events, failure->calls);
	name_failure(resource, change->key);
}

/* ---- actions ---- */

static void add_connects(struct resource *resource, const struct change *change)
{
	resource->connects += change->now.count;
	resource->connect_ns += change->now.time_ns;
	resource_did(resource, change->key->pid, "%llu connect() calls, mean %s",
		     (unsigned long long)change->now.count,
		     as_setting((double)change->now.time_ns / (double)change->now.count));
}

/* Add the connecting processes to the ports towards their destination. */
static void add_to_ports(const struct change *change, struct resource_list *list)
{
	char destination[64];

	format_address(change->key, destination, sizeof(destination));
	for (size_t i = 0; i < list->count; i++) {
		struct resource *resource = &list->entries[i];
		const char *to = strstr(resource->object, " to ");

		if (resource->kind != RESOURCE_PORTS || resource->netns != change->key->netns ||
		    !to || strcmp(to + 4, destination))
			continue;
		if (change->key->kind == EVENT_CONNECTED)
			add_connects(resource, change);
		else if (change->key->kind == EVENT_TIME_WAIT_CLIENT)
			resource_did(resource, change->key->pid, "left %llu TIME_WAIT",
				     (unsigned long long)change->now.count);
	}
}

static void add_closer(struct resource *resource, const struct change *change)
{
	bool reset = change->key->kind >= EVENT_RESET_CLIENT;
	bool client = change->key->kind == EVENT_TIME_WAIT_CLIENT ||
		      change->key->kind == EVENT_RESET_CLIENT;
	const char *what = reset ? "reset" : "left";
	unsigned long long count = change->now.count;
	char to[64];

	resource->made[change->key->kind - EVENT_TIME_WAIT_CLIENT] += change->now.count;
	if (client)
		resource_did(resource, change->key->pid, "%s %llu as the client of %s", what, count,
			     format_address(change->key, to, sizeof(to)));
	else
		resource_did(resource, change->key->pid, "%s %llu as the server at port %u", what,
			     count, change->key->port);
}

/* Add to TIME_WAIT which side closed first, for the whole namespace. */
static void add_to_time_wait(const struct change *change, struct resource_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct resource *resource = &list->entries[i];

		if (resource->kind == RESOURCE_TIME_WAIT && resource->netns == change->key->netns)
			add_closer(resource, change);
	}
}

static void add_facts(struct resource *resource, const struct events_reading *after)
{
	static const char *const names[] = {
		"left by clients in the sample", "left by servers in the sample",
		"clients' resets in the sample", "servers' resets in the sample"};
	int64_t depth = events_reading_depth(after, resource->cookie);

	if (resource->connects) {
		resource_fact(resource, "connect() calls", (double)resource->connects, "calls",
			      "the sample, tp_btf/inet_sock_set_state");
		resource_fact(resource, "time in connect() until the SYN left, mean",
			      (double)resource->connect_ns / (double)resource->connects / 1000,
			      "\u00b5s", "the sample, tp_btf/inet_sock_set_state");
	}
	for (size_t i = 0; resource->kind == RESOURCE_TIME_WAIT && i < ARRAY_SIZE(names); i++)
		resource_fact(resource, names[i], (double)resource->made[i], "connections",
			      "tp_btf/inet_sock_set_state");
	if (resource->kind == RESOURCE_ACCEPT_QUEUE && resource->cookie && depth >= 0)
		resource->deepest = (double)depth;
	if (isfinite(resource->deepest))
		resource_fact(resource, "deepest since the watch began", (double)depth,
			      "connections", "tp_btf/sk_data_ready");
}

/* Sort by events in the sample, most first: a resource names only a few processes. */
static int compare(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->now.count != y->now.count)
		return x->now.count < y->now.count ? 1 : -1;
	return memcmp(x->key, y->key, sizeof(*x->key));
}

static void measure(const struct change *change, const struct events_reading *events,
		    const struct resource_netns *netns, struct resource_list *list)
{
	if (change->key->kind < EVENT_FAILURES)
		add_failure(change, events, netns, list);
	if (change->key->kind < EVENT_FAILURES || !change->now.count)
		return;
	if (change->key->kind != EVENT_CONNECTED)
		add_to_time_wait(change, list);
	add_to_ports(change, list);
}

static void finish(struct resource *resource, const struct events_reading *after)
{
	bool named = true;

	add_facts(resource, after);
	for (size_t i = 0; i < resource->owner_count; i++)
		named &= resource->owners[i].comm[0] &&
			 strcmp(resource->owners[i].comm, RESOURCE_ENDED) != 0;
	if (!named)
		name_owners(resource, after);
}

void resource_measure_events(const struct events_reading *before,
			     const struct events_reading *after,
			     const struct resource_netns *(*netns_of)(const void *context,
								      uint32_t inode),
			     const void *context, struct resource_list *list)
{
	autofree struct change *changes = calloc(after->count + 1, sizeof(*changes));

	for (size_t i = 0; changes && i < after->count; i++)
		changes[i] = change_of(before, &after->entries[i]);
	if (changes)
		qsort(changes, after->count, sizeof(*changes), compare);
	for (size_t i = 0; changes && i < after->count; i++) {
		const struct resource_netns *netns = netns_of(context, changes[i].key->netns);

		/* The kernel reports every namespace: only those that are looked at matter. */
		if (netns)
			measure(&changes[i], after, netns, list);
	}
	for (size_t i = 0; i < list->count; i++)
		finish(&list->entries[i], after);
}
