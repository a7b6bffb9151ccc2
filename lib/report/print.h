/* SPDX-License-Identifier: MIT */
/* How the parts of a report put text on a page: styles, columns counted in characters, lines that wrap. */
#ifndef LIB_REPORT_PRINT_H
#define LIB_REPORT_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sojourn/run.h"

/* Width of the label at the left of every line but the tree's. */
#define LABEL_COLUMNS 13

/* The page being printed. */
struct page {
	FILE *file;
	bool colour;
	bool verbose; /* all, not only what is looked at first */
	unsigned int width;
};

enum style {
	STYLE_PLAIN,
	STYLE_DIM,
	STYLE_BOLD,
	STYLE_HOT,
	STYLE_COUNT
};

/* Switches to @style where the page has colour; STYLE_PLAIN ends any other. */
void page_style(const struct page *page, enum style style);

/*
 * Prints one cell of at least @columns characters, aligned left or right. Control characters are
 * replaced: names of processes and reasons come from elsewhere.
 */
__attribute__((format(printf, 3, 4))) void page_left(const struct page *page, unsigned int columns,
						     const char *format, ...);
__attribute__((format(printf, 3, 4))) void page_right(const struct page *page, unsigned int columns,
						      const char *format, ...);

/* Ends a line that stands at @indent with text, broken between words where the page ends. */
__attribute__((format(printf, 3, 4))) void page_wrap(const struct page *page, unsigned int indent,
						     const char *format, ...);

/* A row of a list: @count, and what it counts. Only the first row has the list's @label. */
__attribute__((format(printf, 4, 5))) void page_counted(const struct page *page, const char *label,
							uint64_t count, const char *format, ...);

/* Characters in UTF-8 @text (none of ours is wide or combining). */
unsigned int page_columns(const char *text);

/* A line of items separated by " · ", continued below @indent where the page ends. */
struct items {
	const struct page *page;
	unsigned int indent;
	unsigned int column;
	bool started; /* an item stands on the line */
};

/* Begins the line with @label, padded to @indent. */
struct items items_begin(const struct page *page, const char *label, unsigned int indent);
__attribute__((format(printf, 2, 3))) void items_add(struct items *items, const char *format, ...);
void items_end(struct items *items);

/*
 * One form for each quantity. Measured durations and sizes have three significant digits ("124 µs", "6.10 µs",
 * whole ns and bytes), settings no more than they need ("2 s"). Counts are exact: "116,785".
 */
#define SHORT_TEXT 32
const char *page_time(double ns, char buffer[static SHORT_TEXT]);
const char *page_setting(uint64_t ns, char buffer[static SHORT_TEXT]);
const char *page_count(uint64_t count, char buffer[static SHORT_TEXT]);
/* Times per second, 0 if @ns is 0; whole from 100 on: "40,677", "49.7". */
const char *page_rate(uint64_t count, uint64_t ns, char buffer[static SHORT_TEXT]);
const char *page_rate_of(double per_second, char buffer[static SHORT_TEXT]);
const char *page_bytes(uint64_t bytes, char buffer[static SHORT_TEXT]);
/* "69 %", with a decimal near the ends: "7.3 %", "99.9 %"; what is only near 0 or 100 is neither. */
const char *page_share(double percent, char buffer[static SHORT_TEXT]);

/* "socket_queue" as people write it: "socket queue". */
const char *page_words(const char *name, char buffer[static SHORT_TEXT]);

#endif
