/* SPDX-License-Identifier: MIT */
/* What merge.c (documents, observers) calls, and merge_driver.c and intervals.c: fields.c has it but for the last. */
#ifndef LIB_RUN_MERGE_H
#define LIB_RUN_MERGE_H

#include <stdbool.h>

#include "sojourn/run.h"

/* Sets *field to a copy of @value unless either is there or NULL. -ENOMEM. */
int merge_copy(char **field, const char *value);

/* Whether both are the same text, or both missing. */
bool merge_same(const char *a, const char *b);

/* Of labels that differ nothing is left. */
void merge_label(char **field, const char *other);

/*
 * Adds every member of @other to that of @structure that needs nothing but its row of the table. Errors as
 * run_merge().
 */
struct run_members;
int merge_members(const struct run_members *members, void *structure, const void *other,
		  char **ret_error);

/* Adds the driver's part of @other to that of @run; both have one. Errors as run_merge(). */
int merge_driver(struct run *run, struct run *other, char **ret_error);

#endif
