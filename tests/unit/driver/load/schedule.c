// SPDX-License-Identifier: MIT
/* Rate and distribution of arrivals, over one sharer and over several. */
#include "driver/test.h"

#include <math.h>

#include "load/schedule.h"
#include "sojourn/clock.h"

#define BEGIN 1000000007ULL
#define COUNT 200000

static const struct schedule_spec constant = {.arrival = SCHEDULE_CONSTANT, .rate = 7000};
static const struct schedule_spec poisson = {
	.arrival = SCHEDULE_POISSON, .rate = 50000, .seed = 42};

static void test_constant(void **state)
{
	struct schedule schedule;

	(void)state;
	schedule_begin(&schedule, &constant, 0, 1, BEGIN);
	assert_int_equal(schedule.next_ns, BEGIN);
	for (uint64_t i = 0; i < COUNT; i++) {
		/* No drift: the millionth is as exact as the first. */
		assert_int_equal(schedule.next_ns, BEGIN + i * NSEC_PER_SEC / 7000);
		schedule_advance(&schedule);
	}
}

/* Three sharers interleave to the schedule of one. */
static void test_constant_shared(void **state)
{
	struct schedule parts[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		schedule_begin(&parts[i], &constant, i, 3, BEGIN);
	for (uint64_t i = 0; i < 3000; i++) {
		assert_int_equal(parts[i % 3].next_ns, BEGIN + i * NSEC_PER_SEC / 7000);
		schedule_advance(&parts[i % 3]);
	}
}

/* For an exponential distribution: mean = standard deviation, and 1 - 1/e are below the mean. */
static void check_exponential(const double *values, double mean)
{
	double sum = 0, squares = 0;
	unsigned int below = 0;

	for (unsigned int i = 0; i < COUNT; i++) {
		sum += values[i];
		squares += values[i] * values[i];
		below += values[i] < mean;
	}
	sum /= COUNT;
	assert_true(fabs(sum / mean - 1) < 0.01);
	assert_true(fabs(sqrt(squares / COUNT - sum * sum) / mean - 1) < 0.02);
	assert_true(fabs((double)below / COUNT - (1 - exp(-1))) < 0.005);
}

static double gaps[COUNT];

static void test_poisson(void **state)
{
	struct schedule schedule;
	uint64_t last = BEGIN;

	(void)state;
	schedule_begin(&schedule, &poisson, 0, 1, BEGIN);
	for (unsigned int i = 0; i < COUNT; i++) {
		assert_true(schedule.next_ns >= last);
		gaps[i] = (double)(schedule.next_ns - last);
		last = schedule.next_ns;
		schedule_advance(&schedule);
	}
	check_exponential(gaps, 20000);
}

/* Merged, the arrivals of four sharers are a Poisson process of the whole rate. */
static void test_poisson_shared(void **state)
{
	struct schedule parts[4];
	uint64_t last = BEGIN;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		schedule_begin(&parts[i], &poisson, i, 4, BEGIN);
	for (unsigned int i = 0; i < COUNT; i++) {
		struct schedule *first = &parts[0];

		for (unsigned int j = 1; j < 4; j++)
			if (parts[j].next_ns < first->next_ns)
				first = &parts[j];
		gaps[i] = (double)(first->next_ns - last);
		last = first->next_ns;
		schedule_advance(first);
	}
	check_exponential(gaps, 20000);
}

static void test_skip(void **state)
{
	struct schedule schedule;

	(void)state;
	schedule_begin(&schedule, &constant, 0, 1, BEGIN);
	assert_int_equal(schedule_skip(&schedule, BEGIN), 0);
	assert_int_equal(schedule_skip(&schedule, BEGIN + NSEC_PER_SEC), 7000);
	assert_int_equal(schedule_skip(&schedule, BEGIN + NSEC_PER_SEC), 0);
	assert_int_equal(schedule.next_ns, BEGIN + NSEC_PER_SEC);
}

static void test_closed(void **state)
{
	struct schedule_spec spec = {.arrival = SCHEDULE_CLOSED, .think_ns = 5000};
	struct schedule schedule;
	uint64_t random = 1;

	(void)state;
	schedule_begin(&schedule, &spec, 0, 1, BEGIN);
	assert_true(schedule.next_ns == SCHEDULE_NEVER);
	assert_int_equal(schedule_skip(&schedule, SCHEDULE_NEVER), 0);
	assert_int_equal(schedule_think_ns(&spec, &random), 5000);
	spec.think = SCHEDULE_THINK_EXPONENTIAL;
	for (unsigned int i = 0; i < COUNT; i++)
		gaps[i] = (double)schedule_think_ns(&spec, &random);
	check_exponential(gaps, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constant), cmocka_unit_test(test_constant_shared),
		cmocka_unit_test(test_poisson),	 cmocka_unit_test(test_poisson_shared),
		cmocka_unit_test(test_skip),	 cmocka_unit_test(test_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
