// SPDX-License-Identifier: MIT
/* Changes between runs, and their certainty, as sentences; see sojourn/compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/print.h"
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

/* Intervals of one run say what exceeds their own scatter, never how equal runs differ. */
static const char *const scatter_texts[] = {
	[COMPARE_UNSHOWN] = "within the intervals' scatter",
	[COMPARE_ALIKE] = "only intervals differ",
	[COMPARE_BETTER] = "beyond the intervals' scatter",
	[COMPARE_WORSE] = "beyond the intervals' scatter",
};

static const char *const run_texts[] = {
	[COMPARE_UNSHOWN] = "not shown at 1 %",
	[COMPARE_ALIKE] = "only single runs differ",
	[COMPARE_BETTER] = "shown at 1 %",
	[COMPARE_WORSE] = "shown at 1 %",
};

const char *compare_surety(const struct compare_row *row, const struct compare_side *side,
			   char ret_text[static COMPARE_TEXT])
{
	enum compare_verdict verdict = compare_judge(row, side);

	if (verdict == COMPARE_UNTESTED)
		snprintf(ret_text, COMPARE_TEXT, "not tested: %s", side->reason);
	else if (side->of_intervals)
		snprintf(ret_text, COMPARE_TEXT, "%s", scatter_texts[verdict]);
	else
		snprintf(ret_text, COMPARE_TEXT, "p = %.2g: %s", side->p_value.value,
			 run_texts[verdict]);
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
 * significant, leave out the values. The p of intervals is only their scatter's, so leave it out.
 */
static void put_change(const struct compare_row *row, const struct compare_side *side, FILE *file)
{
	char before[COMPARE_TEXT], after[COMPARE_TEXT];
	const char *lead = " (";

	fputs(row->label, file);
	if (side->p_value.value < COMPARE_SIGNIFICANT || !side->change.known)
		fprintf(file, " %s \u2192 %s", compare_figure(row, row->first, before),
			compare_figure(row, side->value, after));
	if (side->change.known) {
		fprintf(file, "%s%s", lead, as_change(100 * side->change.value));
		lead = ", ";
	}
	if (!side->of_intervals)
		fprintf(file, "%sp = %.2g", lead, side->p_value.value);
	fputs(side->change.known || !side->of_intervals ? ")" : "", file);
}

static bool is_of_single_runs(const struct compare *compare, size_t side)
{
	return compare->groups[0].count == 1 && compare->groups[side + 1].count == 1;
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
	const char *first = compare->groups[0].name, *name = compare->groups[side + 1].name;
	bool single = is_of_single_runs(compare, side);

	if (better || worse)
		fprintf(file, "%s %s %s than %s, %s\n", name, single ? "was" : "is",
			!worse	  ? "better"
			: !better ? "worse"
				  : "better in some and worse in other figures",
			first, single ? "beyond the scatter of their intervals" : "shown at 1 %");
	else if (count_of(compare, side, COMPARE_UNTESTED) == compare->row_count)
		fprintf(file, "whether %s differs from %s is not known: %s\n", name, first,
			why_untested(compare, side));
	else
		fprintf(file, "no change from %s to %s is %s\n", first, name,
			single ? "beyond the scatter of their intervals" : "shown at 1 %");
	if (single && (better || worse))
		fputs("equal runs may differ as much: repeat both in turn, and compare folders of "
		      "6 documents or more\n",
		      file);
}

static bool is_limited(const struct run *run)
{
	return run->driver && run->driver->limited;
}

/* A figure limited by the driver says nothing about the server. */
static void put_limited(const struct compare *compare, size_t side, FILE *file)
{
	const size_t which[] = {0, side + 1};

	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		const struct compare_group *group = &compare->groups[which[i]];
		size_t k = 0;

		while (k < group->count && !is_limited(group->runs[k]))
			k++;
		if (k < group->count)
			fprintf(file, "LIMITED BY THE DRIVER, not by the server: %s (%s)\n",
				group->name, group->runs[k]->driver->limited->by);
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
	put_all(compare, side, COMPARE_UNSHOWN,
		is_of_single_runs(compare, side) ? "within their scatter: " : "not shown at 1 %: ",
		file);
	return fclose(file) ? NULL : TAKE_PTR(text);
}
