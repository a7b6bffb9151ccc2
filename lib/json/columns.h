/* SPDX-License-Identifier: MIT */
/*
 * Many structures of the same type as JSON: an array of numbers for each member. What no structure
 * knows is absent, what one does not know is null.
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
	const char *
		within[2]; /* the objects that it is in, from the outermost; NULL: no further one */
	const char *name;
	size_t offset;
	size_t size;	/* 4 or 8: of the uint32_t or uint64_t at @offset */
	uint32_t known; /* its bit in the structure's mask; 0: known in all */
	bool occurring; /* known in all: absent where it is 0 in all */
};

/* An array of structures: @count of @size bytes each, with a uint32_t mask at @known_offset. */
struct run_rows {
	void *rows;
	const uint32_t *order; /* their places as they are written; NULL: as they stand */
	size_t count;
	size_t size;
	size_t known_offset;
};

/* Adds an array for each of @columns to @object; -ENOMEM. */
int run_columns_write(json_t *object, const struct run_column *columns, size_t column_count,
		      const struct run_rows *rows);

/* The same as text, whichever objects they are within; @separator stands before the first one that is there. */
void run_columns_print(const struct run_column *columns, size_t column_count,
		       const struct run_rows *rows, const char *separator, FILE *file);

/*
 * Reads them back into zeroed rows and sets the bits of what is there. Arrays must have as many
 * elements as there are rows; only those with a bit may be absent.
 */
int run_columns_read(struct reader *reader, const json_t *object, const struct run_column *columns,
		     size_t column_count, const struct run_rows *rows);

/* Adds the schema of each of @columns, of at most @limit elements, to that of an object; -ENOMEM. */
int run_columns_schema(json_t *schema, const struct run_column *columns, size_t column_count,
		       size_t limit);

/* samples.c: the text of an object. -ENOMEM. */
int run_samples_print(const struct run_samples *samples, FILE *file);
/* samples.c, series.c: NULL without memory. */
json_t *run_series_write(const struct run_series *series);
json_t *run_samples_schema(void);
json_t *run_series_schema(void);
/* What is read is set, to be freed by the caller, also if it is refused. */
int run_samples_read(struct reader *reader, const json_t *json, struct run_samples **ret_samples);
int run_series_read(struct reader *reader, const json_t *json, struct run_series **ret_series);

#endif
