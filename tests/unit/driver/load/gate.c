// SPDX-License-Identifier: MIT
/* The limit of connections per second: even intervals, a little catching up, no saving. */
#include "driver/test.h"

#include "load/gate.h"

#define START (100 * NSEC_PER_SEC)

/* Count how many pass within @length_ns from @begin_ns, asked every @step_ns. */
static unsigned int count(struct gate *gate, uint64_t begin_ns, uint64_t length_ns,
			  uint64_t step_ns)
{
	unsigned int passed = 0;

	for (uint64_t now_ns = begin_ns; now_ns < begin_ns + length_ns; now_ns += step_ns)
		while (!gate_pass(gate, now_ns))
			passed++;
	return passed;
}

static void test_no_limit(void **state)
{
	struct gate gate = {0};

	for (int i = 0; i < 1000; i++)
		assert_int_equal(gate_pass(&gate, START), 0);
}

static void test_rate(void **state)
{
	struct gate gate = {.rate = 50};

	assert_int_equal(gate_pass(&gate, START), 0);
	assert_int_equal(gate_pass(&gate, START), START + 20 * NSEC_PER_MSEC);
	assert_int_equal(gate_pass(&gate, START + 20 * NSEC_PER_MSEC - 1),
			 START + 20 * NSEC_PER_MSEC);
	assert_int_equal(gate_pass(&gate, START + 20 * NSEC_PER_MSEC), 0);
}

static void test_late_timers_do_not_lower_it(void **state)
{
	struct gate gate = {.rate = 5000};

	assert_in_range(count(&gate, START, NSEC_PER_SEC, 3 * NSEC_PER_MSEC), 4980, 5001);
}

static void test_pauses_are_not_saved_up(void **state)
{
	struct gate gate = {.rate = 1000};

	assert_int_equal(gate_pass(&gate, START), 0);
	assert_in_range(count(&gate, 2 * START, 100 * NSEC_PER_MSEC, NSEC_PER_MSEC), 100, 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_late_timers_do_not_lower_it),
		cmocka_unit_test(test_pauses_are_not_saved_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
