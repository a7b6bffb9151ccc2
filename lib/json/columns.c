// SPDX-License-Identifier: MIT
/* Structures as columns of JSON numbers and back: see columns.h. */
#include "columns.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "print.h"
#include "schema_parts.h"
#include "sojourn/cleanup.h"

static char *row_at(const struct run_rows *rows, size_t index)
{
	return (char *)rows->rows + (rows->order ? rows->order[index] : index) * rows->size;
}

static uint32_t *known_of(const struct run_rows *rows, size_t index)
{
	return (uint32_t *)(row_at(rows, index) + rows->known_offset);
}

static bool is_known(const struct run_column *column, const struct run_rows *rows, size_t index)
{
	return !column->known || *known_of(rows, index) & column->known;
}

static uint64_t value_of(const struct run_column *column, const char *row)
{
	uint32_t narrow;
	uint64_t wide;

	if (column->size == sizeof(narrow)) {
		memcpy(&narrow, row + column->offset, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, row + column->offset, sizeof(wide));
	return wide;
}

static void set_value(const struct run_column *column, char *row, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	if (column->size == sizeof(narrow))
		memcpy(row + column->offset, &narrow, sizeof(narrow));
	else
		memcpy(row + column->offset, &value, sizeof(value));
}

/* Return whether to write the column: it is mandatory, or a structure has a value. */
static bool is_there(const struct run_column *column, const struct run_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (is_known(column, rows, i) &&
		    (!column->occurring || value_of(column, row_at(rows, i))))
			return true;
	return !column->known && !column->occurring;
}

static void print_column(const struct run_column *column, const struct run_rows *rows, FILE *file)
{
	print_name("", column->name, file);
	print_char('[', file);
	for (size_t i = 0; i < rows->count; i++) {
		if (i)
			print_char(',', file);
		if (is_known(column, rows, i))
			print_integer(value_of(column, row_at(rows, i)), file);
		else
			print_plain("null", file);
	}
	print_char(']', file);
}

void run_columns_print(const struct run_column *columns, size_t column_count,
		       const struct run_rows *rows, size_t level, const char *separator, FILE *file)
{
	const char *open = NULL;

	for (size_t i = 0; i < column_count; i++) {
		const char *inner = columns[i].within[level];

		if (!is_there(&columns[i], rows))
			continue;
		if (open && (!inner || strcmp(inner, open))) {
			print_char('}', file);
			open = NULL;
		}
		if (inner && !open) {
			print_name(separator, inner, file);
			separator = "{";
			open = inner;
		}
		print_plain(separator, file);
		print_column(&columns[i], rows, file);
		separator = ",";
	}
	if (open)
		print_char('}', file);
}

static int read_value(struct reader *reader, const json_t *json, const struct run_column *column,
		      const struct run_rows *rows, size_t index)
{
	uint64_t max = column->size == sizeof(uint32_t) ? UINT32_MAX : INT64_MAX, value;
	int err;

	if (column->known && json_is_null(json))
		return 0;
	err = reader_integer(reader, json, max, &value);
	if (err)
		return err;
	set_value(column, row_at(rows, index), value);
	*known_of(rows, index) |= column->known;
	return 0;
}

static int read_column(struct reader *reader, const json_t *json, const struct run_column *column,
		       const struct run_rows *rows)
{
	int err = 0;

	if (!json_is_array(json) || json_array_size(json) != rows->count)
		return reader_refuse(reader, json, "an array of %zu elements", rows->count);
	for (size_t i = 0; i < rows->count && !err; i++) {
		size_t before = reader_enter(reader, "[%zu]", i);

		err = read_value(reader, json_array_get(json, i), column, rows, i);
		reader_leave(reader, before);
	}
	return err;
}

/* Read @column from @object, at @level of its nested objects; absent objects are empty. */
static int read_within(struct reader *reader, const json_t *object, const struct run_column *column,
		       size_t level, const struct run_rows *rows)
{
	bool inner = level < ARRAY_SIZE(column->within) && column->within[level];
	const char *name = inner ? column->within[level] : column->name;
	const json_t *json = json_object_get(object, name);
	size_t before = reader_enter_member(reader, name);
	int err = 0;

	if (inner && json && !json_is_object(json))
		err = reader_refuse(reader, json, "an object");
	else if (inner)
		err = read_within(reader, json, column, level + 1, rows);
	else if (json ? !column->known || !json_is_null(json)
		      : !column->known && !column->occurring)
		err = read_column(reader, json, column, rows);
	reader_leave(reader, before);
	return err;
}

int run_columns_read(struct reader *reader, const json_t *object, const struct run_column *columns,
		     size_t column_count, const struct run_rows *rows)
{
	int err = 0;

	for (size_t i = 0; i < column_count && !err; i++)
		err = read_within(reader, object, &columns[i], 0, rows);
	return err;
}

int run_columns_schema(json_t *schema, const struct run_column *columns, size_t column_count,
		       size_t limit)
{
	for (size_t i = 0; i < column_count; i++) {
		const struct run_column *column = &columns[i];
		uint64_t max = column->size == sizeof(uint32_t) ? UINT32_MAX : INT64_MAX;
		json_t *value = schema_integer(max), *object = schema;

		for (size_t j = 0; j < ARRAY_SIZE(column->within) && column->within[j]; j++)
			object = schema_within(object, column->within[j]);
		if (schema_add(object, column->name,
			       schema_array(limit, column->known ? schema_nullable(value) : value),
			       !column->known && !column->occurring))
			return -ENOMEM;
	}
	return 0;
}
