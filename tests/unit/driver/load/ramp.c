// SPDX-License-Identifier: MIT
/* The number of connections over time, and that the workers' shares add up to it. */
#include "driver/test.h"

#include <math.h>
#include <stdlib.h>

#include "load/ramp.h"
#include "load/share.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

static struct shape shape_of(const char *text, uint64_t duration_s)
{
	autofree char *error = NULL;
	struct shape shape;

	assert_int_equal(shape_parse(&shape_connections, text, &shape, &error), 0);
	assert_int_equal(shape_settle(&shape, duration_s * NSEC_PER_SEC, &error), 0);
	return shape;
}

static uint32_t at(const struct shape *shape, double seconds)
{
	double until_ns;
	uint32_t count = ramp_at(shape, seconds * 1e9, &until_ns);

	assert_true(until_ns > seconds * 1e9);
	return count;
}

static void test_each_number_is_there_for_equally_long(void **state)
{
	static const struct {
		const char *text;
		uint32_t first, last;
	} cases[] = {{"1..64", 1, 64}, {"64..1", 64, 1}, {"0..9", 0, 9}, {"5..5", 5, 5}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct shape shape = shape_of(cases[i].text, 64);
		uint32_t levels = (uint32_t)abs((int)cases[i].last - (int)cases[i].first) + 1;
		int sign = cases[i].last < cases[i].first ? -1 : 1;
		double now_ns = 0, until_ns;

		for (uint32_t level = 0; level < levels; level++) {
			assert_int_equal(ramp_at(&shape, now_ns, &until_ns),
					 (int)cases[i].first + sign * (int)level);
			if (level + 1 < levels)
				assert_true(fabs(until_ns - now_ns - 64e9 / levels) < 1);
			now_ns = until_ns;
		}
		assert_true(isinf(until_ns));
	}
}

static void test_segments(void **state)
{
	struct shape shape = shape_of("2:1s,8:2s,8..1:8s", 0);

	(void)state;
	assert_int_equal(at(&shape, 0), 2);
	assert_int_equal(at(&shape, 0.999), 2);
	assert_int_equal(at(&shape, 1), 8);
	assert_int_equal(at(&shape, 3.5), 8);
	assert_int_equal(at(&shape, 4.5), 7);
	assert_int_equal(at(&shape, 10.5), 1);
	assert_int_equal(at(&shape, 1000), 1);
	assert_int_equal(ramp_most(&shape), 8);
}

static void test_shares_are_all(void **state)
{
	(void)state;
	for (uint32_t connections = 0; connections < 40; connections++)
		for (uint32_t sharers = 1; sharers < 9; sharers++) {
			uint32_t sum = 0;

			for (uint32_t i = 0; i < sharers; i++) {
				uint32_t share = share_of(connections, sharers, i);

				sum += share;
				assert_in_range(share, connections / sharers,
						connections / sharers + 1);
			}
			assert_int_equal(sum, connections);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_number_is_there_for_equally_long),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_shares_are_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
