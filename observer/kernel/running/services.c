// SPDX-License-Identifier: MIT
/* Gives numbers and slots to services, and takes them back; see services.h. */
#include "services.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sojourn/cleanup.h"

static uint32_t most(const struct services *services)
{
	return services->skel->rodata->config.max_services;
}

static bool is_shared(const struct services *services)
{
	return services_is_shared((const struct observer_config *)&services->skel->rodata->config);
}

uint32_t services_number(const struct services *services, uint32_t index)
{
	return services->numbers[index];
}

uint32_t services_left(const struct services *services)
{
	const struct sojourn_bpf__bss *bss = services->skel->bss;
	int32_t left = (int32_t)(bss->services_given -
				 __atomic_load_n(&bss->services_taken, __ATOMIC_ACQUIRE));

	return left > 0 ? (uint32_t)left : 0;
}

/*
 * Put the slots at @index among the free ones. The kernel side may take them as soon as services_given counts them.
 */
static int give(struct services *services, uint32_t index)
{
	uint32_t *given = &services->skel->bss->services_given;
	uint32_t at = *given % most(services);

	if (bpf_map_update_elem(bpf_map__fd(services->skel->maps.services_free), &at,
				&services->numbers[index], BPF_ANY))
		return -errno;
	services->ring[at] = services->numbers[index];
	__atomic_store_n(given, *given + 1, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Make a map in a map. When it is replaced, the kernel waits for all running programs (1ae80cf31938). Programs that
 * start later see all earlier writes.
 */
static int open_fence(struct services *services)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);

	services->fence_inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sojourn_fenced",
						  sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
	if (services->fence_inner_fd < 0)
		return -errno;
	options.inner_map_fd = (uint32_t)services->fence_inner_fd;
	services->fence_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "sojourn_fence",
					    sizeof(uint32_t), sizeof(uint32_t), 1, &options);
	return services->fence_fd < 0 ? -errno : 0;
}

int services_fence(const struct services *services)
{
	uint32_t at = 0;

	return bpf_map_update_elem(services->fence_fd, &at, &services->fence_inner_fd, BPF_ANY)
		       ? -errno
		       : 0;
}

static void each_slot(struct services *services, uint32_t index,
		      void (*change)(struct services *services, size_t slot, uint32_t number),
		      uint32_t number)
{
	for (size_t copy = 0; copy < services->skel->rodata->config.copies; copy++)
		change(services, copy * most(services) + index, number);
}

static void set_generation(struct services *services, size_t slot, uint32_t number)
{
	__atomic_store_n(&services->slots[slot].generation, service_generation(number),
			 __ATOMIC_RELEASE);
}

void services_expect_epoch(struct services *services, uint64_t epoch)
{
	size_t count = (size_t)services->skel->rodata->config.copies * most(services);

	for (size_t i = 0; is_shared(services) && i < count; i++)
		*first_message_at(&services->slots[i], epoch) = 0;
}

uint64_t services_first_message(const struct services *services, struct service_slot *slot)
{
	uint64_t epoch = services->skel->bss->epoch;

	if (is_shared(services))
		return *first_message_at(slot, epoch);
	return slot->epoch == epoch ? slot->first_message_ns : 0;
}

int services_open(struct services *services, struct sojourn_bpf *skel)
{
	int r;

	services->skel = skel;
	services->numbers = calloc(most(services), sizeof(*services->numbers));
	services->ring = calloc(most(services), sizeof(*services->ring));
	if (!services->numbers || !services->ring)
		return -ENOMEM;
	r = open_fence(services);
	for (uint32_t i = 0; !r && i < most(services); i++) {
		services->numbers[i] = 1U << 16 | i;
		each_slot(services, i, set_generation, services->numbers[i]);
		r = give(services, i);
	}
	return r;
}

void services_close(struct services *services)
{
	cleanup_close(&services->fence_fd);
	cleanup_close(&services->fence_inner_fd);
	free(services->numbers);
	free(services->ring);
}

int services_add(struct services *services, const struct service_key *key, uint32_t kept)
{
	struct sojourn_bpf__bss *bss = services->skel->bss;
	uint32_t number = services->ring[bss->services_taken % most(services)];
	int fd = bpf_map__fd(services->skel->maps.services);
	uint32_t before;

	if (!bpf_map_lookup_elem(fd, key, &before))
		return -EEXIST;
	if (services_left(services) <= kept)
		return -ENOSPC;
	if (bpf_map_update_elem(fd, key, &number, BPF_NOEXIST))
		return -errno;
	bss->services_taken++;
	return 0;
}

/* ---- taken back ---- */

/* Mark by index the slots that a service has, or that are free. */
static void find_used(const struct services *services, bool *used)
{
	int fd = bpf_map__fd(services->skel->maps.services);
	uint32_t left = services_left(services), number;
	uint32_t first = services->skel->bss->services_given - left;
	struct service_key key, *previous = NULL;

	for (uint32_t i = 0; i < left; i++)
		used[service_index(services->ring[(first + i) % most(services)])] = true;
	for (; !bpf_map_get_next_key(fd, previous, &key); previous = &key) {
		if (!bpf_map_lookup_elem(fd, &key, &number) &&
		    service_index(number) < most(services))
			used[service_index(number)] = true;
	}
}

static void empty_slot(struct services *services, size_t slot, uint32_t number)
{
	size_t rows = services->skel->rodata->config.route_rows;
	size_t commands = services->skel->rodata->config.command_rows;

	memset(services->slots[slot].counters, 0,
	       sizeof(*services->slots) - offsetof(struct service_slot, counters));
	if (services->transmits)
		memset(&services->transmits[slot], 0, sizeof(*services->transmits));
	if (services->splits)
		memset(&services->splits[slot], 0, sizeof(*services->splits));
	if (services->statuses)
		memset(&services->statuses[slot], 0, sizeof(*services->statuses));
	if (services->routes)
		memset(&services->routes[slot * rows], 0, rows * sizeof(*services->routes));
	if (services->commands)
		memset(&services->commands[slot * commands], 0,
		       commands * sizeof(*services->commands));
	if (services->unnamed)
		memset(&services->unnamed[slot], 0, sizeof(*services->unnamed));
	set_generation(services, slot, number);
}

/*
 * Make the service's number invalid, so that no program finds its slots. Programs that have found them may still
 * write.
 */
static void shut(struct services *services, const struct service_key *key, uint32_t index)
{
	uint32_t generation = service_generation(services->numbers[index]) + 1;

	if (generation == SERVICE_GENERATIONS)
		generation = 1;
	(void)bpf_map_delete_elem(bpf_map__fd(services->skel->maps.services), key);
	services->numbers[index] = generation << 16 | index;
	each_slot(services, index, set_generation, services->numbers[index]);
}

static void forget_owners(const struct services *services)
{
	int fd = bpf_map__fd(services->skel->maps.owners);
	struct owner_key key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		uint32_t index = service_index(next.service);

		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (index < most(services) && services->numbers[index] != key.service)
			(void)bpf_map_delete_elem(fd, &key);
	}
}

/* Make the slots of @index ready for another service. */
static int renew(struct services *services, uint32_t index)
{
	const struct bpf_map *tickets = services->skel->maps.tickets;
	autofree void *nothing = calloc(1, bpf_map__value_size(tickets));

	if (!nothing)
		return -ENOMEM;
	each_slot(services, index, empty_slot, services->numbers[index]);
	memset(&services->spans[index], 0, sizeof(*services->spans));
	if (services->windows)
		memset(&services->windows[index], 0, sizeof(*services->windows));
	if (services->paths)
		memset(&services->paths[index], 0, sizeof(*services->paths));
	(void)bpf_map_update_elem(bpf_map__fd(tickets), &index, nothing, BPF_ANY);
	return give(services, index);
}

/*
 * Besides @indices, free numbers that a program has taken but not used, because another CPU was faster. Such a number
 * is neither used nor free, both before the fence and after it.
 */
int services_reclaim(struct services *services, const struct service_key *keys,
		     const uint32_t *indices, size_t count,
		     void (*last)(void *context, uint32_t index), void *context)
{
	autofree bool *before = calloc(most(services), sizeof(*before));
	autofree bool *behind = calloc(most(services), sizeof(*behind));
	int r = 0;

	if (!before || !behind)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		shut(services, &keys[i], indices[i]);
	find_used(services, before);
	r = services_fence(services);
	if (r < 0)
		return r;
	find_used(services, behind);
	for (size_t i = 0; i < count; i++)
		last(context, indices[i]);
	forget_owners(services);
	for (uint32_t i = 0; !r && i < most(services); i++) {
		if (!before[i] && !behind[i])
			r = renew(services, i);
	}
	return r;
}
