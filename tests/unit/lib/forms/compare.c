// SPDX-License-Identifier: MIT
/* lib/forms/compare.c: the rank-sum test, and which figures of runs are compared. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/compare.h"
#include "sojourn/report.h"
#include "sojourn/finding.h"
#include "support/runs.h"

static void near(double value, double expected)
{
	if (!(fabs(value - expected) < 1e-9))
		fail_msg("%.12g instead of %.12g", value, expected);
}

/* The values of scipy.stats.mannwhitneyu(a, b, method="asymptotic"), scipy 1.x. */
static void test_rank_sum(void **state)
{
	static const double low[] = {1, 2, 3, 4, 5, 6, 7, 8}, mid[] = {5, 6, 7, 8, 9, 10, 11, 12},
			    high[] = {10, 11, 12, 13, 14, 15, 16, 17},
			    pi[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3},
			    e[] = {2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4},
			    same[] = {5, 5, 5, 5, 5, 5, 5, 5};
	double p;

	assert_int_equal(compare_rank_sum(low, 8, mid, 8, &p), 0);
	near(p, 0.013313002763816655);
	assert_int_equal(compare_rank_sum(mid, 8, low, 8, &p), 0);
	near(p, 0.013313002763816655);
	assert_int_equal(compare_rank_sum(pi, 10, e, 11, &p), 0);
	near(p, 0.7487173034411685);
	assert_int_equal(compare_rank_sum(low, 8, high, 8, &p), 0);
	near(p, 0.0009391056991171899);
	assert_int_equal(compare_rank_sum(low, 8, low, 8, &p), 0);
	near(p, 1);
	assert_int_equal(compare_rank_sum(same, 8, same, 8, &p), 0);
	near(p, 1);
}

/*
 * Make a run of @count seconds, with @rate and a little more in every other; each request takes
 * @latency_ns.
 */
static struct run *make_run(unsigned int count, uint64_t rate, uint64_t latency_ns)
{
	struct run *run = support_driver_run();
	struct run_driver *driver = run->driver;

	memset(&driver->round_trip, 0, sizeof(driver->round_trip));
	memset(&driver->response_time, 0, sizeof(driver->response_time));
	free(driver->intervals);
	driver->intervals = calloc(count, sizeof(*driver->intervals));
	assert_non_null(driver->intervals);
	driver->interval_count = count;
	driver->interval_ns = NSEC_PER_SEC;
	driver->duration_ns = count * (uint64_t)NSEC_PER_SEC;
	driver->requests = 0;
	for (unsigned int i = 0; i < count; i++) {
		struct run_interval *interval = &driver->intervals[i];

		interval->begin_ns = i * (uint64_t)NSEC_PER_SEC;
		interval->duration_ns = NSEC_PER_SEC;
		interval->requests = rate + i % 2;
		driver->requests += interval->requests;
		for (uint64_t k = 0; k < interval->requests; k++) {
			histogram_record(&interval->latency, latency_ns + k);
			histogram_record(&driver->round_trip, latency_ns + k);
		}
	}
	return run;
}

static const char *const names[] = {"before", "after", "slower"};

static const struct compare_row *find(const struct compare *compare, const char *label)
{
	for (size_t i = 0; i < compare->row_count; i++)
		if (!strcmp(compare->rows[i].label, label))
			return &compare->rows[i];
	fail_msg("no row '%s'", label);
	return NULL;
}

static void test_a_difference_is_told_from_noise(void **state)
{
	autorun struct run *before = make_run(10, 100, 50000);
	autorun struct run *same = make_run(10, 100, 50000);
	autorun struct run *slower = make_run(10, 90, 60000);
	autocompare struct compare *compare =
		compare_runs((struct run *[]){before, same, slower}, names, 3);
	const struct compare_row *rate, *p99;

	assert_non_null(compare);
	assert_int_equal(compare->side_count, 2);
	rate = find(compare, "requests/s, client");
	assert_false(rate->lower_is_better);
	near(rate->first.value, 100.5);
	assert_true(rate->sides[0].p_value.known && rate->sides[1].p_value.known);
	near(rate->sides[0].change.value, 0);
	near(rate->sides[0].p_value.value, 1);
	near(rate->sides[1].change.value, -10 / 100.5);
	assert_true(rate->sides[1].p_value.value < COMPARE_SIGNIFICANT);
	p99 = find(compare, "latency, p99");
	assert_true(p99->lower_is_better);
	assert_true(p99->sides[1].change.value > 0.19 && p99->sides[1].change.value < 0.21);
	assert_true(p99->sides[1].p_value.value < COMPARE_SIGNIFICANT);
}

static void test_too_few_intervals_are_no_test(void **state)
{
	autorun struct run *before = make_run(10, 100, 50000);
	autorun struct run *after = make_run(COMPARE_INTERVALS - 1, 90, 60000);
	autocompare struct compare *compare =
		compare_runs((struct run *[]){before, after}, names, 2);
	const struct compare_row *rate;

	assert_non_null(compare);
	rate = find(compare, "requests/s, client");
	assert_true(rate->sides[0].change.known);
	assert_false(rate->sides[0].p_value.known);
	assert_string_equal(rate->sides[0].reason, "fewer than 8 intervals");
}

/* A short last interval has few requests, and does not count as noise of the rate. */
static void test_a_short_last_interval_is_left_out(void **state)
{
	autorun struct run *before = make_run(9, 100, 50000);
	autorun struct run *after = make_run(9, 100, 50000);
	autocompare struct compare *compare = NULL;

	after->driver->intervals[8].duration_ns = NSEC_PER_SEC / 2;
	before->driver->intervals[8].duration_ns = NSEC_PER_SEC / 2;
	compare = compare_runs((struct run *[]){before, after}, names, 2);
	assert_non_null(compare);
	assert_true(find(compare, "requests/s, client")->sides[0].p_value.known);
	compare_free(TAKE_PTR(compare));
	after->driver->intervals[7].duration_ns = NSEC_PER_SEC / 2;
	compare = compare_runs((struct run *[]){before, after}, names, 2);
	assert_non_null(compare);
	assert_false(find(compare, "requests/s, client")->sides[0].p_value.known);
}

static void test_what_one_run_lacks_is_not_compared(void **state)
{
	autorun struct run *observer = support_observer_run();
	autorun struct run *driver = support_driver_run();
	autocompare struct compare *compare =
		compare_runs((struct run *[]){observer, driver}, names, 2);
	const struct compare_row *service;

	assert_non_null(compare);
	service = find(compare, "service, mean");
	assert_true(service->first.known);
	assert_false(service->sides[0].value.known);
	assert_string_equal(service->sides[0].reason, "only one of them has it");
	assert_false(find(compare, "requests/s, client")->first.known);
}

static void assert_answer(const struct compare *compare, size_t side, const char *expected)
{
	autofree char *text = compare_answer(compare, side);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

#define REPEAT                                                                                    \
	"equal runs may differ as much: repeat both in turn, and compare folders of 6 documents " \
	"or more\n"

/* The answer is the first line, with the figures of each shown difference. */
static void test_the_answer(void **state)
{
	autorun struct run *before = make_run(10, 100, 50000);
	autorun struct run *same = make_run(10, 100, 50000);
	autorun struct run *worse = make_run(10, 90, 60000);
	autorun struct run *better = make_run(10, 110, 40000);
	autorun struct run *few = make_run(7, 90, 60000);
	struct run *runs[] = {before, same, worse, better, few};
	static const char *const all[] = {"before", "same", "worse", "better", "few"};
	autocompare struct compare *compare = compare_runs(runs, all, 5);

	assert_non_null(compare);
	assert_answer(compare, 0,
		      "no change from before to same is beyond the scatter of their intervals\n");
	assert_answer(compare, 1,
		      "worse was worse than before, beyond the scatter of their intervals\n" REPEAT
		      "worse: requests/s, client 101/s \u2192 90.5/s (-10.0 %); "
		      "latency, mean 50.0 \u00b5s \u2192 60.0 \u00b5s (+20.0 %); "
		      "latency, p50 50.1 \u00b5s \u2192 60.1 \u00b5s (+19.9 %); "
		      "latency, p99 50.1 \u00b5s \u2192 60.1 \u00b5s (+19.9 %)\n");
	assert_answer(compare, 3,
		      "whether few differs from before is not known: fewer than 8 "
		      "intervals\n");
	same->driver->limited = calloc(1, sizeof(*same->driver->limited));
	assert_non_null(same->driver->limited);
	same->driver->limited->by = strdup("cpu");
	assert_answer(compare, 0,
		      "no change from before to same is beyond the scatter of their intervals\n"
		      "LIMITED BY THE DRIVER, not by the server: same (cpu)\n");
}

/*
 * Figures within the scatter are named. Errors where there were none are worse, although
 * no factor exists.
 */
static void test_what_is_not_shown(void **state)
{
	autorun struct run *before = make_run(10, 100, 50000);
	autorun struct run *after = make_run(10, 100, 50000);
	struct run *runs[] = {before, after};
	autocompare struct compare *compare = NULL;
	char text[COMPARE_TEXT];

	after->driver->requests -= 50;
	memset(before->driver->errors, 0, sizeof(before->driver->errors));
	memset(after->driver->errors, 0, sizeof(after->driver->errors));
	after->driver->errors[RUN_ERROR_STATUS] = 1000;
	for (unsigned int i = 0; i < 10; i++) {
		after->driver->intervals[i].requests -= i == 1 || i == 3;
		after->driver->intervals[i].errors = 100;
	}
	compare = compare_runs(runs, names, 2);
	assert_non_null(compare);
	assert_int_equal(compare->rows[0].sides[0].p_value.known, true);
	assert_int_equal(compare_judge(&compare->rows[0], &compare->rows[0].sides[0]),
			 COMPARE_UNSHOWN);
	assert_string_equal(compare_surety(&compare->rows[0], &compare->rows[0].sides[0], text),
			    "within the intervals' scatter");
	assert_answer(compare, 0,
		      "after was worse than before, beyond the scatter of their intervals\n" REPEAT
		      "worse: errors/s 0/s \u2192 100/s\n"
		      "within their scatter: requests/s, client (-5.0 %)\n");
}

#define REPEATED (2 * COMPARE_RUNS)

static void free_runs(struct run *(*runs)[REPEATED])
{
	for (size_t i = 0; i < REPEATED; i++)
		run_free((*runs)[i]);
}

/*
 * Make runs of two sides in turn. Each is steady, and 10 faster than the one before it, as if the
 * machine did less and less. Those of the second side are @more faster.
 */
static void make_repeated(struct run *(*runs)[REPEATED], uint64_t more)
{
	for (size_t i = 0; i < COMPARE_RUNS; i++) {
		(*runs)[i] = make_run(10, 100 + 20 * i, 50000);
		(*runs)[COMPARE_RUNS + i] = make_run(10, 110 + 20 * i + more, 50000 - 100 * more);
	}
}

/* Equal runs that differ from each other, far beyond the scatter within them, are no change. */
static void test_equal_runs_that_drift(void **state)
{
	CLEANUP(free_runs) struct run *runs[REPEATED] = {0};
	const char *called[REPEATED];
	autocompare struct compare *compare = NULL;
	const struct compare_row *rate;

	make_repeated(&runs, 0);
	for (size_t i = 0; i < REPEATED; i++)
		called[i] = i < COMPARE_RUNS ? "before" : "after";
	compare = compare_runs(&runs[0], called, REPEATED);
	assert_non_null(compare);
	assert_int_equal(compare->side_count, 1);
	assert_int_equal(compare->groups[1].count, COMPARE_RUNS);
	rate = find(compare, "requests/s, client");
	near(rate->first.value, 150.5); /* the median */
	assert_int_equal(compare_judge(rate, &rate->sides[0]), COMPARE_UNSHOWN);
	compare_free(TAKE_PTR(compare));
	compare = compare_runs((struct run *[]){runs[0], runs[COMPARE_RUNS]}, names, 2);
	assert_non_null(compare);
	rate = find(compare, "requests/s, client");
	assert_int_equal(compare_judge(rate, &rate->sides[0]), COMPARE_BETTER);
	assert_true(rate->sides[0].of_intervals);
}

static void test_repeated_runs(void **state)
{
	CLEANUP(free_runs) struct run *runs[REPEATED] = {0};
	const char *called[REPEATED];
	autocompare struct compare *compare = NULL;
	autofree char *text = NULL;

	make_repeated(&runs, 200);
	for (size_t i = 0; i < REPEATED; i++)
		called[i] = i < COMPARE_RUNS ? "before" : "after";
	compare = compare_runs(&runs[0], called, REPEATED);
	assert_non_null(compare);
	text = compare_answer(compare, 0);
	assert_non_null(text);
	*strchrnul(text, ';') = '\0';
	assert_string_equal(text,
			    "after is better than before, shown at 1 %\n"
			    "better: requests/s, client 151/s \u2192 361/s (+140 %, p = 0.0051)");
	compare_free(TAKE_PTR(compare));
	/* Without one of them, there are too few. */
	compare = compare_runs(&runs[1], &called[1], REPEATED - 1);
	assert_non_null(compare);
	assert_answer(compare, 0,
		      "whether after differs from before is not known: fewer than 6 runs\n");
}

static void assert_settings(struct run *first, struct run *other, const char *expected)
{
	struct run *runs[] = {first, other};
	autocompare struct compare *compare = compare_runs(runs, names, 2);
	autofree char *text = compare ? compare_settings(compare, 0) : NULL;

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void set_command(struct run *run, const char *line)
{
	autofree char *copy = strdup(line);
	char *rest = NULL;
	size_t count = 0;

	run_strings_free(run->command);
	run->command = calloc(32, sizeof(*run->command));
	assert_true(copy && run->command);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		run->command[count++] = strdup(word);
}

static void test_settings(void **state)
{
	autorun struct run *first = make_run(10, 100, 50000);
	autorun struct run *other = make_run(10, 100, 50000);

	assert_settings(first, other, "");
	other->driver->connections = first->driver->connections + 1000;
	first->driver->connections = 8;
	other->driver->connections = 1600;
	other->driver->think_ns = first->driver->think_ns = 0;
	other->driver->new_connections = !(first->driver->new_connections = false);
	other->driver->duration_ns += NSEC_PER_SEC / 10; /* 1 %: a slightly longer run */
	assert_settings(first, other,
			"connections 8 \u2192 1,600; one connection per request no \u2192 yes");
	other->driver->connections = 8;
	other->driver->new_connections = false;
	other->driver->duration_ns *= 2;
	assert_settings(first, other, "duration 10.0 s \u2192 20.2 s");
	other->driver->duration_ns = first->driver->duration_ns;
	/* Options without a member in the document; output files are no setting. */
	set_command(first, "sojourn-drive -c8 --json a.json --insecure --header A:1 --header B:2");
	set_command(other,
		    "/usr/bin/sojourn-drive -c 8 --header A:3 --json=b.json --header B:2 --quiet");
	assert_settings(first, other, "options --insecure --header A:1 \u2192 --header A:3");
	set_command(first, "sojourn-drive --header B:2");
	assert_settings(first, other, "options nothing \u2192 --header A:3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_sum),
		cmocka_unit_test(test_a_difference_is_told_from_noise),
		cmocka_unit_test(test_too_few_intervals_are_no_test),
		cmocka_unit_test(test_a_short_last_interval_is_left_out),
		cmocka_unit_test(test_what_one_run_lacks_is_not_compared),
		cmocka_unit_test(test_the_answer),
		cmocka_unit_test(test_what_is_not_shown),
		cmocka_unit_test(test_equal_runs_that_drift),
		cmocka_unit_test(test_repeated_runs),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
