/* SPDX-License-Identifier: MIT */
/*
 * Invariants of run documents: what holds of every one of them by the definitions of docs/measurement.md.
 * A document that breaks one has a wrong number in it. docs/run-document.md lists them.
 */
#ifndef SOJOURN_CHECK_H
#define SOJOURN_CHECK_H

#include <stddef.h>

#include "sojourn/run.h"

/* The names of the rules, in the order in which run_check() looks; NULL behind the last one. */
const char *run_check_rule(size_t index);

/*
 * Appends a sentence to the NULL-terminated list @broken for each place where @run breaks a rule: the rule, the
 * place, both values. 0, also if some are broken; -ENOMEM.
 */
int run_check(const struct run *run, char ***broken);

/* lib/json: means, deviations and percentiles in the text @run was read from follow from its buckets. */
int run_check_derived(const char *text, size_t length, const struct run *run, char ***broken);

#endif
