// SPDX-License-Identifier: MIT
/* Intervals lose nothing when they are joined, or when those of several workers are added. */
#include "driver/test.h"

#include <stdlib.h>

#include "stats/series.h"

#define BEGIN  1000000U
#define LENGTH 100U

static void put(struct series *series, uint64_t at_ns, uint64_t round_trip_ns)
{
	const struct engine_result result = {.error = RUN_NO_ERROR,
					     .status = 200,
					     .start_ns = at_ns - round_trip_ns,
					     .end_ns = at_ns,
					     .bytes_in = 7};
	struct stats *stats = calloc(1, sizeof(*stats));

	assert_non_null(stats);
	stats_record(stats, &result);
	assert_int_equal(series_put(series, at_ns, stats), 0);
	free(stats);
}

static struct run_driver *fill(struct series *series, uint64_t end_ns)
{
	struct run_driver *driver = calloc(1, sizeof(*driver));

	assert_non_null(driver);
	assert_int_equal(series_fill(series, end_ns, driver), 0);
	return driver;
}

static void drop(struct run_driver *driver, struct series *series)
{
	free(driver->intervals);
	free(driver);
	series_clear(series);
}

static void test_begin_and_end(void **state)
{
	struct series series;
	struct run_driver *driver;

	series_begin(&series, BEGIN, LENGTH, false);
	put(&series, BEGIN, 10);
	put(&series, BEGIN + LENGTH - 1, 20);
	put(&series, BEGIN + LENGTH, 30);
	put(&series, BEGIN + 3 * LENGTH, 40);
	assert_int_equal(series_end_of(&series, BEGIN), BEGIN + LENGTH);
	assert_int_equal(series_end_of(&series, BEGIN + LENGTH), BEGIN + 2 * LENGTH);
	driver = fill(&series, BEGIN + 4 * LENGTH + 25);
	assert_int_equal(driver->interval_count, 5);
	assert_int_equal(driver->intervals[0].requests, 2);
	assert_int_equal(driver->intervals[0].bytes_in, 14);
	assert_int_equal(driver->intervals[0].latency.sum, 30);
	assert_int_equal(driver->intervals[0].latency.max, 20);
	assert_int_equal(driver->intervals[1].requests, 1);
	assert_int_equal(driver->intervals[2].requests, 0);
	assert_int_equal(driver->intervals[3].begin_ns, 3 * LENGTH);
	assert_int_equal(driver->intervals[3].requests, 1);
	assert_int_equal(driver->intervals[4].requests, 0);
	assert_int_equal(driver->intervals[4].duration_ns, 25);
	drop(driver, &series);
}

static void check_whole(const struct run_driver *driver, uint64_t requests, uint64_t sum)
{
	uint64_t buckets = 0;

	for (size_t i = 0; i < driver->interval_count; i++) {
		const struct histogram *latency = &driver->intervals[i].latency;

		requests -= driver->intervals[i].requests;
		sum -= latency->sum;
		buckets = 0;
		for (unsigned int j = 0; j < BUCKET_COUNT; j++)
			buckets += latency->buckets[j];
		assert_int_equal(buckets, driver->intervals[i].requests);
	}
	assert_int_equal(requests, 0);
	assert_int_equal(sum, 0);
}

static void test_joined(void **state)
{
	struct series series;
	struct run_driver *driver;
	uint64_t sum = 0;

	series_begin(&series, BEGIN, LENGTH, false);
	for (uint64_t i = 0; i < 2 * RUN_INTERVALS_MAX + 1; i++) {
		put(&series, BEGIN + i * LENGTH, i + 1);
		sum += i + 1;
	}
	driver = fill(&series, BEGIN + (2 * RUN_INTERVALS_MAX + 1) * LENGTH);
	assert_int_equal(driver->interval_ns, 4 * LENGTH);
	assert_int_equal(driver->interval_count, RUN_INTERVALS_MAX / 2 + 1);
	assert_int_equal(driver->intervals[0].requests, 4);
	assert_int_equal(driver->intervals[RUN_INTERVALS_MAX / 2].requests, 1);
	assert_int_equal(driver->intervals[RUN_INTERVALS_MAX / 2].duration_ns, LENGTH);
	check_whole(driver, 2 * RUN_INTERVALS_MAX + 1, sum);
	drop(driver, &series);
}

/* One worker's intervals have been joined, the other's have not. */
static void test_added(void **state)
{
	struct series sum = {0}, longer, shorter;
	struct run_driver *driver;

	series_begin(&longer, BEGIN, LENGTH, false);
	series_begin(&shorter, BEGIN, LENGTH, false);
	put(&shorter, BEGIN + 1, 5);
	put(&shorter, BEGIN + LENGTH, 6);
	put(&longer, BEGIN + RUN_INTERVALS_MAX * LENGTH, 7);
	assert_int_equal(longer.interval_ns, 2 * LENGTH);
	assert_int_equal(series_add(&sum, &shorter), 0);
	assert_int_equal(series_add(&sum, &longer), 0);
	assert_int_equal(series_add(&sum, &shorter), 0);
	driver = fill(&sum, BEGIN + RUN_INTERVALS_MAX * LENGTH + 1);
	assert_int_equal(driver->interval_ns, 2 * LENGTH);
	assert_int_equal(driver->intervals[0].requests, 4);
	assert_int_equal(driver->intervals[0].latency.sum, 22);
	check_whole(driver, 5, 29);
	drop(driver, &sum);
	series_clear(&longer);
	series_clear(&shorter);
}

/* A phase was over before any thread started it: it has a length, and no interval. */
static void test_never_begun(void **state)
{
	struct series idle = {0}, sum = {0};
	struct run_driver *driver;

	assert_int_equal(series_add(&sum, &idle), 0);
	driver = fill(&sum, BEGIN);
	assert_int_equal(driver->interval_count, 0);
	drop(driver, &sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_added),
		cmocka_unit_test(test_never_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
