/* SPDX-License-Identifier: MIT */
/* The end of a run document's findings, for run_free(). */
#ifndef LIB_RUN_FINDING_H
#define LIB_RUN_FINDING_H

#include "sojourn/finding.h"

/* Moves @other's findings and notes to @run, the document of another host. 0 or -ENOMEM. */
int run_findings_merge(struct run *run, struct run *other);

void run_findings_free(struct run_finding *findings, size_t count);

#endif
