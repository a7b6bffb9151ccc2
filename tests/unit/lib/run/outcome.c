// SPDX-License-Identifier: MIT
/* Requests that count once, that count as failed, and that are in no histogram. */
#include "unit.h"

#include "sojourn/outcome.h"

static void test_bad_responses_count_once(void **state)
{
	struct run_driver driver = {.requests = 100};
	struct run_outcome outcome;

	driver.errors[RUN_ERROR_STATUS] = 20;
	driver.errors[RUN_ERROR_UNEXPECTED] = 30;
	outcome = run_driver_outcome(&driver);
	assert_int_equal(outcome.tried, 100);
	assert_int_equal(outcome.good, 50);
	assert_int_equal(outcome.failed, 50);
	assert_int_equal(outcome.unanswered, 0);
	assert_float_equal(run_outcome_failed_share(&outcome), 0.5, 1e-12);
	assert_int_equal(run_driver_missing(&driver), 0);
}

static void test_unanswered(void **state)
{
	struct run_driver driver = {.requests = 60, .scheduled = 107, .unsent = 7};
	struct run_outcome outcome;

	driver.errors[RUN_ERROR_TIMEOUT] = 30;
	driver.errors[RUN_ERROR_REFUSED] = 10;
	driver.errors[RUN_ERROR_STATUS] = 6;
	outcome = run_driver_outcome(&driver);
	assert_int_equal(outcome.tried, 100);
	assert_int_equal(outcome.good, 54);
	assert_int_equal(outcome.failed, 46);
	assert_int_equal(outcome.unanswered, 40);
	assert_int_equal(run_driver_missing(&driver), 47);
}

/*
 * Every kind is a missing request, except those of complete responses and of connection attempts.
 */
static void test_every_kind(void **state)
{
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++) {
		bool answered = i == RUN_ERROR_STATUS || i == RUN_ERROR_UNEXPECTED;
		bool attempt = i == RUN_ERROR_ADDRESS_UNAVAILABLE || i == RUN_ERROR_TOO_MANY_FILES;
		struct run_row row = {.requests = 10};
		struct run_outcome outcome;

		row.errors[i] = 4;
		outcome = run_row_outcome(&row);
		assert_int_equal(outcome.tried, answered || attempt ? 10 : 14);
		assert_int_equal(outcome.good, answered ? 6 : 10);
		assert_int_equal(outcome.failed, attempt ? 0 : 4);
		assert_int_equal(outcome.unanswered, answered || attempt ? 0 : 4);
	}
}

static void test_hostile(void **state)
{
	struct run_driver driver = {.requests = 3};
	struct run_outcome outcome;

	driver.errors[RUN_ERROR_STATUS] = 5;
	outcome = run_driver_outcome(&driver);
	assert_int_equal(outcome.good, 0);
	assert_int_equal(outcome.failed, 3);
	driver = (struct run_driver){0};
	outcome = run_driver_outcome(&driver);
	assert_float_equal(run_outcome_failed_share(&outcome), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_responses_count_once),
		cmocka_unit_test(test_unanswered),
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
