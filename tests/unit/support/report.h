/* SPDX-License-Identifier: MIT */
/*
 * Text reports of documents, properties of every one, and their comparison with files of golden/.
 */
#ifndef UNIT_SUPPORT_REPORT_H
#define UNIT_SUPPORT_REPORT_H

#include <stdbool.h>

#include "sojourn/report.h"

/* Return the whole report; the caller frees it. */
char *support_render(const struct run *run, unsigned int width, bool colour);
char *support_render_as(const struct run *run, const struct report_options *options);
void support_check_text(const char *text, unsigned int width);
void support_check_golden(const struct run *run, const char *name, unsigned int width);
/* The same for the report without -v. */
void support_check_short(const struct run *run, const char *name, unsigned int width);

#endif
