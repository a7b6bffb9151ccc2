/* SPDX-License-Identifier: MIT */
/* The memory of BPF maps, and counts in them. */
#ifndef OBSERVER_KERNEL_MAPS_H
#define OBSERVER_KERNEL_MAPS_H

#include <stddef.h>
#include <stdint.h>

struct bpf_map;

/* Return the bytes that the kernel charges for the map; 0: unknown. */
uint64_t kernel_map_bytes(int map_fd);

/* Memory that we share with the programs. */
struct kernel_memory {
	void *at;
	size_t bytes;
};

/* Map the memory of an mmapable array. 0 or -errno. */
int kernel_map_memory(const struct bpf_map *map, struct kernel_memory *ret_memory);

typedef void kernel_count_visit(void *context, const void *key, uint64_t count);

/* Call @visit for each key of a map of counts; a key has at most as many bytes as struct call_key. */
void kernel_map_counts(const struct bpf_map *map, kernel_count_visit *visit, void *context);

struct call_place;
struct call_row;
typedef int kernel_call_visit(void *context, const struct call_place *place,
			      const struct call_row *row);

/* Call @visit for each of @places, with its row of @rows, until it returns not 0. Return that, or -ENOMEM. */
int kernel_map_calls(const struct bpf_map *places, const struct bpf_map *rows,
		     kernel_call_visit *visit, void *context);

#endif
