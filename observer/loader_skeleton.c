// SPDX-License-Identifier: MIT
/* The object of all BPF programs, set up and not loaded yet; see loader_skeleton.h. */
#include "loader_skeleton.h"

#include <errno.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "loader_message.h"
#include "sojourn/cleanup.h"

static int set_sizes(struct sojourn_bpf *skel, const struct observer_config *config)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	const struct {
		struct bpf_map *map;
		uint32_t entries;
	} sizes[] = {
		{skel->maps.slots, config->cpus * config->max_services},
		{skel->maps.splits, config->cpu ? config->cpus * config->max_services : 1},
		{skel->maps.threads, config->cpu ? THREAD_PLACES : 1},
		{skel->maps.services, config->max_services},
		{skel->maps.gauges, config->max_services},
		{skel->maps.accepting, config->accept_source == ACCEPT_SYSCALL ? 65536 : 1},
		{skel->maps.ring, config->ring_bytes ? config->ring_bytes : page},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int r = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);

		if (r < 0)
			return r;
	}
	return 0;
}

int loader_skeleton_open(const struct observer_config *config, struct sojourn_bpf **ret_skel)
{
	int cpus = libbpf_num_possible_cpus();
	struct sojourn_bpf *skel;

	if (cpus < 0)
		return cpus;
	loader_message_begin();
	skel = sojourn_bpf__open();
	if (!skel)
		return -errno;
	skel->rodata->config = *config;
	skel->rodata->config.cpus = (uint32_t)cpus;
	*ret_skel = skel;
	return set_sizes(skel, &skel->rodata->config);
}

void loader_skeleton_choose(struct sojourn_bpf *skel, const char *name)
{
	bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, name), true);
}
