/* SPDX-License-Identifier: MIT */
/* What this process may do: the capabilities that observing needs, and what is missing of them. */
#ifndef OBSERVER_ACCESS_H
#define OBSERVER_ACCESS_H

#include <stddef.h>

/*
 * Writes why BPF programs cannot be loaded by this process on this machine ("missing CAP_BPF,
 * CAP_PERFMON", "the kernel has no BTF …") into @reason; empty if nothing obvious stands against it.
 */
void access_reason(char *reason, size_t size);

#endif
