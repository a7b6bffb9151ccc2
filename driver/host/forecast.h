/* SPDX-License-Identifier: MIT */
/* Whether this host's source ports will do for a run: what it wants, and what is in use by now. */
#ifndef DRIVER_HOST_FORECAST_H
#define DRIVER_HOST_FORECAST_H

#include <stddef.h>

#include "engine/target.h"
#include "load/load_settings.h"
#include "transport/link_settings.h"

/*
 * What will go wrong, as a sentence that the caller frees, in *ret_text; NULL: nothing, or it cannot be
 * known. Requests are divided evenly between the targets: it is about the one that is asked most. Their
 * addresses are known; where one is not (AF_UNSPEC) nothing is said of it. -ENOMEM.
 */
int forecast_ports(const struct link_settings *link, const struct load_settings *load,
		   const struct target *const *targets, size_t count, char **ret_text);

#endif
