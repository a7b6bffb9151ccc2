// SPDX-License-Identifier: MIT
/* Rows by status equal the counts of every response, whenever the first different one comes. */
#include "driver/test.h"

#include <stdio.h>
#include <string.h>

#include "stats/statuses.h"

#define CODES 80U /* more than there are rows */

struct truth {
	uint64_t requests[CODES], bytes[CODES], sum_ns[CODES], errors[CODES];
};

/* As in a worker, the counts are in two parts. */
struct counter {
	struct status_table table;
	struct stats total, stats;
	struct truth truth;
};

static struct run_row_list listed;

static void begin(struct counter *counter)
{
	memset(counter, 0, sizeof(*counter));
	assert_int_equal(status_table_open(&counter->table, 1), 0);
}

static void end(struct counter *counter)
{
	status_table_close(&counter->table);
	run_row_list_clear(&listed);
}

static void count(struct counter *counter, const struct engine_result *result)
{
	uint64_t intended_ns = result->start_ns - 5;

	if (!status_rows_is_same(counter->table.list, result))
		status_rows_record(counter->table.list, result, intended_ns, false, &counter->total,
				   &counter->stats);
	stats_record(&counter->stats, result);
	stats_record_response(&counter->stats, result, intended_ns);
}

/* A response of 100 + @code, or a failure. */
static void take(struct counter *counter, unsigned int code, bool complete, uint64_t at_ns)
{
	struct engine_result result = {
		.error = complete ? RUN_NO_ERROR : RUN_ERROR_TIMEOUT,
		.status = complete ? (uint16_t)(400 + code) : 0,
		.verdict = code % 2 ? VERDICT_GOOD : VERDICT_BAD_STATUS,
		.start_ns = 100 + at_ns,
		.end_ns = 100 + 3 * at_ns,
		.bytes_in = at_ns + 1,
	};

	count(counter, &result);
	if (!complete)
		return;
	counter->truth.requests[code]++;
	counter->truth.bytes[code] += at_ns + 1;
	counter->truth.sum_ns[code] += 2 * at_ns;
	counter->truth.errors[code] += code % 2 == 0;
}

static void roll(struct counter *counter)
{
	stats_add(&counter->total, &counter->stats);
	counter->stats = (struct stats){0};
}

static void settle(struct counter *counter)
{
	roll(counter);
	status_rows_settle(counter->table.list, &counter->total);
	assert_int_equal(status_table_fill(&counter->table, &listed), 0);
}

static void check(const struct counter *counter, unsigned int codes)
{
	size_t row = 0;
	char name[8];

	for (unsigned int code = 0; code < codes; code++) {
		const struct run_row *found = &listed.list[row];

		if (!counter->truth.requests[code])
			continue;
		row++;
		assert_in_range(row, 1, listed.count);
		snprintf(name, sizeof(name), "%u", 400 + code);
		assert_string_equal(found->name, name);
		assert_int_equal(found->requests, counter->truth.requests[code]);
		assert_int_equal(found->status[4], found->requests);
		assert_int_equal(found->bytes_in, counter->truth.bytes[code]);
		assert_int_equal(run_row_errors(found), counter->truth.errors[code]);
		assert_int_equal(found->round_trip.count, found->requests);
		assert_int_equal(found->round_trip.sum, counter->truth.sum_ns[code]);
		assert_int_equal(found->response_time.sum,
				 counter->truth.sum_ns[code] + 5 * found->requests);
	}
	assert_int_equal(row, listed.count);
}

/* @other: how many of the first status come before another one; @failure: a failure. */
static void mix(uint64_t other, uint64_t failure)
{
	struct counter counter;

	begin(&counter);
	for (uint64_t i = 0; i < 40; i++) {
		if (i == 7 || i == 20)
			roll(&counter);
		take(&counter, i < other ? 4 : (unsigned int)(i % 3), i != failure, i + 1);
	}
	settle(&counter);
	check(&counter, CODES);
	end(&counter);
}

static void test_rows_are_exact(void **state)
{
	static const uint64_t at[] = {0, 1, 7, 19, 20, 39, 100};

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		for (size_t j = 0; j < ARRAY_SIZE(at); j++)
			mix(at[i], at[j]);
}

static void test_one_status_costs_no_row(void **state)
{
	struct counter counter;

	begin(&counter);
	for (uint64_t i = 0; i < 10; i++)
		take(&counter, 1, true, i);
	assert_int_equal(counter.table.list->count, 0);
	settle(&counter);
	check(&counter, CODES);
	assert_int_equal(listed.count, 1);
	end(&counter);
}

static void test_protocols_without_status_have_none(void **state)
{
	static const struct engine_result plain = {
		.error = RUN_NO_ERROR, .start_ns = 10, .end_ns = 20, .bytes_in = 9};
	struct counter counter;

	begin(&counter);
	count(&counter, &plain);
	settle(&counter);
	assert_int_equal(listed.count, 0);
	end(&counter);
	/* Then another step's, without the earlier counts. */
	begin(&counter);
	count(&counter, &plain);
	take(&counter, 3, true, 8);
	count(&counter, &plain);
	settle(&counter);
	check(&counter, CODES);
	end(&counter);
}

static void test_rest_is_one_row(void **state)
{
	struct counter counter;
	uint64_t sum = 0;

	begin(&counter);
	for (unsigned int i = 0; i < 3 * CODES; i++)
		take(&counter, i % CODES, true, i + 1);
	settle(&counter);
	assert_int_equal(listed.count, STATUSES_MAX + 1);
	assert_string_equal(listed.list[STATUSES_MAX].name, "other");
	assert_int_equal(listed.list[STATUSES_MAX].requests, 3 * (CODES - STATUSES_MAX));
	for (size_t i = 0; i < listed.count; i++)
		sum += listed.list[i].requests;
	assert_int_equal(sum, 3 * CODES);
	status_rows_clear(counter.table.list);
	run_row_list_clear(&listed);
	assert_int_equal(status_table_fill(&counter.table, &listed), 0);
	assert_int_equal(listed.count, 0);
	end(&counter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_exact),
		cmocka_unit_test(test_one_status_costs_no_row),
		cmocka_unit_test(test_protocols_without_status_have_none),
		cmocka_unit_test(test_rest_is_one_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
