/* SPDX-License-Identifier: MIT */
/* The forms in which `sojourn report` writes, a row each. */
#ifndef OBSERVER_REPORT_OUTPUT_H
#define OBSERVER_REPORT_OUTPUT_H

#include "sojourn/run.h"

struct report_format;

/* Find a form by name; NULL: there is none. */
const struct report_format *report_format_named(const char *name);

/*
 * Find a form by the ending of @path (".html", ".md", …). Without an ending it is the text for
 * people; NULL: unknown ending.
 */
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
