// SPDX-License-Identifier: MIT
/* Portions add up to the budget, and the last ones are small. */
#include "driver/test.h"

#include "load/budget.h"

static void test_exact(void **state)
{
	for (uint64_t total = 1; total < 100000; total = total * 3 + 1) {
		struct budget budget = {.left = total, .sharers = 4};
		uint64_t sum = 0, portion, last = 0;

		while ((portion = budget_take(&budget))) {
			assert_true(portion <= BUDGET_PORTION_MAX);
			sum += portion;
			last = portion;
		}
		assert_int_equal(sum, total);
		assert_int_equal(last, 1);
	}
}

static void test_unlimited(void **state)
{
	struct budget budget = {.left = BUDGET_UNLIMITED, .sharers = 1};

	assert_int_equal(budget_take(&budget), BUDGET_UNLIMITED);
	assert_int_equal(budget_take(&budget), BUDGET_UNLIMITED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_unlimited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
