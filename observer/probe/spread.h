/* SPDX-License-Identifier: MIT */
/* The result of repeated rounds of a measurement: a median, and how far it may be off. */
#ifndef OBSERVER_PROBE_SPREAD_H
#define OBSERVER_PROBE_SPREAD_H

#include <stddef.h>

#define SPREAD_ROUNDS 256 /* at most */
#define SPREAD_LEAST  6	  /* below, the bounds would not have their confidence */

struct rounds {
	double values[SPREAD_ROUNDS];
	size_t count;
};

struct spread {
	size_t rounds; /* below SPREAD_LEAST: not known */
	double median;
	double low, high; /* with 95 % confidence the median is between them */
};

/* Add a value; values beyond SPREAD_ROUNDS are left out. */
void rounds_add(struct rounds *rounds, double value);

/* Return the median of @rounds and its bounds. Sorts @rounds. */
struct spread spread_of(struct rounds *rounds);

/* Return the median of @values. Sorts @values. */
double median_of(double *values, size_t count);

#endif
