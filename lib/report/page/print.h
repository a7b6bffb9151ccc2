/* SPDX-License-Identifier: MIT */
/* Text on a report's page: styles, columns counted in characters, wrapped lines. */
#ifndef LIB_REPORT_PAGE_PRINT_H
#define LIB_REPORT_PAGE_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/histogram.h"
#include "sojourn/units.h"

/* Width of the label at the left of every line outside the tree. */
#define LABEL_COLUMNS 13

/* How much is left out so that a report fits on a screen. */
enum tightness {
	TIGHT_NOT,
	TIGHT_SHORT, /* of each list its first rows, of findings their remedy */
	TIGHT_MOST,  /* and no row that only explains another one */
};

/* The page being printed. */
struct page {
	FILE *file;
	bool colour;
	bool verbose; /* everything, not only a first look */
	enum tightness tight;
	unsigned int width;
};

enum style {
	STYLE_PLAIN,
	STYLE_DIM,
	STYLE_BOLD,
	STYLE_HOT,
	STYLE_COUNT
};

/* Switch to @style if the page has colour; STYLE_PLAIN ends any other. */
void page_style(const struct page *page, enum style style);

/*
 * Print a cell of at least @columns characters, aligned left or right. Replace control characters,
 * as names and reasons may come from elsewhere.
 */
__attribute__((format(printf, 3, 4))) void page_left(const struct page *page, unsigned int columns,
						     const char *format, ...);
__attribute__((format(printf, 3, 4))) void page_right(const struct page *page, unsigned int columns,
						      const char *format, ...);

/* Print text from column @indent on to the end of the line, wrapped between words. */
__attribute__((format(printf, 3, 4))) void page_wrap(const struct page *page, unsigned int indent,
						     const char *format, ...);

/* Print a row of a list: @count and its description. Only the first row has @label. */
__attribute__((format(printf, 4, 5))) void page_counted(const struct page *page, const char *label,
							uint64_t count, const char *format, ...);

/* A line of items separated by " · ", continued at @indent on the next line. */
struct items {
	const struct page *page;
	const char *label;
	unsigned int indent;
	unsigned int column;
	bool started; /* the line has an item */
};

/* The first item has @label before it, padded to @indent. */
struct items items_begin(const struct page *page, const char *label, unsigned int indent);
__attribute__((format(printf, 2, 3))) void items_add(struct items *items, const char *format, ...);
/* Add "@what 1,234"; likewise unless it is 0; "@what 1.20 ms". */
void items_count(struct items *items, const char *what, uint64_t count);
void items_some(struct items *items, const char *what, uint64_t count);
void items_time(struct items *items, const char *what, double ns);
/* End the line, if it has an item. */
void items_end(struct items *items);
#define autoitems CLEANUP(items_end)

/*
 * The form of each quantity. Measured durations and sizes have three significant digits ("124 µs",
 * "6.10 µs", whole ns and bytes), settings as few as possible ("2 s"). Counts are exact: "116,785".
 */
#define SHORT_TEXT UNITS_TEXT
/* "-" of an empty histogram. */
const char *page_quantile(const struct histogram *h, double quantile,
			  char buffer[static SHORT_TEXT]);
/* Per second, 0 if @ns is 0; without decimals from 100 on: "40,677", "49.7". */
const char *page_rate(uint64_t count, uint64_t ns, char buffer[static SHORT_TEXT]);
const char *page_rate_of(double per_second, char buffer[static SHORT_TEXT]);
const char *page_bytes(uint64_t bytes, char buffer[static SHORT_TEXT]);

/* A difference, with a sign and three significant digits: "+12.5 %", "-100 %". */
const char *page_change(double percent, char buffer[static SHORT_TEXT]);

/* "socket_queue" becomes "socket queue". */
const char *page_words(const char *name, char buffer[static SHORT_TEXT]);

/* The same as an argument, like as_time(). */
#define as_quantile(h, quantile) page_quantile((h), (quantile), UNITS_ROOM)
#define as_rate(count, ns)	 page_rate((count), (ns), UNITS_ROOM)
#define as_rate_of(per_second)	 page_rate_of((per_second), UNITS_ROOM)
#define as_bytes(bytes)		 page_bytes((bytes), UNITS_ROOM)
#define as_change(percent)	 page_change((percent), UNITS_ROOM)
#define as_words(name)		 page_words((name), UNITS_ROOM)

#endif
