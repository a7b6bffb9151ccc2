/* SPDX-License-Identifier: MIT */
/* Steps, targets and statuses with every member set, and their comparison; for runs.c. */
#ifndef UNIT_SUPPORT_ROWS_H
#define UNIT_SUPPORT_ROWS_H

#include <stddef.h>

#include "sequence.h"
#include "unit.h"

static inline void fill_rows(struct run_row_list *rows, const char *first, const char *second,
			     struct sequence *sequence)
{
	rows->count = 2;
	rows->list = need(calloc(rows->count, sizeof(*rows->list)));
	for (size_t i = 0; i < rows->count; i++) {
		struct run_row *step = &rows->list[i];

		step->name = text(i ? second : first);
		step->target = text("http://server/items");
		step->method = text(i ? "GET" : "POST");
		step->requests = next(sequence);
		step->drained = next(sequence);
		step->bytes_in = next(sequence);
		step->bytes_out = next(sequence);
		set_counters(step->status, ARRAY_SIZE(step->status), sequence);
		set_counters(step->errors, RUN_ERROR_COUNT, sequence);
		set_histogram(&step->round_trip, sequence);
		set_histogram(&step->response_time, sequence);
	}
}

static inline void compare_rows(const struct run_row_list *a, const struct run_row_list *b)
{
	size_t plain = offsetof(struct run_row, requests); /* no pointers from here on */

	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct run_row *left = &a->list[i], *right = &b->list[i];

		assert_string_equal(left->name, right->name);
		assert_string_equal(left->target, right->target);
		assert_string_equal(left->method, right->method);
		assert_memory_equal((const char *)left + plain, (const char *)right + plain,
				    sizeof(*left) - plain);
	}
}

static inline void support_compare_rows(const struct run_driver *a, const struct run_driver *b)
{
	assert_string_equal(a->scenario ? a->scenario : "", b->scenario ? b->scenario : "");
	for (size_t i = 0; i < RUN_ROWS_COUNT; i++)
		compare_rows(&a->rows[i], &b->rows[i]);
}

/* Clear the compared rows, whose pointers differ. */
static inline void support_forget_rows(struct run_driver *a, struct run_driver *b)
{
	memset(a->rows, 0, sizeof(a->rows));
	memset(b->rows, 0, sizeof(b->rows));
	a->scenario = b->scenario = NULL;
}

static inline void support_match_joined(const struct run_joined_step *a,
					const struct run_joined_step *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->place, b->place);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(&a->sum, &b->sum, sizeof(a->sum));
}

/*
 * Assert that both have the same, then clear all lists, so that the rest can be compared as bytes.
 */
static inline void support_match_joined_steps(struct run_joined *a, struct run_joined *b)
{
	assert_int_equal(a->step_count, b->step_count);
	assert_int_equal(a->host_count, b->host_count);
	for (size_t i = 0; i < a->step_count; i++)
		support_match_joined(&a->steps[i], &b->steps[i]);
	for (size_t i = 0; i < a->host_count; i++)
		support_match_joined(&a->hosts[i], &b->hosts[i]);
	a->steps = b->steps = NULL;
	a->hosts = b->hosts = NULL;
	a->tail = b->tail = NULL;
	a->slowest = b->slowest = NULL;
}

#endif
