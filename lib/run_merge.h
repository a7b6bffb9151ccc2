/* SPDX-License-Identifier: MIT */
/* What run_merge.c (documents, observers) and run_merge_driver.c share. */
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

/* Makes the samples of @other name their steps by the places that merge_rows() will give them. */
void merge_sample_steps(struct run_driver *driver, struct run_driver *other);

/* Adds the rows of @other, after its counts. Errors as run_merge(). */
int merge_rows(struct run_driver *driver, struct run_driver *other, char **ret_error);

/* Adds the driver's part of @other to that of @run; both have one. Errors as run_merge(). */
int merge_driver(struct run *run, struct run *other, char **ret_error);

#endif
