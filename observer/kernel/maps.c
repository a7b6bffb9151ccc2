// SPDX-License-Identifier: MIT
/* The memory of BPF maps, as the kernel shows it in the fdinfo of each map's descriptor; and counts in maps. */
#include "maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"
#include "wire/config.h"

uint64_t kernel_map_bytes(int map_fd)
{
	autofclose FILE *file = procfs_open("/proc/self/fdinfo/%d", map_fd);
	unsigned long long bytes;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			return bytes;
	}
	return 0;
}

void kernel_map_counts(const struct bpf_map *map, kernel_count_visit *visit, void *context)
{
	uint64_t key[sizeof(struct call_key) / sizeof(uint64_t)], *previous = NULL, count;
	int fd = bpf_map__fd(map);

	for (; !bpf_map_get_next_key(fd, previous, key); previous = key)
		if (!bpf_map_lookup_elem(fd, key, &count))
			visit(context, key, count);
}
