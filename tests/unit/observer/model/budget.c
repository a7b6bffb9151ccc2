// SPDX-License-Identifier: MIT
/* The share of the past is given once: to the history and to the series together. */
#include "unit.h"

#include "model/budget.h"
#include "model/history.h"

static void test_given_once(void **state)
{
	static const uint64_t sizes[] = {0, 1, 1000001, 32UL << 20, 64UL << 20, 1UL << 30};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct budget_past past = budget_past(sizes[i], true, HISTORY_BYTES);

		assert_int_equal(past.history_bytes + past.series_bytes, sizes[i]);
		assert_in_range(past.history_bytes, 0, HISTORY_BYTES);
		assert_in_range(past.series_bytes, past.history_bytes, sizes[i]);
	}
}

static void test_without_a_history(void **state)
{
	struct budget_past past = budget_past(1 << 20, false, HISTORY_BYTES);

	assert_int_equal(past.history_bytes, 0);
	assert_int_equal(past.series_bytes, 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_once),
		cmocka_unit_test(test_without_a_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
