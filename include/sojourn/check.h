/* SPDX-License-Identifier: MIT */
/*
 * Invariants of run documents, from the definitions of docs/measurement.md. A document that breaks
 * one contains a wrong number. docs/run-document.md lists them.
 */
#ifndef SOJOURN_CHECK_H
#define SOJOURN_CHECK_H

#include <stddef.h>

#include "sojourn/run.h"

/* Return the name of rule @index, in the order of run_check(); NULL after the last. */
const char *run_check_rule(size_t index);

/*
 * Append a sentence to the NULL-terminated list @broken for each place where @run breaks a rule:
 * the rule, the place, both values. Return 0 even then; -ENOMEM.
 */
int run_check(const struct run *run, char ***broken);

/* lib/json: check that means, deviations and percentiles in @run's text follow from its buckets. */
int run_check_derived(const char *text, size_t length, const struct run *run, char ***broken);

#endif
