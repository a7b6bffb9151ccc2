/* SPDX-License-Identifier: MIT */
/* Stages drawn, for the live view's list and details. */
#ifndef OBSERVER_SINKS_LIVE_BARS_H
#define OBSERVER_SINKS_LIVE_BARS_H

#include <stdbool.h>

#include "sojourn/run.h"

/* Return the letter of a stage of the residence; a blank for later stages. */
const char *live_stage_letter(enum stage stage);

/*
 * Draw each stage's part of the residence in @width columns: blocks in the stages' colours, or letters without
 * colours. Return false and draw nothing if it is not known, or if nothing was timed.
 */
bool live_draw_bar(const struct run_service *service, int y, int x, int width);

/* A logarithmic axis of time from 1 µs to the longest of all stages. */
struct live_strip {
	int x;
	int width;
	double decades;
};

struct live_strip live_strip_of(const struct run_service *service, int x, int width);
/* Draw labels like "1µs 10µs 100µs" at their places. */
void live_draw_axis(const struct live_strip *strip, int y);
/* Draw how frequent each time was, relative to the most frequent. */
void live_draw_strip(const struct live_strip *strip, const struct histogram *h, unsigned int style,
		     int y);

#endif
