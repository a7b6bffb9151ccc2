/* SPDX-License-Identifier: MIT */
/* Text reports of documents, what must hold of each, and their comparison with files of golden/. */
#ifndef SUPPORT_REPORT_H
#define SUPPORT_REPORT_H

#include <stdbool.h>

#include "sojourn/run.h"

/* The caller frees it. */
char *support_render(const struct run *run, unsigned int width, bool colour);
/* What must hold of every report. */
void support_check_text(const char *text, unsigned int width);
/* Compares with golden/@name.txt. */
void support_check_golden(const struct run *run, const char *name, unsigned int width);

#endif
