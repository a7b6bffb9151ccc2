/* SPDX-License-Identifier: MIT */
/* Suggests a word for a mistyped one. Neighbours: cli.h (options), the programs' commands. */
#ifndef SOJOURN_SUGGEST_H
#define SOJOURN_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *best; /* NULL: no close candidate so far */
	unsigned int distance;
};

/*
 * Compare the first @length characters of @typed with @candidate, and keep the closest. A zeroed
 * @suggestion begins the search.
 */
void suggest_try(struct suggestion *suggestion, const char *typed, size_t length,
		 const char *candidate);

#endif
