/* SPDX-License-Identifier: MIT */
/* Properties of a host that decide what BPF programs cost. */
#ifndef SOJOURN_MACHINE_H
#define SOJOURN_MACHINE_H

#include <stdbool.h>

#include "sojourn/run_values.h"

/* Free the members; nothing is known then. */
void run_machine_clear(struct run_machine *machine);
/* Copy; the caller clears the copy. 0 or -ENOMEM. */
int run_machine_copy(const struct run_machine *machine, struct run_machine *ret_copy);
bool run_machine_known(const struct run_machine *machine);
/* Merge two hosts: differing values become unknown. */
void run_machine_merge(struct run_machine *machine, const struct run_machine *other);

/*
 * Return "retpolines, Safe RET", "none that BPF programs pay for" or "not known". NULL: no memory.
 */
char *run_machine_mitigations(const struct run_machine *machine);
/* Return "tsc" or "not known". */
const char *run_machine_clock(const struct run_machine *machine);
/* Return "none", "KVM" or "not known". */
const char *run_machine_virtualisation(const struct run_machine *machine);

#endif
