// SPDX-License-Identifier: MIT
/* Sets how malloc() gets large memory; see heap.h. Otherwise each free() of such memory would change that. */
#include "heap.h"

#include <malloc.h>

#define MIB (1 << 20)

#define LOADING_BYTES (32 * MIB) /* the most that mallopt() takes */
#define RUNNING_BYTES (2 * MIB)
#define RUNNING_TRIM  (128 << 10) /* malloc()'s default */

void heap_loading(void)
{
	mallopt(M_MMAP_THRESHOLD, LOADING_BYTES);
	mallopt(M_TRIM_THRESHOLD, 4 * LOADING_BYTES);
}

void heap_running(void)
{
	mallopt(M_MMAP_THRESHOLD, RUNNING_BYTES);
	mallopt(M_TRIM_THRESHOLD, RUNNING_TRIM);
	malloc_trim(0);
}
