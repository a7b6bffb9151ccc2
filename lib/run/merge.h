/* SPDX-License-Identifier: MIT */
/* Shared by merge.c (documents, observers), merge_driver.c and intervals.c; mostly in fields.c. */
#ifndef LIB_RUN_MERGE_H
#define LIB_RUN_MERGE_H

#include "sojourn/run.h"

/* Copy @value to *field unless *field is set or @value is NULL. -ENOMEM. */
int merge_copy(char **field, const char *value);

/* Move all @others, of @size bytes each, behind the elements of *@list. -ENOMEM. */
int merge_list(void *list, size_t *count, const void *others, size_t *other_count, size_t size);

/* Remove a label that differs from @other. */
void merge_label(char **field, const char *other);

/* Add every member of @other to @structure that needs only its table row. Errors as run_merge(). */
struct run_members;
int merge_members(const struct run_members *members, void *structure, const void *other,
		  char **ret_error);

/* Add the driver's part of @other to @run's; both have one. Errors as run_merge(). */
int merge_driver(struct run *run, struct run *other, char **ret_error);

#endif
