/* SPDX-License-Identifier: MIT */
/*
 * Several runs side by side: how each figure of the others differs from the first run's, and whether
 * that is more than the noise between the intervals of the runs themselves.
 */
#ifndef SOJOURN_COMPARE_H
#define SOJOURN_COMPARE_H

#include <stddef.h>

#include "sojourn/run.h"

/* Below this the difference is called significant: one in a hundred comparisons of equal runs. */
#define COMPARE_SIGNIFICANT 0.01

/* Fewer intervals than these in one of the runs say too little: the test's normal approximation. */
#define COMPARE_INTERVALS 8U

/* One run's figure against the first one's. */
struct compare_side {
	struct run_ratio value;
	struct run_ratio change;  /* (value - first) / first; not known if first is 0 */
	struct run_ratio p_value; /* two-sided; not known: see reason */
	const char *reason;	  /* static text; NULL where p_value is known */
};

struct compare_row {
	const char *label; /* "p99", "service, mean" */
	const char *unit;  /* "ns", "/s", "" */
	bool lower_is_better;
	struct run_ratio first;
	struct compare_side *sides; /* one for each of the other runs */
};

struct compare {
	struct run *const *runs; /* borrowed: the first, and one for each side */
	const char *const *names;
	struct compare_row *rows; /* only figures that at least one of the runs has */
	size_t row_count;
	size_t side_count;
};

/* NULL without memory. @count is 2 or more; @runs and @names stay the caller's. */
struct compare *compare_runs(struct run *const *runs, const char *const *names, size_t count);
void compare_free(struct compare *compare);
DEFINE_CLEANUP(struct compare *, compare_free)
#define autocompare CLEANUP(cleanup_compare_free)

enum compare_verdict {
	COMPARE_UNTESTED, /* see reason */
	COMPARE_UNSHOWN,  /* chance may well have made the difference, if there is one */
	COMPARE_BETTER,
	COMPARE_WORSE,
	COMPARE_ALIKE, /* the intervals differ, the figure of the whole runs does not */
};

enum compare_verdict compare_judge(const struct compare_row *row, const struct compare_side *side);

#define COMPARE_TEXT 64
/* How surely: "p = 0.034: not shown at 1 %", "not tested: fewer than 8 intervals". */
const char *compare_surety(const struct compare_row *row, const struct compare_side *side,
			   char ret_text[static COMPARE_TEXT]);
/* A figure with its unit; "-" if it is not known. */
const char *compare_figure(const struct compare_row *row, struct run_ratio value,
			   char ret_text[static COMPARE_TEXT]);

/*
 * For people. What changed from the first run to that of @side, and how surely: lines, the first of which
 * is the answer. Which settings differ: "connections 8 → 16; duration 5.00 s → 10.00 s", or "". NULL
 * without memory.
 */
char *compare_answer(const struct compare *compare, size_t side);
char *compare_settings(const struct compare *compare, size_t side);

/* The service that the driver loaded; without a driver, that with most exchanges; NULL: none. */
const struct run_service *compare_service(const struct run *run);

/*
 * The probability of a difference at least as large if both samples had the same distribution: the
 * two-sided rank-sum test (Mann and Whitney, "On a test of whether one of two random variables is
 * stochastically larger than the other", 1947) in its normal approximation, corrected for ties and
 * for continuity. 1 if all values are equal. Both counts must be at least 1; -ENOMEM.
 */
int compare_rank_sum(const double *a, size_t a_count, const double *b, size_t b_count,
		     double *ret_p_value);

#endif
