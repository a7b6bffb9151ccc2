/* SPDX-License-Identifier: MIT */
/* A service's past as JSON: a column for each number. For run_write.c and run_read.c. */
#ifndef LIB_RUN_SERIES_H
#define LIB_RUN_SERIES_H

#include <jansson.h>

#include "run_members.h"
#include "run_reader.h"
#include "sojourn/series.h"

/* NULL without memory. */
json_t *run_series_write(const struct run_series *series);
/* @field, a struct run_series **, is set and to be freed by the caller, also if it is refused. */
int run_series_read(struct reader *reader, const json_t *json, const struct run_member *member,
		    void *field);

#endif
