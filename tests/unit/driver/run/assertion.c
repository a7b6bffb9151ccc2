// SPDX-License-Identifier: MIT
/* Assertions: valid ones, and that each can hold and fail. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run/assertion.h"
#include "sojourn/cleanup.h"

static bool run_holds(const char *text, const struct run *run)
{
	autofree char *error = NULL;
	struct assertion assertion;
	char actual[ASSERTION_TEXT];

	if (assertion_parse(text, &assertion, &error))
		fail_msg("%s", error);
	return assertion_holds(&assertion, run, actual);
}

static bool holds(const char *text, struct run_driver *driver)
{
	return run_holds(text, &(struct run){.driver = driver});
}

static void test_values(void **state)
{
	static struct run_driver driver = {.duration_ns = 2000000000, .requests = 1000};

	for (int i = 1; i <= 999; i++)
		histogram_record(&driver.round_trip, 1000000);
	histogram_record(&driver.round_trip, 50000000);
	driver.errors[RUN_ERROR_STATUS] = 10;
	assert_true(holds("p99<2ms", &driver));
	assert_false(holds("p99<1ms", &driver));
	assert_true(holds("max>49ms", &driver));
	assert_false(holds("max<0.05", &driver));
	assert_true(holds("max<=50ms", &driver));
	assert_true(holds("max <= 50 ms", &driver));
	assert_true(holds("mean<1.1ms", &driver));
	assert_true(holds("errors<=1%", &driver));
	assert_false(holds("errors<1%", &driver));
	assert_true(holds("errors<11", &driver));
	assert_true(holds("rate>=500", &driver));
	assert_false(holds("rate>500", &driver));
	assert_true(holds("requests>=1k", &driver));
	driver.rate = 500; /* now latency is the response time, which there is not */
	driver.requests = 0;
	assert_false(holds("p99<2ms", &driver));
}

/* All 1,000 were answered, 400 of them not as expected. */
static void test_unexpected_counts_once(void **state)
{
	static struct run_driver driver = {.requests = 1000};

	driver.errors[RUN_ERROR_UNEXPECTED] = 300;
	driver.errors[RUN_ERROR_STATUS] = 100;
	assert_true(holds("errors<=40%", &driver));
	assert_false(holds("errors<40%", &driver));
	driver.errors[RUN_ERROR_TIMEOUT] = 1000;
	assert_true(holds("errors<=70%", &driver));
	assert_false(holds("errors<70%", &driver));
	driver.errors[RUN_ERROR_TOO_MANY_FILES] = 5000; /* attempts, not requests */
	assert_true(holds("errors<=70%", &driver));
	assert_false(holds("errors<6400", &driver));
	assert_true(holds("errors<=6400", &driver));
}

/* A percentile is known as long as the missing requests lie beyond it, exactly to the request. */
static void test_missing(void **state)
{
	static struct run_driver driver = {.requests = 990, .rate = 100};

	for (int i = 0; i < 990; i++)
		histogram_record(&driver.response_time, 1000000);
	driver.unsent = 4;
	driver.errors[RUN_ERROR_TIMEOUT] = 6;
	assert_true(holds("p99<5ms", &driver));
	assert_true(holds("p99>0.5ms", &driver));
	assert_true(holds("mean<5ms", &driver));
	assert_false(holds("p99.9<5ms", &driver));
	assert_false(holds("max<5ms", &driver));
	assert_false(holds("max>0.5ms", &driver)); /* unknown */
	driver.unsent++;
	assert_false(holds("p99<5ms", &driver));
	assert_true(holds("p95<5ms", &driver));
	assert_true(holds("unsent<=5", &driver));
	assert_false(holds("unsent<5", &driver));
	assert_true(holds("unsent<0.6%", &driver));
	assert_false(holds("unsent<0.4%", &driver));
	driver.unsent = 0;
	driver.errors[RUN_ERROR_TIMEOUT] = 0;
	driver.errors[RUN_ERROR_STATUS] = 990; /* answered, if badly */
	assert_true(holds("max<5ms", &driver));
	assert_true(holds("p99.999<5ms", &driver));
}

static void test_timeouts(void **state)
{
	static struct run_driver driver = {.requests = 98};
	autofree char *error = NULL;
	struct assertion assertion;

	driver.errors[RUN_ERROR_TIMEOUT] = 2;
	driver.errors[RUN_ERROR_STATUS] = 50;
	assert_true(holds("timeouts<=2", &driver));
	assert_false(holds("timeouts<2", &driver));
	assert_true(holds("timeouts<=2%", &driver));
	assert_false(holds("timeouts<1.9%", &driver));
	assert_int_equal(assertion_parse("timeouts<3", &assertion, &error), 0);
	assert_true(assertion_is_about(&assertion, RUN_ERROR_TIMEOUT));
	assert_false(assertion_is_about(&assertion, RUN_ERROR_STATUS));
	assert_false(assertion_needs_observer(&assertion));
}

/* Of 100 that reached the server 3 ended without an answer and 2 are open: one read, one not. */
static void test_unanswered(void **state)
{
	static struct run_driver driver = {.requests = 95, .target = "http://127.0.0.1:80/"};
	static struct run_service service = {.port = 80, .exchanges = 95};
	struct run run = {.driver = &driver, .services = &service, .service_count = 1};

	histogram_record(&driver.round_trip, 1000000);
	service.losses[RUN_LOSS_UNANSWERED] = 3;
	service.open.read = (struct run_number){.known = true, .value = 1};
	assert_false(run_holds("unanswered<100", &run)); /* the number of unread ones is unknown */
	service.open.unread = service.open.read;
	assert_true(run_holds("unanswered<=5", &run));
	assert_false(run_holds("unanswered<5", &run));
	assert_true(run_holds("unanswered<=5%", &run));
	assert_false(run_holds("unanswered<5%", &run));
	run.service_count = 0;
	assert_false(run_holds("unanswered<100", &run));
}

/* Two hosts serve one port: one hangs, with 7 open. Another port's service is not asked. */
static void test_unanswered_of_hosts(void **state)
{
	static struct run_driver driver = {.requests = 93, .target = "http://web:80/"};
	static char a[] = "a", b[] = "b";
	struct run_number none = {.known = true}, seven = {.known = true, .value = 7};
	struct run_service services[] = {
		{.host = a, .port = 80, .exchanges = 90, .open = {.read = none, .unread = none}},
		{.host = b, .port = 80, .exchanges = 3, .open = {.read = none, .unread = seven}},
		{.host = b, .port = 81, .losses[RUN_LOSS_UNANSWERED] = 50},
	};
	struct run run = {
		.driver = &driver, .services = services, .service_count = ARRAY_SIZE(services)};

	histogram_record(&driver.round_trip, 1000000);
	assert_true(run_holds("unanswered<=7", &run));
	assert_true(run_holds("unanswered<=7%", &run));
	assert_false(run_holds("unanswered<7%", &run));
	services[0].open.unread.known = false;
	assert_false(run_holds("unanswered<100", &run));
	services[0].open.unread.known = true;
	driver.observer_error = a; /* a third host's observer was lost */
	assert_false(run_holds("unanswered<100", &run));
}

static void test_nothing_tried(void **state)
{
	static struct run_driver driver = {.rate = 1};

	assert_false(holds("errors<1%", &driver));
	assert_true(holds("errors<1", &driver));
}

static void test_refusals(void **state)
{
	static const char *const words[] = {
		"",
		"p99",
		"p98<1ms",
		"p99=1ms",
		"p99<",
		"p99<1%",
		"errors<x%",
		"rate<5ms",
		"<5ms",
		"unsent<5ms",
		"timeouts<1s",
		"p99<0000000000000000000000000000000000000000000000000000000000001ms"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		autofree char *error = NULL;
		struct assertion assertion;

		assert_int_equal(assertion_parse(words[i], &assertion, &error), -EINVAL);
		assert_non_null(strstr(error, "--assert"));
		assert_non_null(strstr(error, "p99<5ms"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	   cmocka_unit_test(test_unexpected_counts_once),
		cmocka_unit_test(test_missing),	   cmocka_unit_test(test_nothing_tried),
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_unanswered), cmocka_unit_test(test_unanswered_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
