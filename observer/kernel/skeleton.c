// SPDX-License-Identifier: MIT
/* The object of all BPF programs, set up and not loaded yet; see skeleton.h. */
#include "skeleton.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "btf.h"
#include "loader.h"
#include "message.h"
#include "kernel/running/services.h"
#include "sojourn/cleanup.h"
#include "wire/call.h"
#include "wire/clear.h"
#include "wire/events.h"
#include "wire/stream.h"

#include "sojourn_shared_bpf.skel.h"

/* Bytes of the kernel's header of each hash entry, and of the entry's share of the buckets. */
#define HASH_HEAD_BYTES 80

static int set_sizes(struct sojourn_bpf *skel, const struct observer_config *config)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	uint32_t copies = config->copies * config->max_services; /* of what a service has */
	const struct {
		struct bpf_map *map;
		uint32_t entries;
	} sizes[] = {
		{skel->maps.slots, copies},
		{skel->maps.transmits, config->transmit_below ? copies : 1},
		{skel->maps.splits, config->cpu ? copies : 1},
		{skel->maps.statuses, config->http ? copies : 1},
		{skel->maps.windows, config->streams ? config->max_services : 1},
		{skel->maps.route_rows, config->route_rows ? copies * config->route_rows : 1},
		{skel->maps.command_rows, config->command_rows ? copies * config->command_rows : 1},
		{skel->maps.commands_without, config->command_rows ? copies : 1},
		{skel->maps.command_rows_of, config->command_rows ? COMMANDS_MOST : 1},
		{skel->maps.command_names, config->command_rows ? COMMANDS_MOST : 1},
		{skel->maps.clear_calls, config->tls ? CLEAR_CALLS : 1},
		{skel->maps.clear_goroutines, config->tls ? CLEAR_GOROUTINES : 1},
		{skel->maps.clear_conns, config->tls ? CLEAR_CONNS : 1},
		{skel->maps.clear_sockets, config->tls ? CLEAR_CONNS : 1},
		{skel->maps.route_paths, config->propose ? config->max_services : 1},
		{skel->maps.route_texts, config->propose ? ROUTE_TEXTS : 1},
		{skel->maps.clear_streams, config->tls ? CLEAR_STREAMS : 1},
		{skel->maps.clear_pushes, config->tls ? CLEAR_CONNS : 1},
		{skel->maps.route_places, config->route_rows ? ROUTE_PLACES : 1},
		{skel->maps.threads, config->cpu ? THREAD_PLACES : 1},
		{skel->maps.services, config->max_services},
		{skel->maps.services_free, config->max_services},
		{skel->maps.conn_places, CONN_PLACES},
		{skel->maps.tickets, config->max_services},
		{skel->maps.call_rows, config->calls ? CALL_ROWS : 1},
		{skel->maps.call_places, config->calls ? 2 * CALL_ROWS : 1},
		{skel->maps.streams, config->streams ? STREAMS_AT_ONCE : 1},
		{skel->maps.gauges, config->max_services},
		{skel->maps.opens, config->max_services},
		{skel->maps.spans, config->max_services},
		{skel->maps.udp_requests, config->udp_requests ? config->udp_requests : 1},
		{skel->maps.udp_records, config->udp_requests ? config->udp_requests : 1},
		{skel->maps.accepting, config->accept_source == ACCEPT_SYSCALL ? 65536 : 1},
		{skel->maps.listener_depths, config->listener_depths ? EVENT_LISTENERS : 1},
		{skel->maps.ring, config->ring_bytes ? config->ring_bytes : page},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int r = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Return the memory that the kernel takes for @map. It rounds sizes up, and adds headers and buckets to a hash.
 * Storage in sockets counts as the sockets' memory.
 */
static uint64_t map_bytes(const struct bpf_map *map)
{
	uint64_t entries = bpf_map__max_entries(map), entry = (bpf_map__value_size(map) + 7) & ~7U;

	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_ARRAY:
		return entries * entry;
	case BPF_MAP_TYPE_RINGBUF:
		return entries;
	case BPF_MAP_TYPE_SK_STORAGE:
		return 0;
	default:
		return entries * (entry + ((bpf_map__key_size(map) + 7) & ~7U) + HASH_HEAD_BYTES);
	}
}

static uint64_t all_map_bytes(const struct sojourn_bpf *skel)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map (map, skel->obj)
		bytes += map_bytes(map);
	return bytes;
}

static int bytes_with(struct sojourn_bpf *skel, uint32_t services, uint32_t copies,
		      uint64_t *ret_bytes)
{
	struct observer_config sized = skel->rodata->config;
	int r;

	sized.max_services = services;
	sized.copies = copies;
	r = set_sizes(skel, &sized);
	*ret_bytes = r < 0 ? 0 : all_map_bytes(skel);
	return r;
}

/*
 * Copies that CPUs share are at least so many. The more CPUs a copy has, the longer each waits for its lines of
 * memory. tests/bench/observer.py --shared measures it.
 */
#define COPIES_LEAST 4U

int loader_map_needs(const struct observer_config *config, struct loader_needs *ret_needs)
{
	uint64_t bytes = 0, with_service = 0, with_copy = 0;
	struct sojourn_bpf *skel = NULL;
	int r = loader_skeleton_open(config, &skel);

	if (!r)
		r = bytes_with(skel, 1, 1, &bytes);
	if (!r)
		r = bytes_with(skel, 2, 1, &with_service);
	if (!r)
		r = bytes_with(skel, 1, 2, &with_copy);
	if (!r)
		*ret_needs = (struct loader_needs){
			.fixed_bytes = bytes - (with_service - bytes),
			.service_bytes = with_service - with_copy,
			.copy_bytes = with_copy - bytes,
			.cpus = skel->rodata->config.cpus,
			.copies_least = skel->rodata->config.cpus < COPIES_LEAST
						? skel->rodata->config.cpus
						: COPIES_LEAST,
		};
	sojourn_bpf__destroy(skel);
	return r;
}

/* Open the object whose programs fit. Both have the same maps and variables, and so the same skeleton. */
static struct sojourn_bpf *open_object(bool shared)
{
	struct sojourn_bpf *skel;
	int r;

	_Static_assert(sizeof(struct sojourn_bpf__rodata) ==
			       sizeof(struct sojourn_shared_bpf__rodata),
		       "both objects have the same constants");
	_Static_assert(sizeof(struct sojourn_bpf__bss) == sizeof(struct sojourn_shared_bpf__bss),
		       "both objects have the same variables");
	if (!shared)
		return sojourn_bpf__open();
	skel = calloc(1, sizeof(*skel));
	r = skel ? sojourn_bpf__create_skeleton(skel) : -ENOMEM;
	if (!r) {
		skel->skeleton->data =
			(void *)sojourn_shared_bpf__elf_bytes(&skel->skeleton->data_sz);
		r = bpf_object__open_skeleton(skel->skeleton, NULL);
	}
	if (!r)
		return skel;
	sojourn_bpf__destroy(skel);
	errno = -r;
	return NULL;
}

/*
 * Complete @config for this kernel. CPUs that are online get copies of their own before others share them:
 * a virtual machine may have many more possible ones.
 */
static void complete(struct observer_config *config, uint32_t possible)
{
	bool simulated = config->cpus >= possible;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (!simulated)
		config->cpus = possible;
	config->copy_shift = 0;
	if (!config->copies || config->copies > config->cpus)
		config->copies = config->cpus;
	if (!services_is_shared(config))
		return;
	if (simulated || online < 1)
		online = config->cpus;
	while ((uint32_t)(online - 1) >> config->copy_shift >= config->copies)
		config->copy_shift++;
}

int loader_skeleton_open(const struct observer_config *config, struct sojourn_bpf **ret_skel)
{
	int cpus = libbpf_num_possible_cpus();
	struct observer_config complete_config = *config;
	struct sojourn_bpf *skel;

	if (cpus < 0)
		return cpus;
	complete(&complete_config, (uint32_t)cpus);
	loader_message_begin();
	skel = open_object(services_is_shared(&complete_config));
	if (!skel)
		return -errno;
	kernel_btf_without_modules(skel->progs.conn_state);
	loader_message_begin(); /* libbpf's messages about that explain no refusal */
	skel->rodata->config = complete_config;
	*ret_skel = skel;
	/* Without HTTP/2 its streams take no memory. */
	if (complete_config.beside)
		(void)bpf_map__set_map_flags(skel->maps.streams, BPF_F_NO_PREALLOC);
	return set_sizes(skel, &skel->rodata->config);
}

void loader_skeleton_choose(struct sojourn_bpf *skel, const char *name)
{
	bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, name), true);
}
