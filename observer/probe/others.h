/* SPDX-License-Identifier: MIT */
/* Other programs on our hooks: beside them, entering one more costs less or more. */
#ifndef OBSERVER_PROBE_OTHERS_H
#define OBSERVER_PROBE_OTHERS_H

#include <stddef.h>

#include "kernel/loader.h"

/*
 * Return how many programs are attached to the tracepoints of @programs, while none of ours is.
 * -errno: the kernel does not let us look.
 */
int others_count(const struct loader_program *programs, size_t count);

#endif
