// SPDX-License-Identifier: MIT
/* A sentence for each verdict except FIT_FOUND; see verdict.h. */
#include "verdict.h"

#include <stdio.h>

#include "sojourn/cleanup.h"
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

static int explain_collapse(const struct fit_point *best, const struct fit_point *fallen,
			    const char *unit, char **ret_text)
{
	char most[NUMBER], least[NUMBER], load[NUMBER], more[NUMBER];

	return asprintf(ret_text, "throughput fell by more than %.0f %%: %s/s at %s %s, %s/s at %s",
			100 - 100 * FIT_COLLAPSE, number(best->throughput, most),
			number(best->load, load), unit, number(fallen->throughput, least),
			number(fallen->load, more));
}

static int explain_close(const struct fit_point *first, const struct fit_point *last,
			 const char *unit, char **ret_text)
{
	char from[NUMBER], to[NUMBER];

	return asprintf(ret_text,
			"the loads are too close together, from %s to %s %s: spread them with "
			"--ladder",
			number(first->load, from), number(last->load, to), unit);
}

char *verdict_explain(enum fit_verdict verdict, const struct fit *fit,
		      const struct fit_point *points, size_t count, const char *unit)
{
	char *text = NULL;
	int length = -1;

	switch (verdict) {
	case FIT_FOUND:
		return NULL;
	case FIT_TOO_FEW:
		length = asprintf(&text, "fewer than %u steps had good responses", FIT_POINTS_MIN);
		break;
	case FIT_COLLAPSED:
		length = explain_collapse(&points[fit->best], &points[fit->fallen], unit, &text);
		break;
	case FIT_GREW:
		length = asprintf(&text,
				  "throughput still grew at the last step, by %.0f %%: go further "
				  "with --ladder",
				  100 * fit->growth);
		break;
	case FIT_OFF:
		length = asprintf(&text,
				  "the steps are %.0f %% off the best line through them, more than "
				  "%.0f %%: longer ones (--duration) may scatter less",
				  100 * fit->misfit, 100 * FIT_OFF_MAX);
		break;
	case FIT_TOO_CLOSE:
		length = explain_close(&points[0], &points[count - 1], unit, &text);
		break;
	case FIT_NO_END:
		length = asprintf(
			&text,
			"fewer than %u steps lie beyond the knee: go further, or in smaller "
			"steps, with --ladder",
			FIT_BEYOND_MIN);
		break;
	}
	return length < 0 ? NULL : text;
}
