// SPDX-License-Identifier: MIT
/* Edit distance with swapped neighbours (optimal string alignment); see sojourn/suggest.h. */
#include "sojourn/suggest.h"

#include <string.h>

#define LONGEST 40U

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Compute row @i of the matrix: @i characters of @a against all of @b. */
static void fill_row(const char *a, size_t i, const char *b, size_t length,
		     unsigned int rows[3][LONGEST + 1])
{
	const unsigned int *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
	unsigned int *row = rows[i % 3];

	row[0] = (unsigned int)i;
	for (size_t j = 1; j <= length; j++) {
		unsigned int other = a[i - 1] != b[j - 1];

		row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + other);
		if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
			row[j] = least(row[j], before[j - 2] + 1);
	}
}

static unsigned int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned int rows[3][LONGEST + 1] = {{0}};

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= a_length; i++)
		fill_row(a, i, b, b_length, rows);
	return rows[a_length % 3][b_length];
}

void suggest_try(struct suggestion *suggestion, const char *typed, size_t length,
		 const char *candidate)
{
	size_t other = strlen(candidate);
	unsigned int found;

	if (!length || length > LONGEST || other > LONGEST)
		return;
	found = distance(typed, length, candidate, other);
	/* Allow a third of the word to be wrong: beyond that any short words are close. */
	if (found > least((unsigned int)length, (unsigned int)other) / 3)
		return;
	if (suggestion->best && found >= suggestion->distance)
		return;
	*suggestion = (struct suggestion){candidate, found};
}
