// SPDX-License-Identifier: MIT
/* Series of a phase: nothing for idle services, within their memory, and without a lost count or a gap. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "model/kept/series.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"

#define SERVICES 20
#define SHARE	 (1U << 20)

/* A reading at that second: of all services but the first one, which is idle until @from, exchanges are counted. */
static struct run *reading(uint64_t second, uint64_t from, bool idle)
{
	struct run *run = run_new("test", NULL);

	assert_non_null(run);
	run->duration_ns = second * NSEC_PER_SEC;
	assert_int_equal(run_make_services(run, SERVICES), 0);
	for (size_t i = 0; i < SERVICES; i++) {
		struct run_service *service = &run->services[i];

		memcpy(service->protocol, "tcp", sizeof("tcp"));
		service->port = (uint16_t)(1000 + i);
		service->connections = (struct run_number){.known = true, .value = 3};
		if (!idle)
			service->exchanges = i ? 5 * second : second > from ? second - from : 0;
	}
	return run;
}

static void go_on(struct model_series *series, uint64_t end, uint64_t from, bool idle)
{
	autorun struct run *base = reading(0, from, idle);

	for (uint64_t second = 0; second < end; second++) {
		autorun struct run *last = reading(second, from, idle);
		autorun struct run *now = reading(second + 1, from, idle);

		assert_int_equal(model_series_point(series, base, last, now), 0);
	}
}

static struct run *read_at(struct model_series *series, uint64_t end, uint64_t from, bool idle)
{
	autorun struct run *base = reading(0, from, idle), *last = reading(end, from, idle);
	struct run *now = reading(end + 1, from, idle);

	assert_int_equal(model_series_read(series, base, last, now), 0);
	return now;
}

static void assert_whole(const struct run_service *service, uint64_t seconds)
{
	const struct run_series *series = service->series;
	uint64_t end_ns = 0, exchanges = 0;

	for (size_t i = 0; i < series->count; i++) {
		assert_int_equal(series->points[i].begin_ns, end_ns);
		end_ns += series->points[i].duration_ns;
		exchanges += series->points[i].exchanges;
	}
	assert_int_equal(end_ns, seconds * NSEC_PER_SEC);
	assert_int_equal(exchanges, service->exchanges);
}

static void test_idle_services_take_none(void **state)
{
	autorun struct run *run = NULL;
	struct model_series *series;

	assert_int_equal(model_series_new(SHARE, true, &series), 0);
	go_on(series, 30, 0, true);
	assert_int_equal(model_series_bytes(series), 0);
	run = read_at(series, 30, 0, true);
	for (size_t i = 0; i < SERVICES; i++) {
		assert_whole(&run->services[i], 31);
		assert_int_equal(run->services[i].series->count, 2);
		assert_int_equal(run->services[i].series->points[0].connections, 3);
	}
	model_series_free(series);
}

/* The counts of a service's first busy second are not spread over the time in which it was idle. */
static void test_a_late_service_was_quiet(void **state)
{
	autorun struct run *run = NULL;
	struct model_series *series;

	assert_int_equal(model_series_new(SHARE, true, &series), 0);
	go_on(series, 25, 20, false);
	run = read_at(series, 25, 20, false);
	assert_whole(&run->services[0], 26);
	assert_int_equal(run->services[0].series->points[0].exchanges, 0);
	assert_int_equal(run->services[0].series->points[0].duration_ns, 20 * NSEC_PER_SEC);
	assert_int_equal(run->services[0].series->points[1].exchanges, 1);
	assert_int_equal(run->services[0].series->points[1].duration_ns, NSEC_PER_SEC);
	model_series_free(series);
}

/* As more phases begin, each one's series take less. */
static void test_less_memory_fewer_points(void **state)
{
	static const uint64_t bytes[] = {SHARE, SHARE / 2, 0};
	size_t before = SIZE_MAX;
	struct model_series *series;

	assert_int_equal(model_series_new(SHARE, true, &series), 0);
	go_on(series, 100, 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++) {
		autorun struct run *base = reading(0, 0, false), *last = reading(100 + i, 0, false);
		autorun struct run *now = reading(101 + i, 0, false), *run = NULL;
		size_t taken;

		model_series_limit(series, bytes[i]);
		assert_int_equal(model_series_point(series, base, last, now), 0);
		taken = model_series_bytes(series);
		assert_true(taken < before);
		assert_true(taken <= bytes[i] || !bytes[i]);
		before = taken;
		run = read_at(series, 101 + i, 0, false);
		for (size_t j = 0; j < SERVICES; j++)
			assert_whole(&run->services[j], 102 + i);
	}
	assert_in_range(before, 1, SERVICES * 2 * sizeof(struct run_point));
	model_series_free(series);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_services_take_none),
		cmocka_unit_test(test_a_late_service_was_quiet),
		cmocka_unit_test(test_less_memory_fewer_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
