/* SPDX-License-Identifier: MIT */
/* Who else has programs on our hooks: beside others, entering one more costs something else. */
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
