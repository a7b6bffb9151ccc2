/* SPDX-License-Identifier: MIT */
/*
 * Reads the host's properties that make BPF programs cheap or dear: mitigations, clock source,
 * virtualisation.
 */
#ifndef OBSERVER_HOST_MACHINE_H
#define OBSERVER_HOST_MACHINE_H

#include "sojourn/run_values.h"

/* Return this host's properties, read once; without memory none is known. */
const struct run_machine *machine_own(void);

/*
 * Read the properties of the host whose /sys and /proc are below @root. @signature: the
 * hypervisor's name from the CPU ("KVMKVMKVM"); "": none. 0 or -ENOMEM; the caller clears
 * @ret_machine.
 */
int machine_read(const char *root, const char *signature, struct run_machine *ret_machine);

#endif
