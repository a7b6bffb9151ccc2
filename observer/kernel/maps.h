/* SPDX-License-Identifier: MIT */
/* The memory of BPF maps. */
#ifndef OBSERVER_KERNEL_MAPS_H
#define OBSERVER_KERNEL_MAPS_H

#include <stdint.h>

/* Return the bytes that the kernel charges for the map; 0: unknown. */
uint64_t kernel_map_bytes(int map_fd);

#endif
