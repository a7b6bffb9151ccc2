// SPDX-License-Identifier: MIT
/* Draws stages: their parts of a request's mean time, and the distribution of each; see bars.h. */
#include "bars.h"

#include <math.h>

#include "sojourn/run_sum.h"
#include "sojourn/screen.h"
#include "sojourn/units.h"

/* The stages' letters, for screens without colours. Upper case is the server's own work. */
static const char *const letters[STAGE_RESIDENCE_END] = {
	[STAGE_ACCEPT_QUEUE] = "a", [STAGE_SOCKET_QUEUE] = "q", [STAGE_RECEIVE] = "r",
	[STAGE_SERVICE] = "S",	    [STAGE_RESPOND] = "w",
};

const char *live_stage_letter(enum stage stage)
{
	return stage < STAGE_RESIDENCE_END ? letters[stage] : " ";
}

/* Blocks differ by colour alone. */
static const char *cell_of(enum stage stage)
{
	return screen_utf8() && screen_colour() ? "█" : letters[stage];
}

/* Round the edges, not the widths, so that the widths add up to the whole. */
bool live_draw_bar(const struct run_service *service, int y, int x, int width)
{
	double all = run_residence_mean(service), sum = 0;
	int begin = x;

	if (!service->stages[STAGE_SERVICE].measured || all <= 0)
		return false;
	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++) {
		sum += run_stage_mean(service, stage);
		for (; x < begin + (int)lround(sum / all * width); x++)
			screen_put(y, x, 1, SCREEN_STAGE + stage, SCREEN_LEFT, cell_of(stage));
	}
	return true;
}

/* ---- distributions ---- */

#define STRIP_FROM_NS 1000.0
#define STRIP_MAX     200

struct live_strip live_strip_of(const struct run_service *service, int x, int width)
{
	double to = 10 * STRIP_FROM_NS;

	for (enum stage stage = 0; stage < STAGE_COUNT; stage++)
		to = fmax(to, (double)service->stages[stage].histogram.max);
	return (struct live_strip){x, width < STRIP_MAX ? width : STRIP_MAX,
				   log10(to / STRIP_FROM_NS)};
}

/* Return the place of @ns on the axis; shorter times are at its start. */
static int column_of(const struct live_strip *strip, double ns)
{
	double decades = log10(fmax(ns, STRIP_FROM_NS) / STRIP_FROM_NS);
	int column = (int)(decades / strip->decades * (strip->width - 1));

	return column < strip->width ? column : strip->width - 1;
}

void live_draw_axis(const struct live_strip *strip, int y)
{
	for (int decade = 0; decade < strip->decades; decade++) {
		double ns = STRIP_FROM_NS * pow(10, decade);

		screen_put(y, strip->x + column_of(strip, ns), UNITS_TEXT, SCREEN_DIM, SCREEN_LEFT,
			   as_setting(ns));
	}
}

void live_draw_strip(const struct live_strip *strip, const struct histogram *h, unsigned int style,
		     int y)
{
	double counts[STRIP_MAX];

	for (int i = 0; i < strip->width; i++)
		counts[i] = NAN;
	for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
		double *count = &counts[column_of(strip, (double)bucket_upper(i))];

		if (h->buckets[i])
			*count = isnan(*count) ? (double)h->buckets[i]
					       : *count + (double)h->buckets[i];
	}
	screen_chart(y, strip->x, 1, style, counts, (size_t)strip->width);
}
