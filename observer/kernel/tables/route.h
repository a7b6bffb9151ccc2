/* SPDX-License-Identifier: MIT */
/*
 * Routes of --route, by which the kernel side counts requests: their texts, and the places by which it finds
 * them (wire/route.h). And texts of paths that it keeps.
 */
#ifndef OBSERVER_KERNEL_TABLES_ROUTE_H
#define OBSERVER_KERNEL_TABLES_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/route.h"

/* All zeros after the texts. */
struct route_key {
	char method[ROUTE_METHOD_LIMIT + 1]; /* "": any */
	char path[ROUTE_PATH_LIMIT + 1];
	uint32_t whole; /* the path must be equal, and not only begin like that */
};

/* Parse "GET /health" or the like (docs/measurement.md). Return NULL, or which routes are allowed. */
const char *route_parse(const char *text, struct route_key *ret_key);

/*
 * Fill the @places, all zeros, with @count routes, which are valid. Set ret_rows[i] to the row of route i: the
 * row of the better one of two is lower.
 */
void routes_fill(struct route_place places[static ROUTE_PLACES], const char *const *routes,
		 size_t count, uint8_t ret_rows[static ROUTES_MOST]);

/*
 * Turn a path that the kernel side has kept into plain text without the query, of ROUTE_PATH_BYTES at most. Of Huffman's
 * code it is cut at a byte that no route has.
 */
void route_path_plain(struct route_path *path);

#endif
