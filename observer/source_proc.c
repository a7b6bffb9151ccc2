// SPDX-License-Identifier: MIT
/*
 * The processes of each service, with their descriptors. The kernel side names whoever listens,
 * reads or writes; for services that were idle so far, /proc tells who holds the listener.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "sojourn/cleanup.h"

struct source_proc {
	uint32_t netns_pid;
	struct owner_key *owners;
	size_t count;
	/* Of the update under way: */
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
	free(source);
}

static bool has_owner(const struct source_proc *source, uint32_t service)
{
	for (size_t i = 0; i < source->count; i++) {
		if (source->owners[i].service == service)
			return true;
	}
	return false;
}

static void add_owner(void *context, const struct owner_key *owner)
{
	struct source_proc *source = context;
	struct owner_key *owners;

	for (size_t i = 0; i < source->count; i++) {
		if (source->owners[i].service == owner->service &&
		    source->owners[i].pid == owner->pid)
			return;
	}
	owners = reallocarray(source->owners, source->count + 1, sizeof(*owners));
	if (!owners)
		return; /* the process is missing in this reading, the next one tries again */
	owners[source->count++] = *owner;
	source->owners = owners;
}

static void forget_ended(struct source_proc *source)
{
	size_t kept = 0;

	for (size_t i = 0; i < source->count; i++) {
		struct run_process process;

		if (!procfs_process(source->owners[i].pid, &process))
			source->owners[kept++] = source->owners[i];
	}
	source->count = kept;
}

static void add_holder(void *context, uint32_t pid, const struct procfs_listener *listener)
{
	struct source_proc *source = context;

	for (size_t i = 0; i < source->key_count; i++) {
		struct owner_key owner = {.service = (uint32_t)i, .pid = pid};

		if (source->keys[i].port == listener->port)
			add_owner(source, &owner);
	}
}

static void find_holders(struct source_proc *source)
{
	autofree struct procfs_listener *listeners = NULL;
	size_t count;

	if (procfs_listeners(source->netns_pid, &listeners, &count) < 0)
		return;
	procfs_held_by_all(listeners, count, add_holder, source);
}

/* By the last visit to the sockets. Who holds a listener is dear to find out: not where there is none. */
static bool listens(const struct loader *loader, uint32_t service)
{
	const struct service_gauges *gauges = loader_gauges(loader, service);

	return !gauges || gauges->listeners;
}

void source_proc_update(struct source_proc *source, const struct loader *loader,
			const struct service_key *keys, size_t count)
{
	bool missing = false;

	loader_owners(loader, add_owner, source);
	forget_ended(source);
	for (size_t i = 0; i < count; i++)
		missing |= !has_owner(source, (uint32_t)i) && listens(loader, (uint32_t)i);
	source->keys = keys;
	source->key_count = count;
	if (missing)
		find_holders(source);
	source->keys = NULL;
}

int source_proc_read(const struct source_proc *source, uint32_t index, struct run_service *service)
{
	for (size_t i = 0; i < source->count; i++) {
		struct run_process process, *place;

		if (source->owners[i].service != index ||
		    procfs_process(source->owners[i].pid, &process) < 0)
			continue;
		place = run_add_process(service);
		if (!place)
			return -ENOMEM;
		*place = process;
	}
	return 0;
}
