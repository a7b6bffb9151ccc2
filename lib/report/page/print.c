// SPDX-License-Identifier: MIT
/* Text on a page; other files decide its contents. */
#include "print.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define COUNT_COLUMNS 10 /* of counts in a list */

void page_style(const struct page *page, enum style style)
{
	static const char *const escapes[STYLE_COUNT] = {
		[STYLE_PLAIN] = "\033[0m",
		[STYLE_DIM] = "\033[0;2m",
		[STYLE_BOLD] = "\033[0;1m",
		[STYLE_HOT] = "\033[0;1;33m",
	};

	if (page->colour)
		fputs(escapes[style], page->file);
}

__attribute__((format(printf, 1, 0))) static char *format_text(const char *format, va_list args)
{
	char *text = text_format_args(format, args);

	if (text)
		text_make_printable(text, '?');
	return text;
}

static void print_spaces(const struct page *page, unsigned int count)
{
	fprintf(page->file, "%*s", (int)count, "");
}

static unsigned int missing_columns(const char *text, unsigned int columns)
{
	unsigned int used = text_columns(text);

	return used < columns ? columns - used : 0;
}

/* Pad the text on one side. */
__attribute__((format(printf, 4, 0))) static void print_cell(const struct page *page,
							     unsigned int columns, bool right,
							     const char *format, va_list args)
{
	autofree char *text = format_text(format, args);
	unsigned int missing = text ? missing_columns(text, columns) : 0;

	if (!text)
		return;
	print_spaces(page, right ? missing : 0);
	fputs(text, page->file);
	print_spaces(page, right ? 0 : missing);
}

void page_left(const struct page *page, unsigned int columns, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_cell(page, columns, false, format, args);
	va_end(args);
}

void page_right(const struct page *page, unsigned int columns, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_cell(page, columns, true, format, args);
	va_end(args);
}

/* Print @word after a space, or on the next line. Return the column after it. */
static unsigned int wrap_word(const struct page *page, unsigned int indent, unsigned int column,
			      const char *word)
{
	unsigned int columns = text_columns(word);

	if (column > indent && column + 1 + columns > page->width) {
		fputc('\n', page->file);
		print_spaces(page, indent);
		column = indent;
	} else if (column > indent) {
		fputc(' ', page->file);
		column++;
	}
	fputs(word, page->file);
	return column + columns;
}

__attribute__((format(printf, 3, 0))) static void
print_wrapped(const struct page *page, unsigned int indent, const char *format, va_list args)
{
	autofree char *text = format_text(format, args);
	unsigned int column = indent;
	char *rest = NULL;

	for (char *word = text ? strtok_r(text, " ", &rest) : NULL; word;
	     word = strtok_r(NULL, " ", &rest))
		column = wrap_word(page, indent, column, word);
	fputc('\n', page->file);
}

void page_wrap(const struct page *page, unsigned int indent, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_wrapped(page, indent, format, args);
	va_end(args);
}

void page_counted(const struct page *page, const char *label, uint64_t count, const char *format,
		  ...)
{
	va_list args;

	page_left(page, LABEL_COLUMNS, "%s", label);
	page_right(page, COUNT_COLUMNS, "%s", as_count(count));
	print_spaces(page, 1);
	va_start(args, format);
	print_wrapped(page, LABEL_COLUMNS + COUNT_COLUMNS + 1, format, args);
	va_end(args);
}

struct items items_begin(const struct page *page, const char *label, unsigned int indent)
{
	return (struct items){.page = page, .label = label, .indent = indent, .column = indent};
}

/* Break the line if @columns do not fit, otherwise separate the item from the previous one. */
static void make_room(struct items *items, unsigned int columns)
{
	static const char separator[] = " \u00b7 ";

	if (!items->started) {
		page_left(items->page, items->indent, "%s", items->label);
	} else if (items->column + text_columns(separator) + columns > items->page->width) {
		fputc('\n', items->page->file);
		print_spaces(items->page, items->indent);
		items->column = items->indent;
	} else {
		fputs(separator, items->page->file);
		items->column += text_columns(separator);
	}
}

void items_add(struct items *items, const char *format, ...)
{
	autofree char *text = NULL;
	va_list args;

	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	if (!text)
		return;
	make_room(items, text_columns(text));
	fputs(text, items->page->file);
	items->column += text_columns(text);
	items->started = true;
}

void items_count(struct items *items, const char *what, uint64_t count)
{
	items_add(items, "%s %s", what, as_count(count));
}

void items_some(struct items *items, const char *what, uint64_t count)
{
	if (count)
		items_count(items, what, count);
}

void items_time(struct items *items, const char *what, double ns)
{
	items_add(items, "%s %s", what, as_time(ns));
}

void items_end(struct items *items)
{
	if (items->started)
		fputc('\n', items->page->file);
	items->started = false;
}

const char *page_quantile(const struct histogram *h, double quantile,
			  char buffer[static SHORT_TEXT])
{
	return h->count ? units_format_time((double)histogram_quantile(h, quantile), buffer,
					    SHORT_TEXT)
			: "-";
}

const char *page_rate_of(double per_second, char buffer[static SHORT_TEXT])
{
	if (per_second >= (double)UINT64_MAX)
		return units_format_count(UINT64_MAX, buffer, SHORT_TEXT);
	if (per_second >= 99.95 || per_second <= 0 || fabs(per_second - round(per_second)) < 0.005)
		return units_format_count((uint64_t)(per_second + 0.5), buffer, SHORT_TEXT);
	return units_format_digits(per_second, "", buffer, SHORT_TEXT);
}

const char *page_rate(uint64_t count, uint64_t ns, char buffer[static SHORT_TEXT])
{
	return page_rate_of(ns ? (double)count * NSEC_PER_SEC / (double)ns : 0, buffer);
}

const char *page_bytes(uint64_t bytes, char buffer[static SHORT_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t i = 0;

	for (; i < ARRAY_SIZE(units) - 1 && value >= 999.5; i++)
		value /= 1024;
	if (i)
		return units_format_digits(value, units[i], buffer, SHORT_TEXT);
	snprintf(buffer, SHORT_TEXT, "%ju B", (uintmax_t)bytes);
	return buffer;
}

const char *page_change(double percent, char buffer[static SHORT_TEXT])
{
	snprintf(buffer, SHORT_TEXT, "%+.*f %%", fabs(percent) < 99.95 ? 1 : 0, percent);
	return buffer;
}

const char *page_words(const char *name, char buffer[static SHORT_TEXT])
{
	snprintf(buffer, SHORT_TEXT, "%s", name);
	return text_words(buffer);
}
