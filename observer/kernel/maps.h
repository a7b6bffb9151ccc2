/* SPDX-License-Identifier: MIT */
/* The memory of BPF maps, and counts in them. */
#ifndef OBSERVER_KERNEL_MAPS_H
#define OBSERVER_KERNEL_MAPS_H

#include <stdint.h>

struct bpf_map;

/* Return the bytes that the kernel charges for the map; 0: unknown. */
uint64_t kernel_map_bytes(int map_fd);

typedef void kernel_count_visit(void *context, const void *key, uint64_t count);

/* Call @visit for each key of a map of counts; a key has at most as many bytes as struct call_key. */
void kernel_map_counts(const struct bpf_map *map, kernel_count_visit *visit, void *context);

#endif
