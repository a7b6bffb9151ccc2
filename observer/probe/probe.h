/* SPDX-License-Identifier: MIT */
/*
 * `sojourn probe`: the measurements that this kernel allows, reasons why not the rest, and the cost
 * of observing on this host.
 */
#ifndef OBSERVER_PROBE_PROBE_H
#define OBSERVER_PROBE_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cost.h"
#include "kernel/plan.h"

/* Print the host, the plan as a table, then the stages. */
void probe_print_text(const struct plan *plan, FILE *file);

/* Print the host, the cost of observing on it, and its meaning. 0 or -ENOMEM. */
int probe_print_cost(const struct cost *cost, FILE *file);

/* Print all of these as one JSON object; @cost may be NULL. 0 or -errno. */
int probe_print_json(const struct plan *plan, const struct cost *cost, FILE *file);

#endif
