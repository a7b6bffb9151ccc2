// SPDX-License-Identifier: MIT
/* Curves whose knee is known: exact, scattered, rounded, falling, and those that have none. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "fit.h"

#define POINTS 11

/* Loads 1, 2, 4 … 1024. */
static void make(double (*curve)(double load), double scatter, struct fit_point points[POINTS])
{
	for (size_t i = 0; i < POINTS; i++) {
		double load = (double)(1U << i);
		double wobble = 1 + scatter * sin(3.7 * (double)i + 1);

		points[i] = (struct fit_point){.load = load,
					       .throughput = curve(load) * wobble,
					       .latency_ns = load / curve(load) * 1e9};
	}
}

static void assert_near(double value, double wanted, double share)
{
	if (fabs(value - wanted) > share * wanted)
		fail_msg("%g is not %g ± %g %%", value, wanted, share * 100);
}

/* 4 CPUs of 2.5 ms each: 1,600/s at best, from 24 clients on if the way there takes 12.5 ms. */
static double sharp(double load)
{
	return fmin(load / 0.015, 1600);
}

/* The same, but throughput falls by a tenth with each doubling beyond. */
static double falling(double load)
{
	return load <= 24 ? load / 0.015 : 1600 * pow(load / 24, log2(0.9));
}

/* Queueing rounds the knee off; the asymptotes meet at 24. */
static double rounded(double load)
{
	return 1600 * load / 24 / pow(1 + pow(load / 24, 3), 1.0 / 3);
}

static double endless(double load)
{
	return 10 * load;
}

static double level(double load)
{
	(void)load;
	return 500;
}

static void test_knees(void **state)
{
	static const struct {
		double (*curve)(double);
		double scatter, knee, plateau, within;
	} cases[] = {
		{sharp, 0, 24, 1600, 0.005},   {sharp, 0.03, 24, 1600, 0.05},
		{falling, 0, 24, 1600, 0.005}, {falling, 0.03, 24, 1600, 0.08},
		{rounded, 0, 24, 1600, 0.06},  {rounded, 0.03, 24, 1600, 0.10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fit_point points[POINTS];
		struct fit fit;

		make(cases[i].curve, cases[i].scatter, points);
		assert_int_equal(fit_plateau(points, POINTS, &fit), 0);
		assert_near(fit.knee, cases[i].knee, cases[i].within);
		assert_near(fit.plateau, cases[i].plateau, cases[i].within);
		assert_true(fit.misfit < 0.05);
	}
}

static void test_decline(void **state)
{
	struct fit_point points[POINTS];
	struct fit fit;

	(void)state;
	make(falling, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), 0);
	assert_near(fit.decline, -log2(0.9), 0.02);
	make(sharp, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), 0);
	assert_true(fit.decline < 0.001);
}

static void test_no_knee(void **state)
{
	struct fit_point points[POINTS];
	struct fit fit;

	(void)state;
	make(endless, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), -ERANGE);
	make(endless, 0.03, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), -ERANGE);
	make(sharp, 0, points);
	assert_int_equal(fit_plateau(points, 6, &fit), -ERANGE); /* only 32 is beyond */
	assert_int_equal(fit_plateau(points, 3, &fit), -ENODATA);
	points[4].throughput = 0;
	assert_int_equal(fit_plateau(points, POINTS, &fit), -ENODATA);
}

/* The first load is already too much. */
static void test_level_from_the_start(void **state)
{
	struct fit_point points[POINTS];
	struct fit fit;

	(void)state;
	make(level, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), 0);
	assert_near(fit.knee, 1, 0.001);
	assert_near(fit.plateau, 500, 0.001);
}

static void test_queues(void **state)
{
	struct fit_point points[POINTS];

	(void)state;
	make(sharp, 0, points);
	for (size_t count = 0; count <= 7; count++) /* up to 64: 32 is still better than 16 */
		assert_false(fit_only_queues(points, count));
	assert_true(fit_only_queues(points, 8)); /* 64 and 128 are no better than 32 */
	make(falling, 0, points);
	assert_true(fit_only_queues(points, 8));
	make(endless, 0.02, points);
	assert_false(fit_only_queues(points, POINTS));
	/* No more throughput, but no queue either: it was a bad moment. */
	make(sharp, 0, points);
	points[7].latency_ns = points[6].latency_ns;
	assert_false(fit_only_queues(points, 8));
}

static void test_steady(void **state)
{
	static const uint64_t even[] = {100, 101, 99, 100, 102, 98, 100, 100};
	static const uint64_t rising[] = {100, 110, 120, 130, 140, 150, 160, 170};
	static const uint64_t late[] = {0, 0, 100, 100, 100, 100, 100, 100};
	static const uint64_t stalled[] = {1000, 1000, 0, 1000, 1000, 1000, 0, 1000};
	static const uint64_t few[] = {3, 1, 2, 4, 0, 3, 2, 1}; /* as Poisson's are */
	static const uint64_t none[8] = {0};

	(void)state;
	assert_true(fit_is_steady(even, 8));
	assert_false(fit_is_steady(even, 5));
	assert_false(fit_is_steady(rising, 8));
	assert_false(fit_is_steady(late, 8));
	assert_false(fit_is_steady(stalled, 8));
	assert_true(fit_is_steady(few, 8));
	assert_false(fit_is_steady(none, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_knees),	cmocka_unit_test(test_decline),
		cmocka_unit_test(test_no_knee), cmocka_unit_test(test_level_from_the_start),
		cmocka_unit_test(test_queues),	cmocka_unit_test(test_steady),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
