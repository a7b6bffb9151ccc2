/* SPDX-License-Identifier: MIT */
/* How many requests may still start in this phase. The workers share them in portions. */
#ifndef DRIVER_LOAD_BUDGET_H
#define DRIVER_LOAD_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

#define BUDGET_UNLIMITED   UINT64_MAX
#define BUDGET_PORTION_MAX 1024U

struct budget {
	_Atomic uint64_t left;
	uint32_t sharers; /* number of workers */
};

/* Portions shrink towards the end, so that no worker is left with the last requests. */
static inline uint64_t budget_portion(const struct budget *budget, uint64_t left)
{
	uint64_t portion = left / (8U * (uint64_t)budget->sharers) + 1;

	return portion < BUDGET_PORTION_MAX ? portion : BUDGET_PORTION_MAX;
}

/* Take a number of requests that the caller may start; 0: none are left. */
static inline uint64_t budget_take(struct budget *budget)
{
	uint64_t left = atomic_load_explicit(&budget->left, memory_order_relaxed);
	uint64_t portion;

	do {
		if (!left || left == BUDGET_UNLIMITED)
			return left;
		portion = budget_portion(budget, left);
	} while (!atomic_compare_exchange_weak_explicit(
		&budget->left, &left, left - portion, memory_order_relaxed, memory_order_relaxed));
	return portion;
}

#endif
