// SPDX-License-Identifier: MIT
/* Assertions: what is understood, and that each can hold and fail. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assertion.h"
#include "sojourn/cleanup.h"

static bool holds(const char *text, const struct run_driver *driver)
{
	autofree char *error = NULL;
	struct assertion assertion;
	char actual[64];

	if (assertion_parse(text, &assertion, &error))
		fail_msg("%s", error);
	return assertion_holds(&assertion, driver, actual);
}

static void test_values(void **state)
{
	static struct run_driver driver = {.duration_ns = 2000000000, .requests = 1000};

	(void)state;
	for (int i = 1; i <= 999; i++)
		histogram_record(&driver.round_trip, 1000000);
	histogram_record(&driver.round_trip, 50000000);
	driver.errors[RUN_ERROR_STATUS] = 10;
	assert_true(holds("p99<2ms", &driver));
	assert_false(holds("p99<1ms", &driver));
	assert_true(holds("max>49ms", &driver));
	assert_false(holds("max<0.05", &driver));
	assert_true(holds("max<=50ms", &driver));
	assert_true(holds("mean<1.1ms", &driver));
	assert_true(holds("errors<=1%", &driver));
	assert_false(holds("errors<1%", &driver));
	assert_true(holds("errors<11", &driver));
	assert_true(holds("rate>=500", &driver));
	assert_false(holds("rate>500", &driver));
	assert_true(holds("requests>=1k", &driver));
	driver.rate = 500; /* now latency is the response time, of which there is none */
	driver.requests = 0;
	assert_false(holds("p99<2ms", &driver));
}

static void test_refusals(void **state)
{
	static const char *const words[] = {"",	      "p99",	   "p98<1ms",  "p99=1ms", "p99<",
					    "p99<1%", "errors<x%", "rate<5ms", "<5ms"};

	(void)state;
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
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
