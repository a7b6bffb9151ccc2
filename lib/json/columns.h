/* SPDX-License-Identifier: MIT */
/*
 * Structures of one type as JSON: an array of numbers per member. A member that none knows is
 * absent; a single unknown value is null.
 */
#ifndef LIB_JSON_COLUMNS_H
#define LIB_JSON_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "reader.h"
#include "sojourn/series.h"

struct run_column {
	const char *within[2]; /* its nested objects, outermost first; NULL: no further one */
	const char *name;
	size_t offset;
	size_t size;	/* 4 or 8: uint32_t or uint64_t at @offset */
	uint32_t known; /* its bit in the structure's mask; 0: always known */
	bool occurring; /* always known: absent if 0 in all */
};

/* An array of structures: @count of @size bytes each, with a uint32_t mask at @known_offset. */
struct run_rows {
	void *rows;
	const uint32_t *order; /* indices in the order of writing; NULL: in the order of @rows */
	size_t count;
	size_t size;
	size_t known_offset;
};

/*
 * Print the arrays as text, in the objects that they are within. Of these the first @level (0 or 1)
 * are the caller's. Columns within one object follow each other. @separator precedes the first array
 * that is not absent.
 */
void run_columns_print(const struct run_column *columns, size_t column_count,
		       const struct run_rows *rows, size_t level, const char *separator,
		       FILE *file);

/*
 * Read arrays into zeroed rows, and set the bits of values present. Arrays have an element per row;
 * only columns with a bit, and occurring ones, may be absent.
 */
int run_columns_read(struct reader *reader, const json_t *object, const struct run_column *columns,
		     size_t column_count, const struct run_rows *rows);

/* Add the schema of each of @columns, of at most @limit elements, to an object's; -ENOMEM. */
int run_columns_schema(json_t *schema, const struct run_column *columns, size_t column_count,
		       size_t limit);

/* samples.c: print @samples as the text of an object. -ENOMEM. */
int run_samples_print(const struct run_samples *samples, FILE *file);
/* series.c: print @series as the text of an object. */
void run_series_print(const struct run_series *series, FILE *file);
/* samples.c, series.c: NULL without memory. */
json_t *run_samples_schema(void);
json_t *run_series_schema(void);
/* Even a refused result is set, and freed by the caller. */
int run_samples_read(struct reader *reader, const json_t *json, struct run_samples **ret_samples);
int run_series_read(struct reader *reader, const json_t *json, struct run_series **ret_series);

#endif
