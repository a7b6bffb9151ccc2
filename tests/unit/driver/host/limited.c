// SPDX-License-Identifier: MIT
/* Which results the driver limited, and how much a run must contain for a verdict. */
#include "driver/test.h"

#include <string.h>

#include "host/limited.h"
#include "sojourn/clock.h"

static void drop(struct run_driver *driver)
{
	free(driver->limited->by);
	free(driver->limited->why);
	free(driver->limited);
	driver->limited = NULL;
}

static void check(struct run_driver *driver, uint64_t span_ns, const char *by)
{
	assert_int_equal(limited_fill(driver, span_ns), 0);
	if (!by && driver->limited)
		fail_msg("'%s': %s", driver->limited->by, driver->limited->why);
	if (by)
		assert_non_null(driver->limited);
	if (by)
		assert_string_equal(driver->limited->by, by);
	if (driver->limited)
		drop(driver);
}

static int one_thread(void **state)
{
	struct run_driver *driver = calloc(1, sizeof(*driver));

	assert_non_null(driver);
	driver->threads = 1;
	*state = driver;
	return 0;
}

static int forget(void **state)
{
	free(*state);
	return 0;
}

static void test_cpu(void **state)
{
	struct run_driver *driver = *state;

	driver->cpu_user_ns = 200 * NSEC_PER_MSEC;
	check(driver, 200 * NSEC_PER_MSEC, "cpu");
	check(driver, 250 * NSEC_PER_MSEC, NULL);
	driver->cpu_wait_ns = (struct run_number){true, 50 * NSEC_PER_MSEC};
	check(driver, 250 * NSEC_PER_MSEC, "cpu"); /* other processes had the missing time */
}

/* 101 % of the time would be none. */
static void test_more_than_all_of_the_time(void **state)
{
	struct run_driver *driver = *state;

	driver->cpu_user_ns = 101 * NSEC_PER_MSEC;
	driver->cpu_wait_ns = (struct run_number){true, 101 * NSEC_PER_MSEC};
	for (driver->threads = 1; driver->threads <= 2; driver->threads++) {
		assert_int_equal(limited_fill(driver, 100 * NSEC_PER_MSEC), 0);
		assert_non_null(strstr(driver->limited->why, " 100 % of "));
		assert_null(strstr(driver->limited->why, "101 %"));
		drop(driver);
	}
}

/* Three requests of 126 us in all: the start takes as long. */
static void test_too_short(void **state)
{
	struct run_driver *driver = *state;

	driver->cpu_user_ns = 126 * NSEC_PER_USEC;
	driver->cpu_wait_ns = (struct run_number){true, 50 * NSEC_PER_USEC};
	check(driver, 126 * NSEC_PER_USEC, NULL);
	check(driver, 0, NULL);
}

/* One late request is 1 % of a hundred, and more than 1 % of fewer. */
static void test_schedule(void **state)
{
	struct run_driver *driver = *state;

	for (unsigned int i = 0; i < 97; i++)
		histogram_record(&driver->schedule_delay, 1000);
	histogram_record(&driver->schedule_delay, 5 * NSEC_PER_MSEC);
	check(driver, NSEC_PER_SEC, NULL);
	for (unsigned int i = 0; i < 2; i++)
		histogram_record(&driver->schedule_delay, 5 * NSEC_PER_MSEC);
	check(driver, NSEC_PER_SEC, "schedule");
	for (unsigned int i = 0; i < 300; i++)
		histogram_record(&driver->schedule_delay, 1000);
	check(driver, NSEC_PER_SEC, NULL);
}

/* A server that answers in 100 ms: the driver's 5 ms are not what limits it, its 20 ms may be. */
static void test_small_delay(void **state)
{
	struct run_driver *driver = *state;

	for (unsigned int i = 0; i < 100; i++) {
		histogram_record(&driver->schedule_delay, i < 90 ? 1000 : 5 * NSEC_PER_MSEC);
		histogram_record(&driver->response_time, 100 * NSEC_PER_MSEC);
	}
	check(driver, NSEC_PER_SEC, NULL);
	for (unsigned int i = 0; i < 10; i++)
		histogram_record(&driver->schedule_delay, 20 * NSEC_PER_MSEC);
	check(driver, NSEC_PER_SEC, "schedule");
}

/* One answer in fifty comes from a server that stalls. The driver's 5 ms are most of the mean of all the others. */
static void test_delay_of_the_mean(void **state)
{
	struct run_driver *driver = *state;

	for (unsigned int i = 0; i < 100; i++) {
		histogram_record(&driver->schedule_delay, 5 * NSEC_PER_MSEC);
		histogram_record(&driver->response_time, (i < 98 ? 6 : 100) * NSEC_PER_MSEC);
	}
	check(driver, NSEC_PER_SEC, "schedule");
}

/* A hung server: the answered requests were quick, the others are in no percentile. */
static void test_timeouts(void **state)
{
	struct run_driver *driver = *state;

	for (unsigned int i = 0; i < 100; i++)
		histogram_record(&driver->schedule_delay, 5 * NSEC_PER_MSEC);
	driver->requests = 99;
	driver->errors[RUN_ERROR_TIMEOUT] = 1;
	check(driver, NSEC_PER_SEC, "schedule");
	driver->errors[RUN_ERROR_TIMEOUT] = 2;
	check(driver, NSEC_PER_SEC, NULL);
	driver->cpu_user_ns = NSEC_PER_SEC;
	check(driver, NSEC_PER_SEC, "cpu");
}

static void test_want(void **state)
{
	struct run_driver *driver = *state;

	driver->errors[RUN_ERROR_TOO_MANY_FILES] = 1;
	check(driver, 0, "files");
	driver->errors[RUN_ERROR_ADDRESS_UNAVAILABLE] = 1;
	check(driver, 0, "ports");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, one_thread, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cpu),		TEST(test_more_than_all_of_the_time),
		TEST(test_too_short),	TEST(test_schedule),
		TEST(test_small_delay), TEST(test_delay_of_the_mean),
		TEST(test_timeouts),	TEST(test_want),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
