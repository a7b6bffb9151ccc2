/* SPDX-License-Identifier: MIT */
/* Several runs against the first, as text: one table for each of the others. */
#include <errno.h>
#include <string.h>

#include "report_parts.h"
#include "sojourn/compare.h"
#include "sojourn/report.h"

#define LABEL_WIDTH  22
#define FIGURE_WIDTH 14

static const char *figure(const struct compare_row *row, struct run_ratio value,
			  char buffer[static SHORT_TEXT])
{
	if (!value.known)
		return "-";
	if (!strcmp(row->unit, "ns"))
		return page_time(value.value, buffer);
	snprintf(buffer, SHORT_TEXT, "%.1f%s", value.value, row->unit);
	return buffer;
}

static enum style style_of(const struct compare_row *row, const struct compare_side *side)
{
	if (!side->p_value.known || side->p_value.value >= COMPARE_SIGNIFICANT ||
	    !side->change.known)
		return STYLE_PLAIN;
	return (side->change.value < 0) == row->lower_is_better ? STYLE_BOLD : STYLE_HOT;
}

static void print_change(const struct page *page, const struct compare_side *side)
{
	if (side->change.known)
		page_right(page, FIGURE_WIDTH - 2, "%+.1f %%", 100 * side->change.value);
	else
		page_right(page, FIGURE_WIDTH - 2, "-");
}

static void print_verdict(const struct page *page, const struct compare_side *side)
{
	if (!side->p_value.known)
		page_left(page, 0, "   not tested: %s", side->reason);
	else if (side->p_value.value < COMPARE_SIGNIFICANT)
		page_left(page, 0, "   significant, p = %.1g", side->p_value.value);
	else
		page_left(page, 0, "   within noise, p = %.2g", side->p_value.value);
}

static void print_row(const struct page *page, const struct compare_row *row,
		      const struct compare_side *side)
{
	char before[SHORT_TEXT], after[SHORT_TEXT];

	page_left(page, LABEL_WIDTH, "%s", row->label);
	page_right(page, FIGURE_WIDTH, "%s", figure(row, row->first, before));
	page_right(page, FIGURE_WIDTH, "%s", figure(row, side->value, after));
	page_style(page, style_of(row, side));
	print_change(page, side);
	page_style(page, STYLE_PLAIN);
	print_verdict(page, side);
	fputc('\n', page->file);
}

/* The end of a long path says more than its begin. */
static const char *tail_of(const char *name)
{
	size_t length = strlen(name);

	return length < FIGURE_WIDTH ? name : name + length - FIGURE_WIDTH + 1;
}

int report_compare(struct run *const *runs, const char *const *names, size_t count,
		   const struct report_options *options, FILE *file)
{
	struct page page = {.file = file, .colour = options->colour, .width = options->width};
	autocompare struct compare *compare = compare_runs(runs, count);

	if (!compare)
		return -ENOMEM;
	for (size_t i = 1; i < count; i++) {
		page_style(&page, STYLE_BOLD);
		page_left(&page, LABEL_WIDTH, "compared");
		page_right(&page, FIGURE_WIDTH, "%s", tail_of(names[0]));
		page_right(&page, FIGURE_WIDTH, "%s", tail_of(names[i]));
		page_right(&page, FIGURE_WIDTH - 2, "difference");
		page_style(&page, STYLE_PLAIN);
		fputc('\n', file);
		for (size_t k = 0; k < compare->row_count; k++)
			print_row(&page, &compare->rows[k], &compare->rows[k].sides[i - 1]);
		fputs(i + 1 < count ? "\n" : "", file);
	}
	return ferror(file) ? -EIO : 0;
}
