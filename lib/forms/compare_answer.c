// SPDX-License-Identifier: MIT
/* Changes between runs, and their certainty, as sentences; see sojourn/compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"
#include "sojourn/cleanup.h"
#include "sojourn/compare.h"

#define WHOLE 99.5 /* from here on a rate has no decimals */

enum compare_verdict compare_judge(const struct compare_row *row, const struct compare_side *side)
{
	if (!side->p_value.known)
		return COMPARE_UNTESTED;
	if (side->p_value.value >= COMPARE_SIGNIFICANT)
		return COMPARE_UNSHOWN;
	if (side->value.value == row->first.value)
		return COMPARE_ALIKE;
	return (side->value.value < row->first.value) == row->lower_is_better ? COMPARE_BETTER
									      : COMPARE_WORSE;
}

const char *compare_surety(const struct compare_row *row, const struct compare_side *side,
			   char ret_text[static COMPARE_TEXT])
{
	switch (compare_judge(row, side)) {
	case COMPARE_UNTESTED:
		snprintf(ret_text, COMPARE_TEXT, "not tested: %s", side->reason);
		break;
	case COMPARE_UNSHOWN:
		snprintf(ret_text, COMPARE_TEXT, "p = %.2g: not shown at 1 %%",
			 side->p_value.value);
		break;
	case COMPARE_ALIKE:
		snprintf(ret_text, COMPARE_TEXT, "p = %.2g: only intervals differ",
			 side->p_value.value);
		break;
	case COMPARE_BETTER:
	case COMPARE_WORSE:
		snprintf(ret_text, COMPARE_TEXT, "p = %.2g: shown at 1 %%", side->p_value.value);
		break;
	}
	return ret_text;
}

const char *compare_figure(const struct compare_row *row, struct run_ratio value,
			   char ret_text[static COMPARE_TEXT])
{
	if (!value.known)
		return "-";
	if (!strcmp(row->unit, "ns"))
		snprintf(ret_text, COMPARE_TEXT, "%s", as_time(value.value));
	else if (value.value >= WHOLE || value.value == floor(value.value))
		snprintf(ret_text, COMPARE_TEXT, "%s%s", as_count((uint64_t)(value.value + 0.5)),
			 row->unit);
	else
		snprintf(ret_text, COMPARE_TEXT, "%.1f%s", value.value, row->unit);
	return ret_text;
}

/*
 * Write "latency, p99 1.2 ms → 1.5 ms (+25.0 %, p = 4e-05)". If the change is known but not
 * significant, leave out the values.
 */
static void put_change(const struct compare_row *row, const struct compare_side *side, FILE *file)
{
	char before[COMPARE_TEXT], after[COMPARE_TEXT];

	fputs(row->label, file);
	if (side->p_value.value < COMPARE_SIGNIFICANT || !side->change.known)
		fprintf(file, " %s \u2192 %s", compare_figure(row, row->first, before),
			compare_figure(row, side->value, after));
	fputs(" (", file);
	if (side->change.known)
		fprintf(file, "%s, ", as_change(100 * side->change.value));
	fprintf(file, "p = %.2g)", side->p_value.value);
}

static size_t count_of(const struct compare *compare, size_t side, enum compare_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < compare->row_count; i++) {
		const struct compare_row *row = &compare->rows[i];

		count += compare_judge(row, &row->sides[side]) == verdict;
	}
	return count;
}

/* List the figures with this verdict that differ, or nothing. */
static void put_all(const struct compare *compare, size_t side, enum compare_verdict verdict,
		    const char *lead, FILE *file)
{
	size_t count = 0;

	for (size_t i = 0; i < compare->row_count; i++) {
		const struct compare_row *row = &compare->rows[i];

		if (compare_judge(row, &row->sides[side]) != verdict ||
		    row->first.value == row->sides[side].value.value)
			continue;
		fputs(count++ ? "; " : lead, file);
		put_change(row, &row->sides[side], file);
	}
	fputs(count ? "\n" : "", file);
}

/* Return the first reason why no figure could be tested. */
static const char *why_untested(const struct compare *compare, size_t side)
{
	for (size_t i = 0; i < compare->row_count; i++) {
		const struct compare_row *row = &compare->rows[i];

		if (row->first.known && row->sides[side].value.known)
			return row->sides[side].reason;
	}
	return "they have no figure in common";
}

static void put_headline(const struct compare *compare, size_t side, FILE *file)
{
	size_t better = count_of(compare, side, COMPARE_BETTER),
	       worse = count_of(compare, side, COMPARE_WORSE);
	const char *first = compare->names[0], *name = compare->names[side + 1];

	if (better || worse)
		fprintf(file, "%s is %s than %s, shown at 1 %%\n", name,
			!worse	  ? "better"
			: !better ? "worse"
				  : "better in some and worse in other figures",
			first);
	else if (count_of(compare, side, COMPARE_UNTESTED) == compare->row_count)
		fprintf(file, "whether %s differs from %s is not known: %s\n", name, first,
			why_untested(compare, side));
	else
		fprintf(file, "no change from %s to %s is shown at 1 %%\n", first, name);
}

/* A figure limited by the driver says nothing about the server. */
static void put_limited(const struct compare *compare, size_t side, FILE *file)
{
	const size_t which[] = {0, side + 1};

	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		const struct run *run = compare->runs[which[i]];

		if (run->driver && run->driver->limited)
			fprintf(file, "LIMITED BY THE DRIVER, not by the server: %s (%s)\n",
				compare->names[which[i]], run->driver->limited->by);
	}
}

char *compare_answer(const struct compare *compare, size_t side)
{
	autofree char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return NULL;
	put_headline(compare, side, file);
	put_limited(compare, side, file);
	put_all(compare, side, COMPARE_WORSE, "worse: ", file);
	put_all(compare, side, COMPARE_BETTER, "better: ", file);
	put_all(compare, side, COMPARE_UNSHOWN, "not shown at 1 %: ", file);
	return fclose(file) ? NULL : TAKE_PTR(text);
}
