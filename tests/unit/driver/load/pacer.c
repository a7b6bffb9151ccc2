// SPDX-License-Identifier: MIT
/* Requests wait for slots with their intended start; slots think, and are used in turn. */
#include "driver/test.h"

#include "load/pacer.h"

static const struct schedule_spec per_microsecond = {.arrival = SCHEDULE_CONSTANT, .rate = 1000000};

static void test_slots_in_turn(void **state)
{
	struct pacer pacer;
	struct pacer_due due, next;

	assert_int_equal(pacer_open(&pacer, &per_microsecond, 0, 1, 3), 0);
	pacer_begin(&pacer, 0);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(pacer_wake_ns(&pacer), i * 1000);
		assert_false(i && pacer_take(&pacer, i * 1000 - 1, &due));
		assert_true(pacer_take(&pacer, i * 1000, &due));
		assert_int_equal(due.slot, i % 3);
		assert_int_equal(due.intended_ns, i * 1000);
		assert_int_equal(due.possible_ns, i * 1000);
		assert_false(pacer_next(&pacer, due.slot, i * 1000 + 500, &next));
	}
	pacer_close(&pacer);
}

/*
 * After a stall the requests due meanwhile keep their times, and leave in order as slots become
 * free.
 */
static void test_stall(void **state)
{
	struct pacer pacer;
	struct pacer_due due, next;

	assert_int_equal(pacer_open(&pacer, &per_microsecond, 0, 1, 1), 0);
	pacer_begin(&pacer, 0);
	assert_true(pacer_take(&pacer, 0, &due));
	assert_false(pacer_take(&pacer, 5000, &due));
	assert_true(pacer_wake_ns(&pacer) == SCHEDULE_NEVER);
	assert_true(pacer_next(&pacer, 0, 3500, &next));
	assert_int_equal(next.intended_ns, 1000);
	assert_int_equal(next.possible_ns, 3500); /* there was no other slot */
	pacer_return(&pacer, next.intended_ns);	  /* it could not be sent */
	pacer_rest(&pacer, 0, 3600);
	assert_int_equal(pacer_wake_ns(&pacer), 0);
	assert_true(pacer_take(&pacer, 3700, &due));
	assert_int_equal(due.intended_ns, 1000);
	assert_int_equal(due.possible_ns, 3600); /* the driver did not cause the earlier delay */
	assert_int_equal(pacer_unsent(&pacer, 10000), 8); /* due at 2 to 9 µs */
	pacer_close(&pacer);
}

/*
 * The driver came late to a request that an idle slot could have sent: its own delay, by any slot.
 */
static void test_late_though_free(void **state)
{
	struct pacer pacer;
	struct pacer_due due;

	assert_int_equal(pacer_open(&pacer, &per_microsecond, 0, 1, 3), 0);
	pacer_begin(&pacer, 0);
	assert_true(pacer_take(&pacer, 0, &due));
	assert_true(pacer_next(&pacer, due.slot, 1400, &due));
	assert_int_equal(due.slot, 0);
	assert_int_equal(due.intended_ns, 1000);
	assert_int_equal(due.possible_ns, 1000); /* by slot 1, idle since 0 */

	assert_true(pacer_take(&pacer, 3900, &due)); /* slots 1 and 2: none is idle now */
	assert_true(pacer_take(&pacer, 3900, &due));
	assert_false(pacer_next(&pacer, 2, 3950, &due)); /* idle since then */
	assert_true(pacer_next(&pacer, 0, 4500, &due));
	assert_int_equal(due.intended_ns, 4000);
	assert_int_equal(due.possible_ns, 4000);
	assert_true(pacer_take(&pacer, 5000, &due)); /* slot 2 */
	assert_true(pacer_next(&pacer, 1, 6250, &due));
	assert_int_equal(due.intended_ns, 6000);
	assert_int_equal(due.possible_ns, 6250);
	pacer_close(&pacer);
}

/*
 * Requests due while the worker was away are late because of that, although each slot was busy
 * afterwards.
 */
static void test_absence(void **state)
{
	struct pacer pacer;
	struct pacer_due due;

	assert_int_equal(pacer_open(&pacer, &per_microsecond, 0, 1, 1), 0);
	pacer_begin(&pacer, 0);
	assert_true(pacer_take(&pacer, 0, &due));
	pacer_absent(&pacer, 1500, 4500);
	assert_true(pacer_next(&pacer, 0, 4600, &due));
	assert_int_equal(due.intended_ns, 1000);
	assert_int_equal(due.possible_ns, 4600); /* due before the absence */
	for (uint64_t intended_ns = 2000; intended_ns <= 4000; intended_ns += 1000) {
		assert_true(pacer_next(&pacer, 0, 4700, &due));
		assert_int_equal(due.intended_ns, intended_ns);
		assert_int_equal(due.possible_ns, intended_ns);
	}
	assert_true(pacer_next(&pacer, 0, 5100, &due));
	assert_int_equal(due.intended_ns, 5000);
	assert_int_equal(due.possible_ns, 5100); /* due after the absence */
	pacer_close(&pacer);
}

static void test_think(void **state)
{
	static const struct schedule_spec spec = {.think_ns = 100};
	static const uint32_t order[] = {3, 1, 4, 0, 2};
	struct pacer pacer;
	struct pacer_due due, next;

	assert_int_equal(pacer_open(&pacer, &spec, 0, 1, 5), 0);
	pacer_begin(&pacer, 7);
	for (uint32_t i = 0; i < 5; i++) {
		assert_true(pacer_take(&pacer, 7, &due));
		assert_int_equal(due.intended_ns, 7);
	}
	assert_false(pacer_take(&pacer, 1000, &due));
	for (uint32_t i = 0; i < 5; i++)
		assert_false(pacer_next(&pacer, order[i], 1000 + i, &next));
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(pacer_wake_ns(&pacer), 1100 + i);
		assert_false(pacer_take(&pacer, 1099 + i, &due));
		assert_true(pacer_take(&pacer, 1100 + i, &due));
		assert_int_equal(due.slot, order[i]);
	}
	assert_int_equal(pacer_unsent(&pacer, 5000), 0);
	pacer_close(&pacer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_in_turn),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_late_though_free),
		cmocka_unit_test(test_absence),
		cmocka_unit_test(test_think),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
