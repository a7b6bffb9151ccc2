// SPDX-License-Identifier: MIT
/*
 * The processes of each service, with their descriptors. The kernel side names every process that listens, reads or
 * writes. For services that were idle so far, /proc shows the holder of the listener.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/process.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/* The holders of a listener: found by a walk over /proc, and kept. */
struct holder {
	uint64_t inode;
	uint32_t pid; /* the first one that was found; 0: none */
	uint32_t count;
};

struct source_proc {
	uint32_t netns_pid;
	struct owner_key *owners; /* by the service's number */
	size_t count;
	struct holder *holders;
	size_t holder_count;
	/* Of the update under way: */
	const struct loader *loader;
	const struct service_key *keys;
	size_t key_count;
};

int source_proc_new(uint32_t pid, struct source_proc **ret_source)
{
	struct source_proc *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->netns_pid = pid;
	*ret_source = source;
	return 0;
}

void source_proc_free(struct source_proc *source)
{
	if (!source)
		return;
	free(source->owners);
	free(source->holders);
	free(source);
}

static void add_owner(void *context, const struct owner_key *owner)
{
	struct source_proc *source = context;

	for (size_t i = 0; i < source->count; i++) {
		if (source->owners[i].service == owner->service &&
		    source->owners[i].pid == owner->pid)
			return;
	}
	/* Without memory the process is missing in this reading, the next one tries again. */
	if (!ARRAY_GROW(source->owners, source->count))
		source->owners[source->count++] = *owner;
}

/* Of a process, or of a service that has no slot any more. */
static void forget_ended(struct source_proc *source, const struct loader *loader)
{
	size_t kept = 0;

	for (size_t i = 0; i < source->count; i++) {
		uint32_t number = source->owners[i].service;
		struct run_process process;

		if (loader_service_number(loader, service_index(number)) == number &&
		    !process_read(source->owners[i].pid, &process))
			source->owners[kept++] = source->owners[i];
	}
	source->count = kept;
}

static void add_holder(void *context, uint32_t pid, const struct process_listener *listener)
{
	struct source_proc *source = context;

	for (size_t i = 0; i < source->key_count; i++) {
		struct owner_key owner = {
			.service = loader_service_number(source->loader, (uint32_t)i),
			.pid = pid,
		};

		if (source->keys[i].port == listener->port)
			add_owner(source, &owner);
	}
}

/* By the last visit to the sockets. Finding a listener's holder is dear, so skip services without a listener. */
static bool listens(const struct loader *loader, uint32_t service)
{
	const struct service_gauges *gauges = loader_gauges(loader, service);

	return !gauges || gauges->listeners;
}

void source_proc_update(struct source_proc *source, const struct loader *loader,
			const struct service_key *keys, size_t count)
{
	autofree struct process_listener *listeners = NULL;
	bool missing = false;
	size_t listening;

	loader_owners(loader, add_owner, source);
	forget_ended(source, loader);
	for (uint32_t i = 0; i < count; i++) {
		bool owned = false;

		for (size_t j = 0; j < source->count && !owned; j++)
			owned = source->owners[j].service == loader_service_number(loader, i);
		missing |= !owned && keys[i].port && listens(loader, i);
	}
	source->loader = loader;
	source->keys = keys;
	source->key_count = count;
	if (missing && !process_listeners(source->netns_pid, &listeners, &listening))
		process_held_by_all(listeners, listening, add_holder, source);
	source->loader = NULL;
	source->keys = NULL;
}

/* ---- several listeners of a service ---- */

static struct holder *find_holder(const struct source_proc *source, uint64_t inode)
{
	for (size_t i = 0; i < source->holder_count; i++)
		if (source->holders[i].inode == inode)
			return &source->holders[i];
	return NULL;
}

static void add_held(void *context, uint32_t pid, const struct process_listener *listener)
{
	struct holder *holder = find_holder(context, listener->inode);

	if (!holder)
		return;
	if (!holder->count++)
		holder->pid = pid;
}

/* No known process has a listener of @service, or a former holder is gone: look for all again. */
static bool is_stale(const struct source_proc *source, const struct run_service *service)
{
	char comm[16];

	for (size_t i = 0; i < service->listener_count; i++) {
		const struct holder *holder = find_holder(source, service->listeners[i].inode);

		if (!holder || (holder->pid && process_comm(holder->pid, comm, sizeof(comm)) < 0))
			return true;
	}
	return false;
}

/* Without memory they are missing in this reading, and looked for in the next one. */
static void look_for_holders(struct source_proc *source, const struct run_service *service)
{
	size_t count = service->listener_count;
	autofree struct process_listener *wanted = calloc(count, sizeof(*wanted));

	if (!wanted)
		return;
	for (size_t i = 0; i < count; i++) {
		struct holder *holder = find_holder(source, service->listeners[i].inode);

		wanted[i].inode = service->listeners[i].inode;
		if (!holder && ARRAY_GROW(source->holders, source->holder_count))
			return;
		if (!holder)
			holder = &source->holders[source->holder_count++];
		*holder = (struct holder){.inode = wanted[i].inode};
	}
	process_held_by_all(wanted, count, add_held, source);
}

static void name_holders(struct source_proc *source, struct run_service *service)
{
	if (is_stale(source, service))
		look_for_holders(source, service);
	for (size_t i = 0; i < service->listener_count; i++) {
		struct run_listener *listener = &service->listeners[i];
		const struct holder *holder = find_holder(source, listener->inode);

		if (!holder || !holder->count)
			continue;
		listener->holders = (struct run_number){true, holder->count};
		if (holder->count > 1 ||
		    process_comm(holder->pid, listener->comm, sizeof(listener->comm)) < 0)
			continue;
		listener->pid = (struct run_number){true, holder->pid};
	}
}

int source_proc_read(struct source_proc *source, const struct loader *loader, uint32_t index,
		     struct run_service *service)
{
	uint32_t number = loader_service_number(loader, index);

	name_holders(source, service);
	for (size_t i = 0; i < source->count; i++) {
		struct run_process process, *place;

		if (source->owners[i].service != number ||
		    process_read(source->owners[i].pid, &process) < 0)
			continue;
		place = run_add_process(service);
		if (!place)
			return -ENOMEM;
		*place = process;
	}
	return 0;
}
