/* SPDX-License-Identifier: MIT */
/* Which of the words that exist a mistyped one may have meant. Neighbours: cli.h (options), the programs' commands. */
#ifndef SOJOURN_SUGGEST_H
#define SOJOURN_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *best; /* NULL: no candidate so far is close enough */
	unsigned int distance;
};

/*
 * Compares the first @length characters of @typed with @candidate, and keeps it if it is the closest so far. A
 * zeroed @suggestion begins the search.
 */
void suggest_try(struct suggestion *suggestion, const char *typed, size_t length,
		 const char *candidate);

#endif
