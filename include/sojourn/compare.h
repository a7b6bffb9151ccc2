/* SPDX-License-Identifier: MIT */
/*
 * Compares runs: how each figure differs from the first side's. A side is one run, or several of
 * equal settings. Only the latter say what equal runs differ by: neighbouring intervals of one run
 * resemble each other, whatever the machine did meanwhile.
 */
#ifndef SOJOURN_COMPARE_H
#define SOJOURN_COMPARE_H

#include <stddef.h>

#include "sojourn/run.h"

/* Smaller p-values are significant: equal runs have them in one of a hundred comparisons. */
#define COMPARE_SIGNIFICANT 0.01

/* Minimum of intervals per run for the test's normal approximation. */
#define COMPARE_INTERVALS 8U

/* Minimum of runs per side: with fewer, no p-value of the approximation is significant. */
#define COMPARE_RUNS 6U

/* Runs of equal settings. */
struct compare_group {
	const char *name;
	struct run *const *runs;
	size_t count;
};

/* One side's figure, of several runs the median, against the first side's. */
struct compare_side {
	struct run_ratio value;
	struct run_ratio change;  /* (value - first) / first; not known if first is 0 */
	struct run_ratio p_value; /* two-sided; not known: see reason */
	bool of_intervals;  /* p_value is of one run's intervals: no more than their scatter */
	const char *reason; /* static text; NULL: p_value is known */
};

struct compare_row {
	const char *label; /* "p99", "service, mean" */
	const char *unit;  /* "ns", "/s", "" */
	bool lower_is_better;
	struct run_ratio first;
	struct compare_side *sides; /* one for each further group */
};

struct compare {
	struct compare_group *groups; /* the first, and one for each side; runs are borrowed */
	struct compare_row *rows;     /* figures of at least one run */
	size_t row_count;
	size_t side_count;
};

/*
 * Compare 2 or more runs; @runs and @names stay the caller's. Runs of the same name that follow each
 * other are one side. NULL without memory.
 */
struct compare *compare_runs(struct run *const *runs, const char *const *names, size_t count);
void compare_free(struct compare *compare);
DEFINE_CLEANUP(struct compare *, compare_free)
#define autocompare CLEANUP(cleanup_compare_free)

/*
 * Return the name of run @i of these, of several runs of that name also which it is, as "before, 2 of 6". The caller
 * frees it. NULL without memory.
 */
char *compare_run_name(const char *const *names, size_t count, size_t i);

enum compare_verdict {
	COMPARE_UNTESTED, /* see @reason */
	COMPARE_UNSHOWN,  /* a difference, if any, may be chance */
	COMPARE_BETTER,
	COMPARE_WORSE,
	COMPARE_ALIKE, /* the intervals differ, but not the runs' figures */
};

enum compare_verdict compare_judge(const struct compare_row *row, const struct compare_side *side);

#define COMPARE_TEXT 64
/*
 * Describe the certainty: "p = 0.034: not shown at 1 %", "beyond the intervals' scatter", "not
 * tested: fewer than 8 intervals".
 */
const char *compare_surety(const struct compare_row *row, const struct compare_side *side,
			   char ret_text[static COMPARE_TEXT]);
/* Write a figure with its unit; "-": not known. */
const char *compare_figure(const struct compare_row *row, struct run_ratio value,
			   char ret_text[static COMPARE_TEXT]);

/*
 * Describe for people the changes from the first group to @side's: lines, the first of which is the
 * answer. List differing settings, of each side's first run: "connections 8 → 16; duration 5.00 s →
 * 10.00 s", or "". NULL without memory.
 */
char *compare_answer(const struct compare *compare, size_t side);
char *compare_settings(const struct compare *compare, size_t side);

/* Return the service that the driver loaded, or else that with most exchanges, or NULL. */
const struct run_service *compare_service(const struct run *run);

/*
 * Compute the two-sided probability of at least this difference if both samples had the same
 * distribution. Use the rank-sum test (Mann and Whitney, "On a test of whether one of two random
 * variables is stochastically larger than the other", 1947). Its normal approximation is corrected
 * for ties and continuity. The result is 1 if all values are equal. Both counts are at least 1;
 * -ENOMEM.
 */
int compare_rank_sum(const double *a, size_t a_count, const double *b, size_t b_count,
		     double *ret_p_value);

#endif
