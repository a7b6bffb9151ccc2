/* SPDX-License-Identifier: MIT */
/* The forms in which `sojourn report` writes, a row each. */
#ifndef OBSERVER_REPORT_OUTPUT_H
#define OBSERVER_REPORT_OUTPUT_H

#include "sojourn/run.h"

struct report_format;

/* By name; NULL if there is none of it. */
const struct report_format *report_format_named(const char *name);

/* By what @path ends in (".html", ".md", …); that for people without an ending. NULL: none has this one. */
const struct report_format *report_format_for(const char *path);

/* "text, html, …" and ".txt, .html, …", for messages. */
extern const char report_format_names[];
extern const char report_format_endings[];

/* Return whether it can show several runs side by side. */
bool report_format_compares(const struct report_format *format);

/*
 * Write @runs, named @names, to @path, which is replaced as a whole; "-" or NULL is standard output.
 * Each stands for itself; @verbose: all that the text has. 0 or -errno.
 */
int report_output(const struct report_format *format, struct run *const *runs,
		  const char *const *names, size_t count, bool verbose, const char *path);

#endif
