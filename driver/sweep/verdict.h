/* SPDX-License-Identifier: MIT */
/* Why a sweep has no plateau, as a sentence for people. */
#ifndef DRIVER_SWEEP_VERDICT_H
#define DRIVER_SWEEP_VERDICT_H

#include "fit.h"

/*
 * Explain any verdict except FIT_FOUND, with the arguments and results of fit_plateau(). @unit: of
 * the loads. Return NULL without memory; the caller frees the sentence.
 */
char *verdict_explain(enum fit_verdict verdict, const struct fit *fit,
		      const struct fit_point *points, size_t count, const char *unit);

#endif
