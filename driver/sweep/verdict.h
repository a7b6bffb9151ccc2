/* SPDX-License-Identifier: MIT */
/* Why a sweep has no plateau, as a sentence for people. */
#ifndef DRIVER_SWEEP_VERDICT_H
#define DRIVER_SWEEP_VERDICT_H

#include "fit.h"

/*
 * Of any verdict but FIT_FOUND, with what fit_plateau() got and gave; @unit is what the loads are.
 * NULL without memory; freed by the caller.
 */
char *verdict_explain(enum fit_verdict verdict, const struct fit *fit,
		      const struct fit_point *points, size_t count, const char *unit);

#endif
