// SPDX-License-Identifier: MIT
/*
 * Wall-clock times as people and programs write them, and start signals that come or are refused.
 */
#include "driver/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "run/start.h"

static void test_times(void **state)
{
	static const struct {
		const char *text;
		uint64_t seconds, ns;
	} times[] = {
		{"0", 0, 0},
		{"1767225600", 1767225600, 0},
		{"1767225600.25", 1767225600, 250000000},
		{"1767225600.1234567891", 1767225600, 123456789},
		{"2026-01-01T00:00:00Z", 1767225600, 0},
		{"2026-01-01T00:00Z", 1767225600, 0},
		{"2026-01-01 00:00:00.5Z", 1767225600, 500000000},
		{"2026-01-01T01:30:00+01:30", 1767225600, 0},
		{"2025-12-31T19:00:00-0500", 1767225600, 0},
		{"2024-02-29T00:00:00Z", 1709164800, 0},
		{"2026-01-01T03:00:00", 1767225600, 0}, /* the zone set below */
	};

	setenv("TZ", "UTC-3", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		uint64_t ns = 1;

		assert_int_equal(start_parse_time(times[i].text, &ns), 0);
		assert_int_equal(ns, times[i].seconds * NSEC_PER_SEC + times[i].ns);
	}
}

static void test_no_times(void **state)
{
	static const char *const texts[] = {
		"",
		"soon",
		"-5",
		"12x",
		"1.",
		"2026-13-01",
		"2026-02-31T00:00:00Z",
		"2026-01-01T25:00:00Z",
		"1e9",
		"2026-01-01",
		"2026-01-01T00:00:00X",
		"2026-01-01T00:00:00+1",
		"99999999999",
		"2026-01-01T00:00:00+99:00",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		uint64_t ns;

		assert_int_equal(start_parse_time(texts[i], &ns), -EINVAL);
	}
}

static bool never(void *user)
{
	(void)user;
	return false;
}

static bool after_three(void *user)
{
	return ++*(int *)user >= 3;
}

static void test_flags(void **state)
{
	char path[] = "/tmp/sojourn-start-XXXXXX";
	int file = mkstemp(path), ends[2], looks = 0;
	const struct patience patient = {.is_over = never};
	const struct patience impatient = {.is_over = after_three, .user = &looks};
	struct start_spec spec = {.flag = path};
	autofree char *error = NULL;
	char name[16];

	assert_true(file >= 0);
	assert_int_equal(start_await_flag(&spec, patient, &error), 0);
	unlink(path);
	close(file);
	assert_int_equal(start_await_flag(&spec, impatient, &error), -ECANCELED);
	assert_int_equal(looks, 3);

	assert_int_equal(pipe(ends), 0);
	snprintf(name, sizeof(name), "fd:%d", ends[0]);
	spec.flag = name;
	looks = 0;
	assert_int_equal(start_check_flag(name, &error), 0);
	assert_int_equal(start_await_flag(&spec, impatient, &error), -ECANCELED);
	close(ends[1]); /* the end of the stream is a signal, too */
	assert_int_equal(start_await_flag(&spec, patient, &error), 0);
	close(ends[0]);
	assert_int_equal(start_check_flag(name, &error), -EINVAL);
	assert_non_null(strstr(error, "is not open"));
}

static void test_await_time(void **state)
{
	const struct patience patient = {.is_over = never};
	struct start_spec spec = {.at_ns = clock_wall_ns() + 30 * NSEC_PER_MSEC};
	uint64_t before_ns = clock_now_ns(), at_ns = 0;
	autofree char *error = NULL;

	assert_int_equal(start_await_time(&spec, 0, patient, &at_ns, &error), 0);
	assert_true(clock_wall_ns() >= spec.at_ns);
	assert_true(at_ns >= before_ns + 29 * NSEC_PER_MSEC);
	spec.at_ns = clock_wall_ns() - NSEC_PER_SEC;
	assert_int_equal(start_await_time(&spec, 0, patient, &at_ns, &error), -EINVAL);
	assert_non_null(strstr(error, "passed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_no_times),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_await_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
