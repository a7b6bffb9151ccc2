/* SPDX-License-Identifier: MIT */
/* The places by which the kernel side finds routes, in user space. Include it before the sources of bpf/protocol. */
#ifndef UNIT_ROUTES_H
#define UNIT_ROUTES_H

#include <string.h>

#include "../../../../observer/kernel/tables/route.h"

static struct route_place route_places[ROUTE_PLACES];

#define ROUTE_PLACE(index) (&route_places[index])
#define ROUTE_KEEPS	   1

/* The texts of the routes, by row. */
static const char *routes_by_row[ROUTES_MOST + 1];
static uint32_t routes_count;

static inline void routes_given(const char *const *routes, size_t count)
{
	uint8_t rows[ROUTES_MOST];

	memset(route_places, 0, sizeof(route_places));
	routes_fill(route_places, routes, count, rows);
	for (size_t i = 0; i < count; i++)
		routes_by_row[rows[i]] = routes[i];
	routes_by_row[count] = "other";
	routes_count = (uint32_t)count;
}

/*
 * Return the route by the rule of docs/measurement.md, step by step: the longest path that matches, and of equal ones
 * the one with a method.
 */
static inline const char *route_by_rule(const char *method, size_t method_length, const char *path,
					size_t path_length)
{
	const char *best = "other", *query = memchr(path, '?', path_length);
	size_t length = query ? (size_t)(query - path) : path_length, longest = 0;

	for (uint32_t i = 0; i < routes_count; i++) {
		const char *text = strchr(routes_by_row[i], '/');
		size_t wanted = (size_t)(text - routes_by_row[i]), size = strlen(text);
		int whole = text[size - 1] != '*';

		size -= !whole;
		if (wanted && (wanted - 1 != method_length ||
			       memcmp(routes_by_row[i], method, method_length) != 0))
			continue;
		if (whole ? length != size : length < size)
			continue;
		if (memcmp(path, text, size) != 0)
			continue;
		if (2 * (size + (size_t)whole) + !!wanted > longest) {
			longest = 2 * (size + (size_t)whole) + !!wanted;
			best = routes_by_row[i];
		}
	}
	return best;
}

#endif
