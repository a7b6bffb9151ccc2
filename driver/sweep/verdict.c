// SPDX-License-Identifier: MIT
/* A sentence for each verdict except FIT_FOUND; see verdict.h. */
#include "verdict.h"

#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define NUMBER 32

/* Rates below 10 keep decimals. */
static const char *number(double value, char text[static NUMBER])
{
	if (value < 10)
		snprintf(text, NUMBER, "%.3g", value);
	else
		units_format_count((uint64_t)(value + 0.5), text, NUMBER);
	return text;
}

static char *explain_collapse(const struct fit_point *best, const struct fit_point *fallen,
			      const char *unit)
{
	char most[NUMBER], least[NUMBER], load[NUMBER], more[NUMBER];

	return text_format("throughput fell by more than %.0f %%: %s/s at %s %s, %s/s at %s",
			   100 - 100 * FIT_COLLAPSE, number(best->throughput, most),
			   number(best->load, load), unit, number(fallen->throughput, least),
			   number(fallen->load, more));
}

static char *explain_close(const struct fit_point *first, const struct fit_point *last,
			   const char *unit)
{
	char from[NUMBER], to[NUMBER];

	return text_format("the loads are too close together, from %s to %s %s: spread them with "
			   "--ladder",
			   number(first->load, from), number(last->load, to), unit);
}

char *verdict_explain(enum fit_verdict verdict, const struct fit *fit,
		      const struct fit_point *points, size_t count, const char *unit)
{
	switch (verdict) {
	case FIT_FOUND:
		return NULL;
	case FIT_TOO_FEW:
		return text_format("fewer than %u steps had good responses", FIT_POINTS_MIN);
	case FIT_COLLAPSED:
		return explain_collapse(&points[fit->best], &points[fit->fallen], unit);
	case FIT_GREW:
		return text_format("throughput still grew at the last step, by %.0f %%: go further "
				   "with --ladder",
				   100 * fit->growth);
	case FIT_OFF:
		return text_format(
			"the steps are %.0f %% off the best line through them, more than "
			"%.0f %%: longer ones (--duration) may scatter less",
			100 * fit->misfit, 100 * FIT_OFF_MAX);
	case FIT_TOO_CLOSE:
		return explain_close(&points[0], &points[count - 1], unit);
	case FIT_NO_END:
		return text_format(
			"fewer than %u steps lie beyond the knee: go further, or in smaller "
			"steps, with --ladder",
			FIT_BEYOND_MIN);
	}
	return NULL;
}
