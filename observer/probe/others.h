/* SPDX-License-Identifier: MIT */
/* Programs of others on our hooks: beside others, entering one more has another cost. */
#ifndef OBSERVER_PROBE_OTHERS_H
#define OBSERVER_PROBE_OTHERS_H

#include <stddef.h>

#include "kernel/loader.h"

/*
 * Programs that are attached to the tracepoints of @programs now, while none of ours is. -errno where the kernel does
 * not let us look.
 */
int others_count(const struct loader_program *programs, size_t count);

#endif
