/* SPDX-License-Identifier: MIT */
/* `sojourn probe`: what this kernel allows, and why not the rest. */
#ifndef OBSERVER_PROBE_H
#define OBSERVER_PROBE_H

#include <stdio.h>

#include "plan.h"

/* Prints the plan as a table, then the stages. */
void probe_print_text(const struct plan *plan, FILE *file);
/* The same as one JSON object. 0 or -errno. */
int probe_print_json(const struct plan *plan, FILE *file);

#endif
