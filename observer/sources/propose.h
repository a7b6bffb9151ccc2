/* SPDX-License-Identifier: MIT */
/*
 * Proposes routes for a sample of paths: the longest prefixes that a share of them begins with. Parts that look like
 * identifiers are never in a proposal. No I/O: paths.c reads the sample.
 */
#ifndef OBSERVER_SOURCES_PROPOSE_H
#define OBSERVER_SOURCES_PROPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "sojourn/run.h"
#include "wire/route.h"

/* Fewer paths say nothing. */
#define PROPOSE_PATHS_LEAST 20U

/*
 * Propose at most RUN_PROPOSALS_MOST routes for @count @paths, up to ROUTE_PATHS, and set the list in
 * @ret_proposed. 0 or -ENOMEM.
 */
int propose_routes(const struct route_path *paths, size_t count, struct run_proposed *ret_proposed);

#endif
