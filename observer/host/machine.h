/* SPDX-License-Identifier: MIT */
/* Reads what of this host makes BPF programs cheap or dear: mitigations, clock source, virtualisation. */
#ifndef OBSERVER_HOST_MACHINE_H
#define OBSERVER_HOST_MACHINE_H

#include "sojourn/run_values.h"

/* That of this host, read once; without memory nothing of it is known. */
const struct run_machine *machine_own(void);

/*
 * That of the host whose /sys and /proc are below @root. @signature: what its hypervisor calls itself when the CPU
 * is asked ("KVMKVMKVM"); "": the CPU does not say. 0 or -ENOMEM; the caller clears @ret_machine.
 */
int machine_read(const char *root, const char *signature, struct run_machine *ret_machine);

#endif
