// SPDX-License-Identifier: MIT
/* Bars and charts of block elements, or of ASCII on other terminals; see sojourn/screen.h. */
#include <math.h>

#include "sojourn/screen.h"

#define EIGHTHS 8

/* Characters by filled eighths of a cell, from the left and from the bottom. */
static const char *const across[EIGHTHS + 1] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
static const char *const upwards[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const upwards_ascii[EIGHTHS + 1] = {" ", "_", ".", ":", "-", "=", "+", "*", "#"};

/* Return the filled eighths of cell @index in a line of @eighths. */
static int part_of(int eighths, int index)
{
	int part = eighths - index * EIGHTHS;

	return part < 0 ? 0 : part > EIGHTHS ? EIGHTHS : part;
}

void screen_bar(int y, int x, int width, unsigned int style, double share)
{
	int eighths = (int)lround(fmin(fmax(share, 0), 1) * width * EIGHTHS);

	for (int i = 0; i < width; i++) {
		int part = part_of(eighths, i);

		screen_put(y, x + i, 1, style, SCREEN_LEFT,
			   screen_utf8()	 ? across[part]
			   : part >= EIGHTHS / 2 ? "#"
						 : " ");
	}
}

/* Everything is at least an eighth high; for 0 that is the chart's baseline. */
static int height_of(double point, double max, int height)
{
	int eighths = max > 0 ? (int)(point / max * height * EIGHTHS) : 0;

	return eighths < 1 ? 1 : eighths;
}

double screen_chart(int y, int x, int height, unsigned int style, const double *points,
		    size_t count)
{
	const char *const *cells = screen_utf8() ? upwards : upwards_ascii;
	double max = 0;

	for (size_t i = 0; i < count; i++)
		max = points[i] > max ? points[i] : max;
	for (size_t i = 0; i < count; i++) {
		int eighths = isnan(points[i]) ? 0 : height_of(points[i], max, height);

		for (int line = 0; line < height; line++)
			screen_put(y + height - 1 - line, x + (int)i, 1, style, SCREEN_LEFT,
				   cells[part_of(eighths, line)]);
	}
	return max;
}
