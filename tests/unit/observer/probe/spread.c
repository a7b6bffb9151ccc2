// SPDX-License-Identifier: MIT
/*
 * Median and bounds of rounds: too few give none, and the bounds hold the truth as often as
 * promised.
 */
#include <stdlib.h>

#include "probe/spread.h"
#include "unit.h"

static void few_rounds_say_nothing(void **state)
{
	struct rounds rounds = {.count = 0};

	for (int i = 0; i < SPREAD_LEAST - 1; i++)
		rounds_add(&rounds, 7);
	assert_true(spread_of(&rounds).rounds < SPREAD_LEAST);
	rounds_add(&rounds, 7);
	assert_int_equal(spread_of(&rounds).rounds, SPREAD_LEAST);
	assert_true(spread_of(&rounds).median == 7);
}

static void one_wild_round_moves_nothing(void **state)
{
	struct rounds rounds = {.count = 0};
	struct spread spread;

	for (int i = 1; i <= 100; i++)
		rounds_add(&rounds, i == 100 ? 1e9 : 101 - i);
	spread = spread_of(&rounds);
	assert_true(spread.median >= 50 && spread.median <= 52);
	assert_true(spread.low >= 40 && spread.low < spread.median);
	assert_true(spread.high <= 62 && spread.high > spread.median);
}

static void no_more_than_there_is_room_for(void **state)
{
	struct rounds rounds = {.count = 0};

	for (int i = 0; i < SPREAD_ROUNDS + 10; i++)
		rounds_add(&rounds, i);
	assert_int_equal(spread_of(&rounds).rounds, SPREAD_ROUNDS);
}

/*
 * A distribution with a median of 1/8 and another mean: 95 %, within what 4,000 trials and whole
 * ranks allow.
 */
static void bounds_hold_as_often_as_they_say(void **state)
{
	const int trials = 4000;

	srand(1);
	for (size_t count = SPREAD_LEAST; count <= 40; count += 17) {
		int held = 0;

		for (int trial = 0; trial < trials; trial++) {
			struct rounds rounds = {.count = 0};
			struct spread spread;

			for (size_t i = 0; i < count; i++) {
				double x = rand() / (RAND_MAX + 1.0);

				rounds_add(&rounds, x * x * x);
			}
			spread = spread_of(&rounds);
			held += spread.low <= 0.125 && 0.125 <= spread.high;
		}
		assert_true(held >= trials * 0.945);
		assert_true(held <= trials * 0.99);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_rounds_say_nothing),
		cmocka_unit_test(one_wild_round_moves_nothing),
		cmocka_unit_test(no_more_than_there_is_room_for),
		cmocka_unit_test(bounds_hold_as_often_as_they_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
