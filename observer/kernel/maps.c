// SPDX-License-Identifier: MIT
/* The memory of BPF maps, as the kernel shows it in the fdinfo of each map's descriptor. */
#include "maps.h"

#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"

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
