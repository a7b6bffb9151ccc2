// SPDX-License-Identifier: MIT
/* The memory of BPF maps, as the kernel shows it in the fdinfo of each map's descriptor; and counts in maps. */
#include "maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"
#include "wire/call.h"
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

/* mmapable arrays keep every element at a multiple of 8 bytes, the whole at whole pages. */
int kernel_map_memory(const struct bpf_map *map, struct kernel_memory *ret_memory)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *memory;

	bytes = (bytes + page - 1) / page * page;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (memory == MAP_FAILED)
		return -errno;
	*ret_memory = (struct kernel_memory){memory, bytes};
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

int kernel_map_calls(const struct bpf_map *places, const struct bpf_map *rows,
		     kernel_call_visit *visit, void *context)
{
	int fd = bpf_map__fd(places), rows_fd = bpf_map__fd(rows), r = 0;
	autofree struct call_row *row = malloc(sizeof(*row));
	struct call_place place, *previous = NULL;
	uint32_t index;

	if (!row)
		return -ENOMEM;
	for (; !r && !bpf_map_get_next_key(fd, previous, &place); previous = &place)
		if (!bpf_map_lookup_elem(fd, &place, &index) &&
		    !bpf_map_lookup_elem(rows_fd, &index, row))
			r = visit(context, &place, row);
	return r;
}
