/* SPDX-License-Identifier: MIT */
/* The cost of observing, and this host's properties: parts of what probe.c prints. */
#ifndef OBSERVER_PROBE_COST_PRINT_H
#define OBSERVER_PROBE_COST_PRINT_H

#include <jansson.h>

#include "probe.h"

/* Return the cost as JSON; NULL without memory. */
json_t *cost_json(const struct cost *cost);
/* Return this host's properties, for which the figures are valid. */
json_t *cost_machine_json(void);
/* Print these properties as lines. 0 or -ENOMEM. */
int cost_print_machine(FILE *file);

#endif
