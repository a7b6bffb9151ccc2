/* SPDX-License-Identifier: MIT */
/* How much memory there is for this process. */
#ifndef OBSERVER_HOST_MEMORY_H
#define OBSERVER_HOST_MEMORY_H

#include <stdint.h>

/* The lowest limit of the cgroups that the process is in, of either version; 0: there is none. */
uint64_t memory_limit(void);
/* Return the host's memory in bytes; 0: not known. */
uint64_t memory_of_host(void);

#endif
