/* SPDX-License-Identifier: MIT */
/* The memory that this process may use. */
#ifndef OBSERVER_HOST_MEMORY_H
#define OBSERVER_HOST_MEMORY_H

#include <stdint.h>

/* Return the lowest limit of this process's cgroups, of either version; 0: there is none. */
uint64_t memory_limit(void);
/* Return the host's memory in bytes; 0: not known. */
uint64_t memory_of_host(void);

#endif
