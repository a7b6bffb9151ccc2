// SPDX-License-Identifier: MIT
/* The past for pages: complete, in order, limited in length and size, without a lost count. */
#include "unit.h"

#include <string.h>

#include "model/history.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"

#define SECOND NSEC_PER_SEC

/*
 * Make a reading @second seconds after the start: each service has @each exchanges a second since
 * its own @from.
 */
static struct run *reading(uint64_t second, size_t services, uint64_t each)
{
	struct run *run = run_new("test", NULL);

	assert_non_null(run);
	run->duration_ns = 5 * SECOND + second * SECOND;
	assert_int_equal(run_make_services(run, services), 0);
	for (size_t i = 0; i < services; i++) {
		struct run_service *service = &run->services[i];
		struct run_stage *stage;

		memcpy(service->protocol, "tcp", sizeof("tcp"));
		service->port = (uint16_t)(1000 + i);
		service->exchanges = second * each;
		service->connections = (struct run_number){.known = true, .value = second};
		stage = &service->stages[STAGE_SERVICE];
		stage->measured = true;
		for (uint64_t n = 0; n < service->exchanges; n++)
			histogram_record(&stage->histogram, 1000 * (n / each + 1));
	}
	return run;
}

/* Sum the counts of all points, which follow each other without a gap. */
static uint64_t exchanges_of(const struct run_series *series)
{
	uint64_t exchanges = 0, end_ns = 0;

	for (size_t i = 0; i < series->count; i++) {
		assert_int_equal(series->points[i].begin_ns, end_ns);
		end_ns += series->points[i].duration_ns;
		exchanges += series->points[i].exchanges;
	}
	return exchanges;
}

static uint64_t age_of_first(const struct run_series *series, uint64_t now_ns)
{
	return series->count > 1 ? now_ns - series->points[1].begin_ns : 0;
}

static struct snapshot_past wish(uint32_t last_s, uint32_t step_s)
{
	return (struct snapshot_past){.last_s = last_s, .step_s = step_s};
}

/* Add the seconds @from to @to: a fine point for each, a coarse one for each ten. */
static void go_on(struct history *history, uint64_t from, uint64_t to, size_t services,
		  uint64_t each)
{
	autorun struct run *base = reading(0, services, each);

	for (uint64_t second = from; second < to; second++) {
		autorun struct run *last = reading(second, services, each);
		autorun struct run *now = reading(second + 1, services, each);
		autorun struct run *slot = reading(second - second % 10, services, each);

		history_point(history, HISTORY_FINE, base, last, now);
		if (second % 10 == 9)
			history_point(history, HISTORY_COARSE, base, slot, now);
	}
}

static void a_point_for_each_second_and_one_before(void **state)
{
	CLEANUP(cleanup_history_free) struct history *history = NULL;
	autorun struct run *base = reading(0, 1, 2), *last = reading(30, 1, 2);
	autorun struct run *now = reading(31, 1, 2);
	const struct run_series *series;
	struct snapshot_past past = wish(10, 1);

	assert_int_equal(history_new(HISTORY_BYTES, &history), 0);
	go_on(history, 0, 30, 1, 2);
	assert_int_equal(history_kind_of(&past), HISTORY_FINE);
	assert_int_equal(history_read(history, &past, base, last, now), 0);
	series = now->services[0].series;
	assert_int_equal(series->count, 11);
	assert_int_equal(exchanges_of(series), 62);
	assert_int_equal(age_of_first(series, 31 * SECOND), 10 * SECOND);
	for (size_t i = 1; i < series->count; i++) {
		const struct run_point *point = &series->points[i];

		assert_int_equal(point->duration_ns, SECOND);
		assert_int_equal(point->exchanges, 2);
		assert_int_equal(point->connections, 21 + i);
		assert_true(point->known & RUN_POINT_QUANTILE(STAGE_SERVICE));
		/* Both exchanges of second n took n µs. */
		assert_in_range(point->stages[STAGE_SERVICE].p99_ns, 1000 * (20 + i),
				1000 * (21 + i) + 1000);
	}
}

/* Ten seconds have their own percentiles; longer steps have none, as percentiles do not add. */
static void steps_of_ten_seconds_and_longer(void **state)
{
	CLEANUP(cleanup_history_free) struct history *history = NULL;
	autorun struct run *base = reading(0, 1, 1), *last = reading(100, 1, 1);
	static const struct {
		uint32_t step_s;
		size_t count;
		bool percentiles;
	} cases[] = {{10, 11, true}, {20, 6, false}, {50, 3, false}};

	assert_int_equal(history_new(HISTORY_BYTES, &history), 0);
	go_on(history, 0, 104, 1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *now = reading(104, 1, 1);
		struct snapshot_past past = wish(86400, cases[i].step_s);
		const struct run_point *first;

		assert_int_equal(history_kind_of(&past), HISTORY_COARSE);
		assert_int_equal(history_read(history, &past, base, last, now), 0);
		assert_int_equal(now->services[0].series->count, cases[i].count);
		assert_int_equal(exchanges_of(now->services[0].series), 104);
		first = &now->services[0].series->points[0];
		assert_int_equal(first->exchanges, cases[i].step_s);
		assert_int_equal(!!(first->known & RUN_POINT_QUANTILE(STAGE_SERVICE)),
				 cases[i].percentiles);
	}
}

/* An idle service takes one point for any time; then points continue. */
static void quiet_time_is_one_point(void **state)
{
	CLEANUP(cleanup_history_free) struct history *history = NULL;
	autorun struct run *base = reading(0, 1, 0), *last = NULL;
	autorun struct run *now = reading(0, 1, 0);
	struct snapshot_past past = wish(600, 1);
	const struct run_series *series;

	assert_int_equal(history_new(64, &history), 0);
	for (uint64_t second = 0; second < 500; second++) {
		autorun struct run *before = reading(0, 1, 0), *after = reading(0, 1, 0);

		before->duration_ns += second * SECOND;
		after->duration_ns += (second + 1) * SECOND;
		history_point(history, HISTORY_FINE, base, before, after);
	}
	last = reading(0, 1, 0);
	last->duration_ns += 500 * SECOND;
	now->duration_ns += 501 * SECOND;
	now->services[0].exchanges = 7;
	assert_int_equal(history_read(history, &past, base, last, now), 0);
	series = now->services[0].series;
	assert_int_equal(series->count, 2);
	assert_int_equal(series->points[0].duration_ns, 500 * SECOND);
	assert_int_equal(series->points[1].exchanges, 7);
}

/* Ten minutes by the second; with less memory the oldest merge first, and counts stay complete. */
static void what_is_old_or_too_much_is_one_point(void **state)
{
	static const size_t bytes[] = {HISTORY_BYTES, 16384, 0};

	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++) {
		CLEANUP(cleanup_history_free) struct history *history = NULL;
		autorun struct run *base = reading(0, 2, 1), *last = reading(700, 2, 1);
		autorun struct run *now = reading(701, 2, 1);
		struct snapshot_past past = wish(600, 1);
		size_t count;

		assert_int_equal(history_new(bytes[i], &history), 0);
		go_on(history, 0, 700, 2, 1);
		assert_int_equal(history_read(history, &past, base, last, now), 0);
		count = now->services[0].series->count;
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(exchanges_of(now->services[j].series), 701);
		if (bytes[i] == HISTORY_BYTES)
			assert_int_equal(count, 601);
		else if (bytes[i])
			assert_in_range(count, 50, 590);
		else
			assert_in_range(count, 1, 3);
	}
}

/* A service whose port alone is requested; one that goes, and returns with counts from zero. */
static void services_come_and_go(void **state)
{
	CLEANUP(cleanup_history_free) struct history *history = NULL;
	autorun struct run *base = reading(0, 2, 1), *last = reading(20, 2, 1);
	autorun struct run *now = reading(21, 2, 1), *one = reading(21, 1, 1);
	autorun struct run *again = reading(22, 2, 1), *end = reading(23, 2, 1);
	struct snapshot_past past = {.last_s = 600, .step_s = 1, .port = 1001};

	assert_int_equal(history_new(HISTORY_BYTES, &history), 0);
	go_on(history, 0, 20, 2, 1);
	assert_int_equal(history_read(history, &past, base, last, now), 0);
	assert_null(now->services[0].series);
	assert_int_equal(exchanges_of(now->services[1].series), 21);
	history_point(history, HISTORY_FINE, base, last, one);
	again->services[1].exchanges = 3;
	history_point(history, HISTORY_FINE, base, one, again);
	end->services[1].exchanges = 4;
	assert_int_equal(history_read(history, &past, base, again, end), 0);
	assert_int_equal(end->services[1].series->count, 2);
	assert_int_equal(end->services[1].series->points[0].exchanges, 3);
	assert_int_equal(end->services[1].series->points[1].exchanges, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_for_each_second_and_one_before),
		cmocka_unit_test(steps_of_ten_seconds_and_longer),
		cmocka_unit_test(quiet_time_is_one_point),
		cmocka_unit_test(what_is_old_or_too_much_is_one_point),
		cmocka_unit_test(services_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
