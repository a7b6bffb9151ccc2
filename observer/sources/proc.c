// SPDX-License-Identifier: MIT
/*
 * The processes of each service, with their descriptors. The kernel side names every process that listens, reads or
 * writes. For services that were idle so far, /proc shows the holder of the listener.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>

#include "host/containers/container.h"
#include "host/process.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/* The holders of a listener: found by a walk over /proc, and kept. */
struct holder {
	uint64_t inode;
	uint32_t pid; /* the first one that was found; 0: none */
	uint32_t count;
};

/* Where the processes of a service run. The place stays when they have ended. */
struct of_service {
	uint32_t number;
	uint64_t processes; /* a hash of their numbers when it was looked up */
	struct run_place place;
};

/* A process of a service. */
struct owner {
	struct owner_key key;	    /* with the service's number */
	bool fresh;		    /* read during this update */
	struct run_process process; /* as of the last update */
};

struct source_proc {
	struct owner *owners;
	size_t count;
	struct of_service *places;
	size_t place_count;
	struct holder *holders;
	size_t holder_count;
	/* During an update: the listeners whose holder is looked for, and their services. */
	const struct process_listener *wanted;
	const uint32_t *wanted_services;
};

int source_proc_new(struct source_proc **ret_source)
{
	struct source_proc *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	*ret_source = source;
	return 0;
}

void source_proc_free(struct source_proc *source)
{
	if (!source)
		return;
	free(source->owners);
	free(source->holders);
	free(source->places);
	free(source);
}

static void add_owner(void *context, const struct owner_key *owner)
{
	struct source_proc *source = context;

	for (size_t i = 0; i < source->count; i++) {
		if (source->owners[i].key.service == owner->service &&
		    source->owners[i].key.pid == owner->pid)
			return;
	}
	/* Without memory the process is missing in this reading, the next one tries again. */
	if (!ARRAY_GROW(source->owners, source->count))
		source->owners[source->count++] = (struct owner){.key = *owner};
}

static bool has_slot(const struct loader *loader, uint32_t number)
{
	return loader_service_number(loader, service_index(number)) == number;
}

static struct owner *find_fresh(const struct source_proc *source, uint32_t pid, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (source->owners[i].fresh && source->owners[i].key.pid == pid)
			return &source->owners[i];
	return NULL;
}

/* Return whether the process lives. One that its parent has not waited for yet has no descriptors. */
static bool read_living(uint32_t pid, struct run_process *ret_process)
{
	return !process_read(pid, ret_process) &&
	       (!ret_process->open_fds.known || ret_process->open_fds.value);
}

/* Read the process of the owner at @index once per update, however many services it has. */
static bool read_owner(struct source_proc *source, size_t index)
{
	struct owner *owner = &source->owners[index];
	const struct owner *same = find_fresh(source, owner->key.pid, index);

	if (same)
		owner->process = same->process;
	owner->fresh = same || read_living(owner->key.pid, &owner->process);
	return owner->fresh;
}

/* Forget processes that have ended, and services that have no slot any more. Read the others. */
static void refresh(struct source_proc *source, const struct loader *loader)
{
	size_t kept = 0;

	for (size_t i = 0; i < source->count; i++)
		source->owners[i].fresh = false;
	for (size_t i = 0; i < source->count; i++) {
		source->owners[kept] = source->owners[i];
		if (has_slot(loader, source->owners[kept].key.service) && read_owner(source, kept))
			kept++;
	}
	source->count = kept;
	kept = 0;
	for (size_t i = 0; i < source->place_count; i++)
		if (has_slot(loader, source->places[i].number))
			source->places[kept++] = source->places[i];
	source->place_count = kept;
}

static void add_holder(void *context, uint32_t pid, const struct process_listener *listener)
{
	struct source_proc *source = context;
	const struct owner_key owner = {
		.service = source->wanted_services[listener - source->wanted],
		.pid = pid,
	};

	add_owner(source, &owner);
}

static bool is_owned(const struct source_proc *source, uint32_t service)
{
	for (size_t i = 0; i < source->count; i++)
		if (source->owners[i].key.service == service)
			return true;
	return false;
}

/*
 * List the listeners of services without a known process, as the last visit found them. Only for these is the costly
 * walk over /proc worth it.
 */
static size_t find_wanted(const struct source_proc *source, const struct loader *loader,
			  struct process_listener *wanted, uint32_t *services)
{
	uint32_t count = 0;
	const struct listener_gauge *listeners = loader_listeners(loader, &count);
	size_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = loader_service_number(loader, listeners[i].service);

		if (!listeners[i].inode || is_owned(source, number))
			continue;
		wanted[found].inode = listeners[i].inode;
		services[found++] = number;
	}
	return found;
}

void source_proc_update(struct source_proc *source, const struct loader *loader)
{
	autofree struct process_listener *wanted = calloc(LISTENERS_TOLD, sizeof(*wanted));
	autofree uint32_t *services = calloc(LISTENERS_TOLD, sizeof(*services));
	size_t count;

	loader_owners(loader, add_owner, source);
	refresh(source, loader);
	/* Without memory they are looked for at the next reading. */
	if (!wanted || !services)
		return;
	count = find_wanted(source, loader, wanted, services);
	source->wanted = wanted;
	source->wanted_services = services;
	if (count)
		process_held_by_all(wanted, count, add_holder, source);
	source->wanted = NULL;
	source->wanted_services = NULL;
}

void source_proc_visit(const struct source_proc *source, void (*visit)(void *context, uint32_t pid),
		       void *context)
{
	for (size_t i = 0; i < source->count; i++)
		visit(context, source->owners[i].key.pid);
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

/* Return whether a listener of @service was never looked up, or its first holder has ended. */
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

/* Find the holders of all listeners of @service. Without memory they are missing until the next reading. */
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

/* ---- where they run ---- */

/* Return a hash (FNV-1a) of the processes' numbers. */
static uint64_t hash_of(const struct run_service *service)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < service->process_count; i++)
		hash = (hash ^ service->processes[i].pid) * 0x100000001b3;
	return hash;
}

static struct of_service *place_of(struct source_proc *source, uint32_t number)
{
	struct of_service *added;

	for (size_t i = 0; i < source->place_count; i++)
		if (source->places[i].number == number)
			return &source->places[i];
	added = ARRAY_APPEND(source->places, source->place_count);
	if (added)
		added->number = number;
	return added;
}

/* Find the place that all running processes of @service share. False: none of them could be read. */
static bool look_for_place(const struct run_service *service, struct run_place *ret_place)
{
	bool found = false;

	for (size_t i = 0; i < service->process_count; i++) {
		struct run_place place;

		if (container_read(service->processes[i].pid, &place) < 0)
			continue;
		if (found)
			container_common(ret_place, &place);
		else
			*ret_place = place;
		found = true;
	}
	return found;
}

/* Names are in files that may be long, so look them up only when processes come or go. */
static void name_place(struct source_proc *source, uint32_t number, struct run_service *service)
{
	struct of_service *known = place_of(source, number);
	uint64_t processes = hash_of(service);

	/* Without memory it is missing in this reading. */
	if (!known)
		return;
	if (known->processes != processes && look_for_place(service, &known->place)) {
		container_name("", &known->place);
		known->processes = processes;
	}
	service->place = known->place;
}

int source_proc_read(struct source_proc *source, const struct loader *loader, uint32_t index,
		     struct run_service *service)
{
	uint32_t number = loader_service_number(loader, index);

	name_holders(source, service);
	for (size_t i = 0; i < source->count; i++) {
		struct run_process *process;

		if (source->owners[i].key.service != number ||
		    (!source->owners[i].fresh && !read_owner(source, i)))
			continue;
		process = ARRAY_APPEND(service->processes, service->process_count);
		if (!process)
			return -ENOMEM;
		*process = source->owners[i].process;
	}
	name_place(source, number, service);
	return 0;
}
