/* SPDX-License-Identifier: MIT */
/*
 * Routes of --route, by which the kernel side counts requests of HTTP/1: their texts as keys of its
 * trie (wire/route.h).
 */
#ifndef OBSERVER_KERNEL_ROUTE_H
#define OBSERVER_KERNEL_ROUTE_H

#include <stddef.h>

#include "wire/route.h"

/* Parse "GET /health" or the like (docs/measurement.md). Return NULL, or which routes are allowed. */
const char *route_parse(const char *text, struct route_key *ret_key);

/* Fill the trie with the routes, which are valid. 0 or -errno. */
int routes_fill(int trie_fd, const char *const *routes, size_t count);

#endif
