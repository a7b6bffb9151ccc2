// SPDX-License-Identifier: MIT
/* Rates that change with time: when requests are due, against the known integral. */
#include "driver/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/schedule.h"
#include "load/shape.h"
#include "load/share.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

static struct shape shape_of(const char *text, uint64_t duration_s)
{
	autofree char *error = NULL;
	struct shape shape;

	assert_int_equal(shape_parse(&shape_rate, text, &shape, &error), 0);
	assert_int_equal(shape_settle(&shape, duration_s * NSEC_PER_SEC, &error), 0);
	return shape;
}

static void assert_seconds(double ns, double seconds)
{
	if (fabs(ns / 1e9 - seconds) > 1e-6)
		fail_msg("%.9f s is not %.9f s", ns / 1e9, seconds);
}

static void test_ramp(void **state)
{
	struct shape shape = shape_of("0..1000", 10);

	/* 50 t² are due until t. */
	assert_seconds(shape_due_ns(&shape, 0), 0);
	assert_seconds(shape_due_ns(&shape, 50), 1);
	assert_seconds(shape_due_ns(&shape, 1250), 5);
	assert_seconds(shape_due_ns(&shape, 5000), 10);
	assert_seconds(shape_due_ns(&shape, 6000), 11); /* continues at 1,000/s */
	assert_true(fabs(shape_count(&shape, 5e9) - 1250) < 1e-6);
	assert_true(fabs(shape_count(&shape, 11e9) - 6000) < 1e-6);
}

static void test_falling(void **state)
{
	struct shape shape = shape_of("1000..0", 10);

	assert_seconds(shape_due_ns(&shape, 3750), 5);
	assert_true(shape_due_ns(&shape, 4999.9) < 10e9);
	assert_true(isinf(shape_due_ns(&shape, 5000)));
}

static void test_steps(void **state)
{
	struct shape shape = shape_of("100,200,400", 30);

	assert_seconds(shape_due_ns(&shape, 999), 9.99);
	assert_seconds(shape_due_ns(&shape, 1000), 10);
	assert_seconds(shape_due_ns(&shape, 1200), 11);
	assert_seconds(shape_due_ns(&shape, 3000), 20);
	assert_seconds(shape_due_ns(&shape, 7400), 31);
}

/* Nothing is due in a pause: the request after it is the first one of the next segment. */
static void test_segments(void **state)
{
	struct shape shape = shape_of("0..500:10s,0:5s,500:1s,500..0", 20);

	assert_seconds(shape_due_ns(&shape, 2499.999999), 10);
	assert_seconds(shape_due_ns(&shape, 2500), 15);
	assert_seconds(shape_due_ns(&shape, 3000), 16);
	assert_int_equal(shape.segments[3].duration_ns, 4 * NSEC_PER_SEC);
	assert_true(fabs(shape_count(&shape, 20e9) - 4000) < 1e-6);
}

/* For any shape, the number of requests due by a request's time is its number. */
static void test_inverse(void **state)
{
	static const char *const shapes[] = {"10..1000", "1000..10", "5,7..300,1", "999..1000",
					     "1:1s,0:2s,100..1:3s,50"};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct shape shape = shape_of(shapes[i], 12);
		double last = -1;

		for (unsigned int whole = 0; whole < 3000; whole++) {
			double n = whole + 0.5, at = shape_due_ns(&shape, n);

			assert_true(at >= last);
			assert_true(fabs(shape_count(&shape, at) - n) < 1e-3);
			last = at;
		}
	}
}

/* Three sharers of a ramp together send as one would; random arrivals as many on average. */
static void test_schedule(void **state)
{
	struct schedule_spec spec = {.arrival = SCHEDULE_CONSTANT, .rate = 500, .seed = 7};
	struct schedule parts[3];
	double count = 0;

	spec.shape = shape_of("0..1000", 10);
	for (uint32_t i = 0; i < 3; i++)
		schedule_begin(&parts[i], &spec, i, 3, 1000);
	for (uint64_t i = 0; i < 3000; i++) {
		assert_int_equal(parts[i % 3].next_ns,
				 1000 + (uint64_t)shape_due_ns(&spec.shape, (double)i));
		schedule_advance(&parts[i % 3]);
	}
	spec.arrival = SCHEDULE_POISSON;
	for (uint32_t i = 0; i < 3; i++) {
		schedule_begin(&parts[i], &spec, i, 3, 0);
		count += (double)schedule_skip(&parts[i], 10 * NSEC_PER_SEC);
	}
	assert_true(fabs(count - 5000) < 5 * sqrt(5000));
}

static void test_ends(void **state)
{
	struct schedule_spec spec = {.arrival = SCHEDULE_CONSTANT, .rate = 500};
	struct schedule schedule;

	spec.shape = shape_of("1000..0", 10);
	schedule_begin(&schedule, &spec, 0, 1, 0);
	assert_int_equal(schedule_skip(&schedule, 100 * NSEC_PER_SEC), 5000);
	assert_true(schedule.next_ns == SCHEDULE_NEVER);
}

static void test_refusals(void **state)
{
	static const char *const texts[] = {"",	      "0",    "x",    "1..",   "..5",
					    "1,,2",   "5:",   "5:0s", "5:10x", "1:1s,2,3",
					    "1,2:1s", "0..0", "2G",   "-5",    "1...5"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		autofree char *error = NULL;
		struct shape shape;

		assert_int_equal(shape_parse(&shape_rate, texts[i], &shape, &error), -EINVAL);
		assert_non_null(strstr(error, "is not a rate"));
	}
}

static void test_lengths(void **state)
{
	autofree char *none = NULL, *longer = NULL;
	struct shape shape;

	assert_int_equal(shape_parse(&shape_rate, "1..5", &shape, &none), 0);
	assert_int_equal(shape_settle(&shape, 0, &none), -EINVAL);
	assert_non_null(strstr(none, "Give --duration"));
	assert_int_equal(shape_parse(&shape_rate, "1..5:10s,7", &shape, &longer), 0);
	assert_int_equal(shape_settle(&shape, 10 * NSEC_PER_SEC, &longer), -EINVAL);
	assert_non_null(strstr(longer, "as long as"));
}

/* The number of connections over time, and that the workers' shares add up to it. */
static struct shape connections_of(const char *text, uint64_t duration_s)
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
	uint32_t count = shape_connections_at(shape, seconds * 1e9, &until_ns);

	assert_true(until_ns > seconds * 1e9);
	return count;
}

static void test_each_number_is_there_for_equally_long(void **state)
{
	static const struct {
		const char *text;
		uint32_t first, last;
	} cases[] = {{"1..64", 1, 64}, {"64..1", 64, 1}, {"0..9", 0, 9}, {"5..5", 5, 5}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct shape shape = connections_of(cases[i].text, 64);
		uint32_t levels = (uint32_t)abs((int)cases[i].last - (int)cases[i].first) + 1;
		int sign = cases[i].last < cases[i].first ? -1 : 1;
		double now_ns = 0, until_ns;

		for (uint32_t level = 0; level < levels; level++) {
			assert_int_equal(shape_connections_at(&shape, now_ns, &until_ns),
					 (int)cases[i].first + sign * (int)level);
			if (level + 1 < levels)
				assert_true(fabs(until_ns - now_ns - 64e9 / levels) < 1);
			now_ns = until_ns;
		}
		assert_true(isinf(until_ns));
	}
}

static void test_segments_of_connections(void **state)
{
	struct shape shape = connections_of("2:1s,8:2s,8..1:8s", 0);

	assert_int_equal(at(&shape, 0), 2);
	assert_int_equal(at(&shape, 0.999), 2);
	assert_int_equal(at(&shape, 1), 8);
	assert_int_equal(at(&shape, 3.5), 8);
	assert_int_equal(at(&shape, 4.5), 7);
	assert_int_equal(at(&shape, 10.5), 1);
	assert_int_equal(at(&shape, 1000), 1);
	assert_int_equal((int)shape_most(&shape), 8);
}

static void test_shares_are_all(void **state)
{
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
		cmocka_unit_test(test_ramp),
		cmocka_unit_test(test_falling),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_inverse),
		cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_each_number_is_there_for_equally_long),
		cmocka_unit_test(test_segments_of_connections),
		cmocka_unit_test(test_shares_are_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
