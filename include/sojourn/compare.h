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
	struct compare_row *rows; /* only figures that at least one of the runs has */
	size_t row_count;
	size_t side_count;
};

/* NULL without memory. @count is 2 or more. */
struct compare *compare_runs(struct run *const *runs, size_t count);
void compare_free(struct compare *compare);
DEFINE_CLEANUP(struct compare *, compare_free)
#define autocompare CLEANUP(cleanup_compare_free)

/*
 * The probability of a difference at least as large if both samples had the same distribution: the
 * two-sided rank-sum test (Mann and Whitney, "On a test of whether one of two random variables is
 * stochastically larger than the other", 1947) in its normal approximation, corrected for ties and
 * for continuity. 1 if all values are equal. Both counts must be at least 1; -ENOMEM.
 */
int compare_rank_sum(const double *a, size_t a_count, const double *b, size_t b_count,
		     double *ret_p_value);

#endif
