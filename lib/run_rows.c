/* SPDX-License-Identifier: MIT */
/* The rows of several drivers (steps, targets, statuses) made one list: those of one name are the same. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run_members.h"
#include "run_merge.h"
#include "sojourn/refuse.h"

static struct run_row *find_row(struct run_row_list *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (merge_same(rows->list[i].name, name))
			return &rows->list[i];
	return NULL;
}

/* Takes what @other points to over. */
static int append_row(struct run_row_list *rows, const char *kind, struct run_row *other,
		      char **ret_error)
{
	struct run_row *list;

	if (rows->count == RUN_ROWS_MAX)
		return refuse(ret_error, "driver.%s: more than %u of different names", kind,
			      RUN_ROWS_MAX);
	list = reallocarray(rows->list, rows->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	rows->list = list;
	list[rows->count++] = *other;
	other->name = other->target = other->method = NULL;
	return 0;
}

/* Where add_rows() puts the rows of @others, by their place there. */
static void number_rows(struct run_row_list *rows, const struct run_row_list *others,
			uint32_t ret_places[static RUN_ROWS_MAX])
{
	size_t appended = rows->count;

	for (size_t i = 0; i < others->count && i < RUN_ROWS_MAX; i++) {
		const struct run_row *row = find_row(rows, others->list[i].name);

		ret_places[i] = (uint32_t)(row ? (size_t)(row - rows->list) : appended++);
	}
}

void merge_sample_steps(struct run_driver *driver, struct run_driver *other)
{
	const struct run_row_list *others = &other->rows[RUN_ROWS_STEP];
	struct run_samples *samples = other->samples;
	uint32_t places[RUN_ROWS_MAX];

	if (!samples)
		return;
	number_rows(&driver->rows[RUN_ROWS_STEP], others, places);
	for (size_t i = 0; i < samples->count; i++) {
		struct run_sample *sample = &samples->samples[i];

		if (sample->known & RUN_SAMPLE_STEP && sample->step < others->count)
			sample->step = places[sample->step];
		else
			sample->known &= ~(uint32_t)RUN_SAMPLE_STEP;
	}
}

static int add_rows(struct run_row_list *rows, const char *kind, struct run_row_list *others,
		    char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < others->count && !err; i++) {
		struct run_row *row = find_row(rows, others->list[i].name);

		if (row)
			err = merge_members(&run_row_members, row, &others->list[i], ret_error);
		else
			err = append_row(rows, kind, &others->list[i], ret_error);
	}
	return err;
}

static int compare_names(const void *a, const void *b)
{
	const struct run_row *first = a, *second = b;

	return strcmp(first->name ? first->name : "", second->name ? second->name : "");
}

/*
 * Rows of one driver alone would look like those of all: then there are none. Steps stand for
 * themselves. @requests: those of the driver that has @rows.
 */
static bool is_complete(const struct run_row_list *rows, enum run_rows_by by, uint64_t requests)
{
	return by == RUN_ROWS_STEP || rows->count || !requests;
}

static int merge_kind(struct run_driver *driver, struct run_driver *other, enum run_rows_by by,
		      char **ret_error)
{
	struct run_row_list *rows = &driver->rows[by], *others = &other->rows[by];

	/* The requests of both are added up by now. */
	if (is_complete(rows, by, driver->requests - other->requests) &&
	    is_complete(others, by, other->requests))
		return add_rows(rows, run_rows_names[by], others, ret_error);
	run_row_list_clear(rows);
	return 0;
}

int merge_rows(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	struct run_row_list *statuses = &driver->rows[RUN_ROWS_STATUS];
	int err = 0;

	for (enum run_rows_by by = 0; by < RUN_ROWS_COUNT && !err; by++)
		err = merge_kind(driver, other, by, ret_error);
	if (statuses->count)
		qsort(statuses->list, statuses->count, sizeof(*statuses->list), compare_names);
	return err;
}
