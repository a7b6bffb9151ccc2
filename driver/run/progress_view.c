// SPDX-License-Identifier: MIT
/* Progress as a screen: finished share, rate and times second by second, and their distribution. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "progress.h"
#include "sojourn/cleanup.h"
#include "sojourn/screen.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define NARROW	    40 /* columns: a narrower screen has no indentation */
#define VALUE_WIDTH 9
#define STEPS_MAX   20
#define CHART_MAX   4  /* lines of one series */
#define FOOT_FROM   12 /* lines of a screen with room for the keys */
#define CALM_FROM   16 /* lines of a screen with room for empty ones */

/* All rows have a label and a value, then a drawing. */
static int label_width(void)
{
	return screen_columns() < NARROW ? 10 : 12;
}

static int drawing_x(void)
{
	return label_width() + VALUE_WIDTH + 2;
}

static void put_row(int y, const char *label, unsigned int style, const char *value)
{
	int indent = screen_columns() >= NARROW;

	screen_put(y, indent, label_width() - indent, SCREEN_PLAIN, SCREEN_LEFT, label);
	screen_put(y, label_width(), VALUE_WIDTH, style, SCREEN_RIGHT, value);
}

static void draw_head(const struct progress *progress)
{
	const struct progress_figures *figures = &progress->figures;
	char text[512], done[32];
	int columns = screen_columns(), width;

	snprintf(text, sizeof(text), " sojourn-drive · %s", progress->what);
	screen_put(0, 0, columns, SCREEN_TITLE, SCREEN_LEFT, text);
	if (progress->duration_ns)
		snprintf(done, sizeof(done), "%" PRIu64 " of %s", figures->elapsed_s,
			 as_setting((double)progress->duration_ns));
	else
		snprintf(done, sizeof(done), "%" PRIu64 " s", figures->elapsed_s);
	width = snprintf(text, sizeof(text), " %s%s ", figures->measured ? "" : "warming up ",
			 done);
	if (width < columns)
		screen_put(0, columns - width, width, SCREEN_TITLE, SCREEN_RIGHT, text);
}

static void draw_share(const struct progress *progress, int y)
{
	const struct progress_figures *figures = &progress->figures;
	int columns = screen_columns(), width;
	char left[48];

	width = snprintf(left, sizeof(left), " %s left", figures->left);
	if (isnan(figures->share)) {
		screen_line(y, 0, SCREEN_DIM, "%s", left);
		return;
	}
	screen_bar(y, 1, columns - width - 2, SCREEN_STAGE + STAGE_SERVICE, figures->share);
	screen_put(y, columns - width - 1, width, SCREEN_PLAIN, SCREEN_RIGHT, left);
}

/* ---- second by second ---- */

static const char *format_rate(double value, char buffer[static UNITS_TEXT])
{
	return units_format_count((uint64_t)(value + 0.5), buffer, UNITS_TEXT);
}

static const char *format_time(double ns, char buffer[static UNITS_TEXT])
{
	return isnan(ns) ? "-" : units_format_time(ns, buffer, UNITS_TEXT);
}

static const struct {
	const char *label;
	const char *(*format)(double value, char buffer[static UNITS_TEXT]);
	int from_rows; /* minimum lines of the screen */
} rows[PROGRESS_SERIES] = {
	[PROGRESS_RATE] = {"requests/s", format_rate, 0},
	[PROGRESS_P50] = {"p50", format_time, 7},
	[PROGRESS_P99] = {"p99", format_time, 0},
	[PROGRESS_ERRORS] = {"errors", format_rate, 0},
};

/* Errors are counted over the whole run, and drawn by the second. */
static double value_of(const struct progress_figures *figures, enum progress_series i)
{
	if (i == PROGRESS_ERRORS)
		return (double)figures->errors;
	return figures->count ? figures->points[i][figures->count - 1] : NAN;
}

static void draw_series(const struct progress_figures *figures, enum progress_series i, int y,
			int height)
{
	int x = drawing_x(), room = screen_columns() - x - 14;
	size_t shown = room > 0 ? (size_t)room : 0;
	bool failed = i == PROGRESS_ERRORS && figures->errors;
	const double *points = figures->points[i];
	int foot = y + height - 1;
	double max;

	shown = shown < figures->count ? shown : figures->count;
	put_row(foot, rows[i].label, failed ? SCREEN_ALARM : SCREEN_BOLD,
		rows[i].format(value_of(figures, i), UNITS_ROOM));
	if (!shown || (i == PROGRESS_ERRORS && !failed))
		return;
	max = screen_chart(y, x, height, failed ? SCREEN_ALARM : SCREEN_ACCENT,
			   points + figures->count - shown, shown);
	screen_line(foot, x + (int)shown + 1, SCREEN_DIM, "max %s%s",
		    rows[i].format(max, UNITS_ROOM), failed ? "/s" : "");
}

static int draw_past(const struct progress *progress, int y, int height)
{
	for (enum progress_series i = 0; i < PROGRESS_SERIES; i++) {
		int lines = i == PROGRESS_ERRORS ? 1 : height; /* errors are rare */

		if (screen_rows() < rows[i].from_rows)
			continue;
		draw_series(&progress->figures, i, y, lines);
		y += lines;
	}
	return y;
}

/* ---- since the start ---- */

/* One line of items. Items that do not fit whole are left out. */
struct line {
	char text[512];
	size_t used;
	int columns;
};

__attribute__((format(printf, 2, 3))) static void add_item(struct line *line, const char *format,
							   ...)
{
	const char *separator = line->used ? " · " : "";
	char item[96];
	int columns;
	va_list args;

	va_start(args, format);
	vsnprintf(item, sizeof(item), format, args);
	va_end(args);
	columns = line->columns + (int)(text_columns(separator) + text_columns(item));
	if (columns > screen_columns() - 1 ||
	    line->used + strlen(separator) + strlen(item) >= sizeof(line->text))
		return;
	line->used += (size_t)snprintf(line->text + line->used, sizeof(line->text) - line->used,
				       "%s%s", separator, item);
	line->columns = columns;
}

/* Draw "2xx 39,000 · 4xx 677 · refused 12": responses and failures. */
static int draw_outcomes(const struct progress *progress, int y)
{
	static const char *const classes[] = {"other status", "1xx", "2xx", "3xx", "4xx", "5xx"};
	const struct stats *stats = &progress->last;
	struct line line = {0};
	char name[32];

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (stats->status[i])
			add_item(&line, "%s %s", classes[i], as_count(stats->status[i]));
	for (enum run_error i = 0; i < RUN_ERROR_COUNT; i++) {
		snprintf(name, sizeof(name), "%s", run_error_names[i]);
		if (stats->errors[i])
			add_item(&line, "%s %s", text_words(name), as_count(stats->errors[i]));
	}
	screen_line(y, 1, stats_errors(stats) ? SCREEN_NOTICE : SCREEN_PLAIN, "%s", line.text);
	return y + 1;
}

static void draw_quantiles(const char *name, const struct histogram *h, int y)
{
	static const struct {
		const char *name;
		double quantile;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
	struct line line = {0};

	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		add_item(&line, "%s%s%s %s", i ? "" : name, i ? "" : ": ", quantiles[i].name,
			 as_time((double)histogram_quantile(h, quantiles[i].quantile)));
	add_item(&line, "max %s", as_time((double)h->max));
	screen_line(y, 1, SCREEN_BOLD, "%s", line.text);
}

static void draw_step(const struct histogram_step *step, uint64_t highest, int y)
{
	int x = drawing_x(), room = screen_columns() - x - 1;
	char text[48];

	snprintf(text, sizeof(text), "to %s", as_time((double)step->up_to));
	put_row(y, text, SCREEN_PLAIN, as_count(step->count));
	if (room > 0 && step->count)
		screen_bar(y, x, room, SCREEN_ACCENT, (double)step->count / (double)highest);
}

/* Draw up to line @end, exclusive. Return the next line. */
static int draw_distribution(const struct progress *progress, int y, int end)
{
	bool paced = progress->figures.paced;
	const struct histogram *h =
		paced ? &progress->last.response_time : &progress->last.round_trip;
	struct histogram_step steps[STEPS_MAX];
	int room = end - y - 1;
	uint64_t highest = 0;
	size_t count;

	if (room < 0 || !h->count)
		return y;
	draw_quantiles(paced ? "response time" : "round trip", h, y++);
	if (room < 3)
		return y;
	count = histogram_steps(h, room < STEPS_MAX ? (size_t)room : STEPS_MAX, steps);
	for (size_t i = 0; i < count; i++)
		highest = steps[i].count > highest ? steps[i].count : highest;
	for (size_t i = 0; i < count; i++)
		draw_step(&steps[i], highest, y++);
	return y;
}

/* ---- steps or targets ---- */

static void draw_part(const struct progress_part *part, double highest, int y)
{
	int name = screen_columns() / 3, x = 1 + name + VALUE_WIDTH + 4;
	char text[40];

	snprintf(text, sizeof(text), "%s/s", as_count((uint64_t)(part->rate + 0.5)));
	screen_put(y, 1, name, SCREEN_PLAIN, SCREEN_LEFT, part->name);
	screen_put(y, 1 + name, VALUE_WIDTH + 2, SCREEN_BOLD, SCREEN_RIGHT, text);
	if (highest > 0 && part->rate > 0)
		screen_bar(y, x, screen_columns() - x - 1, SCREEN_ACCENT, part->rate / highest);
}

/* Return the number of lines: a third of the screen at most. */
static int parts_height(const struct progress *progress)
{
	int most = screen_rows() / 3, count = (int)progress->part_count;

	return count < most ? count : most;
}

static void draw_parts(const struct progress *progress, int y, int end)
{
	uint32_t shown = end > y ? (uint32_t)(end - y) : 0;
	double highest = 0;

	if (shown > progress->part_count)
		shown = progress->part_count;
	for (uint32_t i = 0; i < progress->part_count; i++)
		highest = fmax(highest, progress->parts[i].rate);
	for (uint32_t i = 0; i < shown; i++)
		draw_part(&progress->parts[i], highest, y + (int)i);
	if (shown && shown < progress->part_count)
		screen_line(end - 1, screen_columns() - 12, SCREEN_BOLD, " … %" PRIu32 " more",
			    progress->part_count - shown);
}

/* ---- the page ---- */

/* Return the lines of each chart: a high screen has room beside the distribution. */
static int chart_height(void)
{
	int height = (screen_rows() - FOOT_FROM - STEPS_MAX) / (PROGRESS_SERIES - 1);

	return height < 1 ? 1 : height > CHART_MAX ? CHART_MAX : height;
}

static void draw_measured(const struct progress *progress, int y, int end)
{
	int calm = screen_rows() >= CALM_FROM, parts = parts_height(progress);

	y = draw_past(progress, y + calm, chart_height()) + calm;
	y = draw_outcomes(progress, y);
	y = draw_distribution(progress, y, end - parts - calm);
	draw_parts(progress, y + calm, end);
}

void progress_view_draw(const struct progress *progress)
{
	int end = screen_rows() >= FOOT_FROM ? screen_rows() - 1 : screen_rows();

	screen_begin();
	draw_head(progress);
	draw_share(progress, 1);
	if (progress->figures.measured)
		draw_measured(progress, 2, end);
	if (end < screen_rows())
		screen_line(end, 0, SCREEN_DIM, " Ctrl-C ends the run and reports it");
	screen_end();
}
