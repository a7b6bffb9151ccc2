// SPDX-License-Identifier: MIT
/* Turns readings into figures, and shows them on a screen or line; see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sojourn/clock.h"
#include "sojourn/screen.h"
#include "sojourn/units.h"

#define LINE_START "\r\033[K"

void progress_open(struct progress *progress, const struct progress_settings *settings)
{
	int fd = fileno(settings->file);
	bool shown = !settings->quiet && isatty(fd);
	/* A background process that draws on the terminal is stopped (SIGTTOU). */
	bool in_foreground = tcgetpgrp(fd) == getpgrp();

	*progress = (struct progress){
		.file = shown ? settings->file : NULL,
		.view = shown && !settings->line && isatty(STDOUT_FILENO) && in_foreground,
		.what = settings->what,
	};
	progress_begin_phase(progress, 0, 0);
}

bool progress_is_shown(const struct progress *progress)
{
	return progress->file;
}

void progress_begin_phase(struct progress *progress, uint64_t duration_ns, uint64_t requests)
{
	progress->duration_ns = duration_ns;
	progress->requests = requests;
	progress->last = (struct stats){0};
	progress->figures.measured = false;
	progress->figures.count = 0;
	for (uint32_t i = 0; i < progress->part_count; i++)
		progress->parts[i].last = 0;
	progress->begin_ns = clock_now_ns();
	progress->last_ns = progress->begin_ns;
}

/* ---- the line ---- */

/* Print "  create 412/s" for each part that fits after @used columns: a wrapped line could not be rewritten. */
static void print_parts(const struct progress *progress, size_t used)
{
	struct winsize size;
	size_t columns =
		!ioctl(fileno(progress->file), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;

	for (uint32_t i = 0; i < progress->part_count; i++) {
		const struct progress_part *part = &progress->parts[i];
		const char *rate = as_count((uint64_t)(part->rate + 0.5));

		used += strlen(rate) + strlen(part->name) + strlen("   /s");
		if (used >= columns)
			return;
		fprintf(progress->file, "  %s %s/s", part->name, rate);
	}
}

static void print_measured(const struct progress *progress)
{
	const struct progress_figures *figures = &progress->figures;
	double p99_ns = figures->points[PROGRESS_P99][figures->count - 1];
	double per_second = figures->points[PROGRESS_RATE][figures->count - 1];
	int used = fprintf(progress->file,
			   LINE_START "%" PRIu64 " s  %s requests/s  p99 %s  errors %s  %s left",
			   figures->elapsed_s, as_count((uint64_t)(per_second + 0.5)),
			   isnan(p99_ns) ? "-" : as_time(p99_ns), as_count(figures->errors),
			   figures->left);

	print_parts(progress, used > 0 ? (size_t)used : 0);
}

static void print_line(const struct progress *progress)
{
	if (progress->figures.measured)
		print_measured(progress);
	else
		fprintf(progress->file, LINE_START "warming up  %" PRIu64 " s",
			progress->figures.elapsed_s);
	fflush(progress->file);
}

/* ---- showing ---- */

static void show(struct progress *progress)
{
	/* Fall back to the line on a terminal without a screen. */
	if (!progress->shown && progress->view)
		progress->view = !screen_open(progress->file, NULL);
	progress->shown = true;
	if (progress->view)
		progress_view_draw(progress);
	else
		print_line(progress);
}

void progress_resize(struct progress *progress)
{
	if (!progress->shown || !progress->view)
		return;
	screen_resize();
	progress_view_draw(progress);
}

void progress_end_phase(struct progress *progress)
{
	if (!progress->view)
		progress_close(progress);
}

void progress_close(struct progress *progress)
{
	if (!progress->shown)
		return;
	if (progress->view) {
		screen_close();
	} else {
		fputs(LINE_START, progress->file);
		fflush(progress->file);
	}
	progress->shown = false;
}

/* ---- figures ---- */

/* Return the finished share of the phase, by time or by requests, whichever ends it first. */
static double share_of(const struct progress *progress, double elapsed_ns)
{
	double by_time = progress->duration_ns ? elapsed_ns / (double)progress->duration_ns : NAN;
	double by_count = progress->requests
				  ? (double)progress->now.requests / (double)progress->requests
				  : NAN;

	return fmin(fmax(by_time, by_count), 1); /* fmin() and fmax() ignore a NAN */
}

/* Write how long the phase still takes: by time, or by remaining requests at this rate. */
static void tell_left(struct progress *progress, double elapsed_ns)
{
	uint64_t done = progress->now.requests;
	double left = (double)progress->duration_ns - elapsed_ns;
	char *text = progress->figures.left;
	size_t size = sizeof(progress->figures.left);

	if (progress->requests && done) {
		double by_count = done < progress->requests ? (double)(progress->requests - done) *
								      elapsed_ns / (double)done
							    : 0;

		left = progress->duration_ns && left < by_count ? left : by_count;
	} else if (!progress->duration_ns) {
		snprintf(text, size, "unknown");
		return;
	}
	snprintf(text, size, "%.0f s", left > 0 ? left / (double)NSEC_PER_SEC : 0);
}

static void tell_time(struct progress *progress, uint64_t now_ns)
{
	double elapsed_ns = (double)(now_ns - progress->begin_ns);

	progress->figures.elapsed_s = (uint64_t)(elapsed_ns / (double)NSEC_PER_SEC + 0.5);
	progress->figures.share = share_of(progress, elapsed_ns);
	tell_left(progress, elapsed_ns);
}

static void add_point(struct progress_figures *figures, const double point[static PROGRESS_SERIES])
{
	bool full = figures->count == PROGRESS_POINTS;
	size_t last = full ? PROGRESS_POINTS - 1 : figures->count;

	for (unsigned int i = 0; i < PROGRESS_SERIES; i++) {
		double *points = figures->points[i];

		if (full)
			memmove(points, points + 1, last * sizeof(*points));
		points[last] = point[i];
	}
	figures->count = last + 1;
}

/* Return the times of the last second, in `last`, which this overwrites. */
static const struct histogram *take_recent(struct progress *progress)
{
	const struct histogram *now = &progress->now.round_trip;
	struct histogram *last = &progress->last.round_trip, earlier;

	if (progress->figures.paced) {
		now = &progress->now.response_time;
		last = &progress->last.response_time;
	}
	earlier = *last;
	*last = *now;
	histogram_subtract(last, &earlier);
	return last;
}

static void tell_second(struct progress *progress, double seconds)
{
	struct progress_figures *figures = &progress->figures;
	uint64_t requests = progress->now.requests - progress->last.requests;
	uint64_t errors = stats_errors(&progress->now), before = stats_errors(&progress->last);
	const struct histogram *recent;
	double point[PROGRESS_SERIES];

	figures->paced = progress->now.response_time.count;
	figures->errors = errors;
	recent = take_recent(progress);
	point[PROGRESS_RATE] = (double)requests / seconds;
	point[PROGRESS_ERRORS] = (double)(errors - before) / seconds;
	point[PROGRESS_P50] = recent->count ? (double)histogram_quantile(recent, 0.5) : NAN;
	point[PROGRESS_P99] = recent->count ? (double)histogram_quantile(recent, 0.99) : NAN;
	add_point(figures, point);
}

static void tell_parts(struct progress *progress, double seconds)
{
	for (uint32_t i = 0; i < progress->part_count; i++) {
		struct progress_part *part = &progress->parts[i];

		part->rate = (double)(part->now - part->last) / seconds;
		part->last = part->now;
	}
}

void progress_warmup(struct progress *progress)
{
	progress->now.requests = 0;
	tell_time(progress, clock_now_ns());
	show(progress);
}

void progress_update(struct progress *progress)
{
	uint64_t now_ns = clock_now_ns();
	double seconds = (double)(now_ns - progress->last_ns) / (double)NSEC_PER_SEC;

	progress->figures.measured = true;
	tell_time(progress, now_ns);
	tell_second(progress, seconds);
	tell_parts(progress, seconds);
	progress->last = progress->now;
	progress->last_ns = now_ns;
	show(progress);
}
