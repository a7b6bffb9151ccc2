// SPDX-License-Identifier: MIT
/* Curves with a known knee: exact, scattered, rounded, falling, and those without one. */
#include "driver/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sweep/fit.h"

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

/* 4 CPUs of 2.5 ms each: at most 1,600/s, from 24 clients on if the network takes 12.5 ms. */
static double sharp(double load)
{
	return fmin(load / 0.015, 1600);
}

/* The same, but throughput falls by a tenth with each doubling beyond. */
static double falling(double load)
{
	return load <= 24 ? load / 0.015 : 1600 * pow(load / 24, log2(0.9));
}

/* The same, but by 5 %. */
static double sinking(double load)
{
	return load <= 24 ? load / 0.015 : 1600 * pow(load / 24, log2(0.95));
}

/* Each doubling adds a fifth: there is no knee, and no end. */
static double slow(double load)
{
	return 100 * pow(load, log2(1.2));
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
		{sinking, 0, 24, 1600, 0.005}, {sinking, 0.03, 24, 1600, 0.08},
		{rounded, 0, 24, 1600, 0.06},  {rounded, 0.03, 24, 1600, 0.10},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fit_point points[POINTS];
		struct fit fit;

		make(cases[i].curve, cases[i].scatter, points);
		assert_int_equal(fit_plateau(points, POINTS, &fit), FIT_FOUND);
		assert_near(fit.knee, cases[i].knee, cases[i].within);
		assert_near(fit.plateau, cases[i].plateau, cases[i].within);
		assert_true(fit.misfit < 0.05);
	}
}

static void test_decline(void **state)
{
	struct fit_point points[POINTS];
	struct fit fit;

	make(sinking, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), FIT_FOUND);
	assert_near(fit.decline, -log2(0.95), 0.02);
	make(sharp, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), FIT_FOUND);
	assert_true(fit.decline < 0.001);
}

/* The verdict, and the user's sentence for it. */
static void assert_none(const struct fit_point *points, size_t count, enum fit_verdict verdict,
			const char *sentence)
{
	autofree char *text = NULL;
	struct fit fit = {0};

	assert_int_equal(fit_plateau(points, count, &fit), verdict);
	text = fit_explain(verdict, &fit, points, count, "connections");
	assert_non_null(text);
	if (strncmp(text, sentence, strlen(sentence)))
		fail_msg("'%s' instead of '%s'", text, sentence);
}

static void test_no_knee(void **state)
{
	struct fit_point points[POINTS];

	make(endless, 0, points);
	assert_none(points, POINTS, FIT_GREW,
		    "throughput still grew at the last step, by 100 %: go further with --ladder");
	make(endless, 0.03, points);
	assert_none(points, POINTS, FIT_GREW, "throughput still grew at the last step, by 10");
	make(slow, 0, points);
	assert_none(points, POINTS, FIT_GREW, "throughput still grew at the last step, by 20 %");
	make(sharp, 0, points);
	assert_none(points, 3, FIT_TOO_FEW, "fewer than 4 steps had good responses");
}

/* One of the two steps required beyond the knee is missing. */
static void test_one_beyond(void **state)
{
	struct fit_point points[POINTS];

	make(sharp, 0, points);
	assert_none(points, 6, FIT_GREW, "throughput still grew at the last step, by 50 %");
	points[5].throughput = points[4].throughput; /* no more growth */
	assert_none(points, 6, FIT_NO_END, "fewer than 2 steps lie beyond the knee");
}

/* Loads within a few per cent of each other show nothing. */
static void test_too_close(void **state)
{
	struct fit_point points[4];

	for (size_t i = 0; i < 4; i++)
		points[i] = (struct fit_point){100 + (double)i, 1000 - (double)(i % 2), 1e6};
	assert_none(points, 4, FIT_TOO_CLOSE,
		    "the loads are too close together, from 100 to 103 connections");
}

/* Throughput that falls below 70 % of a smaller load's is no plateau, however well a line fits. */
static void test_collapse(void **state)
{
	struct fit_point points[POINTS];
	struct fit fit;

	make(falling, 0, points);
	assert_none(points, POINTS, FIT_COLLAPSED,
		    "throughput fell by more than 30 %: 1,532/s at 32 connections, 1,005/s at 512");
	make(sharp, 0, points);
	points[10].throughput = 1600 * 0.71;
	points[9].throughput = 1600 * 0.71;
	assert_int_equal(fit_plateau(points, POINTS, &fit), FIT_FOUND);
	points[10].throughput = 1600 * 0.69;
	assert_int_equal(fit_plateau(points, POINTS, &fit), FIT_COLLAPSED);
}

/* Steps that scatter on either side of the line by more than a plateau allows. */
static void test_off(void **state)
{
	struct fit_point points[POINTS];

	make(sharp, 0, points);
	for (size_t i = 0; i < POINTS; i++)
		points[i].throughput *= i % 2 ? 1.17 : 0.84;
	assert_none(points, POINTS, FIT_OFF, "the steps are 1");
}

/* The first load is already too much. */
static void test_level_from_the_start(void **state)
{
	struct fit_point points[POINTS];
	struct fit fit;

	make(level, 0, points);
	assert_int_equal(fit_plateau(points, POINTS, &fit), FIT_FOUND);
	assert_near(fit.knee, 1, 0.001);
	assert_near(fit.plateau, 500, 0.001);
}

/* Measure outliers again until there is none; each is right the second time. */
static void assert_outliers(const struct fit_point truth[POINTS], struct fit_point points[POINTS],
			    const char *expected)
{
	bool settled[POINTS] = {false};
	char found[POINTS * 4] = "";
	size_t i;

	while ((i = fit_find_outlier(points, settled, POINTS)) < POINTS) {
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%zu ", i);
		settled[i] = true;
		points[i] = truth[i];
	}
	assert_string_equal(found, expected);
}

static void test_outliers(void **state)
{
	double (*const curves[])(double) = {sharp, rounded, sinking, endless, level, slow};
	struct fit_point truth[POINTS], points[POINTS];

	for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
		make(curves[i], 0.03, points);
		assert_outliers(points, points, "");
	}
	make(sharp, 0, truth);
	for (size_t i = 0; i < POINTS; i++) {
		char expected[24];

		memcpy(points, truth, sizeof(points));
		points[i].throughput *= 0.7;
		snprintf(expected, sizeof(expected), "%zu ", i);
		assert_outliers(truth, points, expected);
	}
	/* Two neighbours: the second reveals the first. */
	memcpy(points, truth, sizeof(points));
	points[2].throughput /= 2;
	points[3].throughput /= 4;
	assert_outliers(truth, points, "3 2 ");
	/* More throughput than possible: the step itself is the outlier, not its neighbours. */
	memcpy(points, truth, sizeof(points));
	points[8].throughput *= 1.5;
	assert_outliers(truth, points, "8 ");
}

static void test_queues(void **state)
{
	struct fit_point points[POINTS];

	make(sharp, 0, points);
	for (size_t count = 0; count <= 7; count++) /* up to 64: 32 is still better than 16 */
		assert_false(fit_only_queues(points, count));
	assert_true(fit_only_queues(points, 8)); /* 64 and 128 are no better than 32 */
	make(falling, 0, points);
	assert_true(fit_only_queues(points, 8));
	make(endless, 0.02, points);
	assert_false(fit_only_queues(points, POINTS));
	/* No more throughput, but no queue either: a disturbed step. */
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
	static const uint64_t few[] = {3, 1, 2, 4, 0, 3, 2, 1}; /* like Poisson counts */
	static const uint64_t none[8] = {0};

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
		cmocka_unit_test(test_knees),	 cmocka_unit_test(test_decline),
		cmocka_unit_test(test_no_knee),	 cmocka_unit_test(test_level_from_the_start),
		cmocka_unit_test(test_queues),	 cmocka_unit_test(test_steady),
		cmocka_unit_test(test_collapse), cmocka_unit_test(test_one_beyond),
		cmocka_unit_test(test_off),	 cmocka_unit_test(test_too_close),
		cmocka_unit_test(test_outliers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
