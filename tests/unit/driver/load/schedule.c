// SPDX-License-Identifier: MIT
/* Rate and distribution of arrivals, over one sharer and over several. */
#include "driver/test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "load/schedule.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define BEGIN 1000000007ULL
#define COUNT 200000

static const struct schedule_spec constant = {.arrival = SCHEDULE_CONSTANT, .rate = 7000};
static const struct schedule_spec poisson = {
	.arrival = SCHEDULE_POISSON, .rate = 50000, .seed = 42};

static void test_constant(void **state)
{
	struct schedule schedule;

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

	schedule_begin(&schedule, &constant, 0, 1, BEGIN);
	assert_int_equal(schedule_skip(&schedule, BEGIN), 0);
	assert_int_equal(schedule_skip(&schedule, BEGIN + NSEC_PER_SEC), 7000);
	assert_int_equal(schedule_skip(&schedule, BEGIN + NSEC_PER_SEC), 0);
	assert_int_equal(schedule.next_ns, BEGIN + NSEC_PER_SEC);
}

#define DRIVERS 3
#define THREADS 2

/* One driver of three is lost: from request @from on the others send all, and each request once. */
static void check_deal(const struct schedule_spec *spec, uint64_t before, uint64_t from,
		       bool shaped)
{
	static const uint32_t left[] = {0, 2};
	static struct schedule_deals deals[DRIVERS];
	unsigned int sent[4000] = {0};

	memset(deals, 0, sizeof(deals));
	for (uint32_t i = 0; i < DRIVERS * THREADS; i++) {
		uint32_t driver = i % DRIVERS, thread = i / DRIVERS;
		struct schedule_spec own = *spec;
		struct schedule schedule;

		own.deals = &deals[driver];
		own.thread = thread;
		own.threads = THREADS;
		schedule_begin(&schedule, &own, i, DRIVERS * THREADS, BEGIN);
		while (schedule.number < (double)before)
			schedule_advance(&schedule); /* sent before it is known */
		for (uint32_t j = 0; j < 2 && !atomic_load(&deals[driver].count); j++)
			if (left[j] == driver) {
				deals[driver].list[0] = (struct schedule_deal){from, j, 2};
				atomic_store(&deals[driver].count, 1);
			}
		schedule_follow(&schedule);
		while (schedule.number < 4000 && (driver != 1 || schedule.number < (double)from)) {
			uint64_t due_ns =
				(uint64_t)(shaped ? shape_due_ns(&spec->shape, schedule.number)
						  : schedule.number / 7000 * 1e9);

			assert_true(schedule.next_ns - BEGIN - due_ns + 1 <= 2);
			sent[(unsigned int)schedule.number]++;
			schedule_advance(&schedule);
		}
	}
	for (unsigned int i = (unsigned int)before; i < 4000; i++)
		if (sent[i] != 1)
			fail_msg("request %u, with a deal from %u on: sent %u times", i,
				 (unsigned int)from, sent[i]);
}

static void test_deal(void **state)
{
	static const uint64_t places[][2] = {{0, 0},   {0, 1},	   {5, 7},     {6, 12},
					     {99, 99}, {100, 777}, {100, 3998}};
	struct schedule_spec shaped = constant;
	autofree char *error = NULL;

	assert_int_equal(shape_parse(&shape_rate, "1k..9k", &shaped.shape, &error), 0);
	assert_int_equal(shape_settle(&shaped.shape, NSEC_PER_SEC, &error), 0);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		check_deal(&constant, places[i][0], places[i][1], false);
		check_deal(&shaped, places[i][0], places[i][1], true);
	}
	assert_int_equal(schedule_number(&constant, NSEC_PER_SEC), 7000);
	assert_int_equal(schedule_number(&shaped, NSEC_PER_SEC), 5000);
}

/* After the deal the others' arrivals are a Poisson process of the whole rate. */
static void test_deal_poisson(void **state)
{
	static struct schedule_deals deals[2];
	struct schedule parts[2];
	uint64_t last = BEGIN + NSEC_PER_SEC / 50;

	for (uint32_t i = 0; i < 2; i++) {
		struct schedule_spec spec = poisson;

		spec.deals = &deals[i];
		spec.threads = 1;
		schedule_begin(&parts[i], &spec, i, 5, BEGIN);
		deals[i].list[0] =
			(struct schedule_deal){schedule_number(&poisson, NSEC_PER_SEC / 50), i, 2};
		atomic_store(&deals[i].count, 1);
		schedule_follow(&parts[i]);
		(void)schedule_skip(&parts[i], last);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		struct schedule *first = &parts[parts[1].next_ns < parts[0].next_ns];

		gaps[i] = (double)(first->next_ns - last);
		last = first->next_ns;
		schedule_advance(first);
	}
	check_exponential(gaps, 20000);
}

/* A sharer that hears of it late sends nothing for the time before. */
static void test_late_deal(void **state)
{
	static struct schedule_deals deals;
	struct schedule_spec spec = constant;
	struct schedule schedule;

	spec.deals = &deals;
	spec.threads = 1;
	schedule_begin(&schedule, &spec, 0, 3, BEGIN);
	assert_int_equal(schedule_skip(&schedule, BEGIN + NSEC_PER_SEC), 2334);
	deals.list[0] = (struct schedule_deal){100, 0, 1};
	atomic_store(&deals.count, 1);
	schedule_follow(&schedule);
	assert_true(schedule.number == 7000);
}

static void test_closed(void **state)
{
	struct schedule_spec spec = {.arrival = SCHEDULE_CLOSED, .think_ns = 5000};
	struct schedule schedule;
	uint64_t random = 1;

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
		cmocka_unit_test(test_constant),       cmocka_unit_test(test_constant_shared),
		cmocka_unit_test(test_deal),	       cmocka_unit_test(test_deal_poisson),
		cmocka_unit_test(test_late_deal),      cmocka_unit_test(test_poisson),
		cmocka_unit_test(test_poisson_shared), cmocka_unit_test(test_skip),
		cmocka_unit_test(test_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
