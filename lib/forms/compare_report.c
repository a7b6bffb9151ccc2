// SPDX-License-Identifier: MIT
/* Several runs against the first, as text: an answer, the settings and a table for each. */
#include <errno.h>
#include <string.h>

#include "report/page/ascii.h"
#include "report/parts.h"
#include "sojourn/cleanup.h"
#include "sojourn/compare.h"
#include "sojourn/report.h"

#define DEFAULT_WIDTH	  100
#define LABEL_WIDTH	  19
#define FIGURE_WIDTH	  13
#define CHANGE_WIDTH	  11
#define TABLE_WIDTH	  (LABEL_WIDTH + 2 * FIGURE_WIDTH + CHANGE_WIDTH)
#define SURETY_WIDTH	  31 /* of the longest common text */
#define PROBABILITY_WIDTH 12

static enum style style_of(const struct compare_row *row, const struct compare_side *side)
{
	static const enum style styles[] = {[COMPARE_UNTESTED] = STYLE_PLAIN,
					    [COMPARE_UNSHOWN] = STYLE_PLAIN,
					    [COMPARE_ALIKE] = STYLE_PLAIN,
					    [COMPARE_BETTER] = STYLE_BOLD,
					    [COMPARE_WORSE] = STYLE_HOT};

	return styles[compare_judge(row, side)];
}

/* Print as much as fits; the answer above is complete. */
static void print_surety(const struct page *page, const struct compare_row *row,
			 const struct compare_side *side)
{
	char text[COMPARE_TEXT];

	if (page->width >= TABLE_WIDTH + SURETY_WIDTH)
		page_left(page, 0, "   %s", compare_surety(row, side, text));
	else if (side->p_value.known && !side->of_intervals &&
		 page->width >= TABLE_WIDTH + PROBABILITY_WIDTH)
		page_left(page, 0, "   p = %.2g", side->p_value.value);
}

static void print_row(const struct page *page, const struct compare_row *row,
		      const struct compare_side *side)
{
	char before[COMPARE_TEXT], after[COMPARE_TEXT];

	page_left(page, LABEL_WIDTH, "%s", row->label);
	page_right(page, FIGURE_WIDTH, "%s", compare_figure(row, row->first, before));
	page_right(page, FIGURE_WIDTH, "%s", compare_figure(row, side->value, after));
	page_style(page, style_of(row, side));
	if (side->change.known)
		page_right(page, CHANGE_WIDTH, "%s", as_change(100 * side->change.value));
	else
		page_right(page, CHANGE_WIDTH, "-");
	page_style(page, STYLE_PLAIN);
	print_surety(page, row, side);
	fputc('\n', page->file);
}

/* The end of a long path says more than its start. */
static const char *tail_of(const char *name)
{
	size_t length = strlen(name);

	return length < FIGURE_WIDTH ? name : name + length - FIGURE_WIDTH + 1;
}

/* The first line is the answer. */
static int print_answer(const struct page *page, const struct compare *compare, size_t side)
{
	autofree char *text = compare_answer(compare, side);
	char *rest = NULL;

	if (!text)
		return -ENOMEM;
	page_style(page, STYLE_BOLD);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		page_wrap(page, 0, "%s", line);
		page_style(page, STYLE_PLAIN);
	}
	return 0;
}

static int print_settings(const struct page *page, const struct compare *compare, size_t side)
{
	autofree char *text = compare_settings(compare, side);

	if (!text)
		return -ENOMEM;
	if (*text)
		page_wrap(page, 0, "settings differ: %s", text);
	return 0;
}

static void print_table(const struct page *page, const struct compare *compare, size_t side)
{
	page_style(page, STYLE_DIM);
	page_left(page, LABEL_WIDTH, "%s", "");
	page_right(page, FIGURE_WIDTH, "%s", tail_of(compare->groups[0].name));
	page_right(page, FIGURE_WIDTH, "%s", tail_of(compare->groups[side + 1].name));
	page_right(page, CHANGE_WIDTH, "%s", "change");
	page_style(page, STYLE_PLAIN);
	fputc('\n', page->file);
	for (size_t i = 0; i < compare->row_count; i++)
		print_row(page, &compare->rows[i], &compare->rows[i].sides[side]);
}

static int print_side(const struct page *page, const struct compare *compare, size_t side)
{
	int err = print_answer(page, compare, side);

	if (!err)
		err = print_settings(page, compare, side);
	if (err || !compare->row_count)
		return err;
	fputc('\n', page->file);
	print_table(page, compare, side);
	return 0;
}

static int print_sides(const struct compare *compare, const struct report_options *options,
		       FILE *file)
{
	struct page page = {.file = file,
			    .colour = options->colour,
			    .width = options->width ? options->width : DEFAULT_WIDTH};
	int err = 0;

	for (size_t i = 0; i < compare->side_count && !err; i++) {
		fputs(i ? "\n" : "", file);
		err = print_side(&page, compare, i);
	}
	return err;
}

int report_compare(struct run *const *runs, const char *const *names, size_t count,
		   const struct report_options *options, FILE *file)
{
	autocompare struct compare *compare = compare_runs(runs, names, count);
	autofree char *text = NULL;
	FILE *memory;
	size_t size;
	int err;

	memory = compare ? open_memstream(&text, &size) : NULL;
	if (!memory)
		return -ENOMEM;
	err = print_sides(compare, options, memory);
	if (fclose(memory) || err)
		return err ? err : -ENOMEM;
	if (options->ascii)
		report_to_ascii(text);
	fputs(text, file);
	return ferror(file) ? -EIO : 0;
}
