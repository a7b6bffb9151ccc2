/* SPDX-License-Identifier: MIT */
/* What of a host makes BPF programs cheap or dear: struct run_machine, copied, compared and in words. */
#ifndef SOJOURN_MACHINE_H
#define SOJOURN_MACHINE_H

#include <stdbool.h>

#include "sojourn/run_values.h"

/* Frees what it holds; nothing of it is known then. */
void run_machine_clear(struct run_machine *machine);
/* 0 or -ENOMEM; the copy is the caller's to clear. */
int run_machine_copy(const struct run_machine *machine, struct run_machine *ret_copy);
/* Whether anything of it is known. */
bool run_machine_known(const struct run_machine *machine);
/* Of two hosts: what is not the same of both is not known any more. */
void run_machine_merge(struct run_machine *machine, const struct run_machine *other);

/* "retpolines, Safe RET", "none that BPF programs pay for" or "not known"; freed by the caller, NULL without memory. */
char *run_machine_mitigations(const struct run_machine *machine);
/* "tsc" or "not known". */
const char *run_machine_clock(const struct run_machine *machine);
/* "none", "KVM" or "not known". */
const char *run_machine_virtualisation(const struct run_machine *machine);

#endif
