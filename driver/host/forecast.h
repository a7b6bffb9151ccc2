/* SPDX-License-Identifier: MIT */
/*
 * Checks whether this host's source ports suffice for a run: the number needed, and the number in
 * use.
 */
#ifndef DRIVER_HOST_FORECAST_H
#define DRIVER_HOST_FORECAST_H

#include <stddef.h>

#include "engine/target.h"
#include "load/load_settings.h"
#include "transport/link_settings.h"

/*
 * Write what will go wrong as a sentence that the caller frees in *ret_text; NULL: nothing, or not
 * known. Requests are divided evenly between the targets: the busiest one decides. An unresolved
 * target (AF_UNSPEC) is skipped. -ENOMEM.
 */
int forecast_ports(const struct link_settings *link, const struct load_settings *load,
		   const struct target *const *targets, size_t count, char **ret_text);

#endif
