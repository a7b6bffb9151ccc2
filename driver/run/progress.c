// SPDX-License-Identifier: MIT
/* The line that a terminal shows during the run, rewritten once a second. */
#include "progress.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sojourn/clock.h"
#include "sojourn/units.h"

#define LINE_START "\r\033[K"

void progress_open(struct progress *progress, FILE *file, bool quiet)
{
	bool shown = !quiet && isatty(fileno(file));

	*progress = (struct progress){.file = shown ? file : NULL};
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
	for (uint32_t i = 0; i < progress->part_count; i++)
		progress->parts[i].last = 0;
	progress->begin_ns = clock_now_ns();
	progress->last_ns = progress->begin_ns;
}

static uint64_t elapsed_seconds(const struct progress *progress, uint64_t now_ns)
{
	return (now_ns - progress->begin_ns + NSEC_PER_SEC / 2) / NSEC_PER_SEC;
}

void progress_warmup(struct progress *progress)
{
	fprintf(progress->file, LINE_START "warming up  %" PRIu64 " s",
		elapsed_seconds(progress, clock_now_ns()));
	fflush(progress->file);
	progress->shown = true;
}

/* How long it will go on: by time, or by the requests that are left at the rate so far. */
static const char *format_eta(const struct progress *progress, uint64_t now_ns, char *text,
			      size_t size)
{
	double elapsed = (double)(now_ns - progress->begin_ns);
	uint64_t done = progress->now.requests;
	double left = (double)progress->duration_ns - elapsed;

	if (progress->requests && done) {
		double by_count = done < progress->requests ? (double)(progress->requests - done) *
								      elapsed / (double)done
							    : 0;

		left = progress->duration_ns && left < by_count ? left : by_count;
	} else if (!progress->duration_ns) {
		return "unknown";
	}
	snprintf(text, size, "%.0f s", left > 0 ? left / (double)NSEC_PER_SEC : 0);
	return text;
}

/* A line that wraps cannot be rewritten. */
static size_t columns_of(FILE *file)
{
	struct winsize size;

	return !ioctl(fileno(file), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

/* "  create 412/s" each, as far as there is room behind @used columns. */
static void print_parts(struct progress *progress, double seconds, size_t used)
{
	size_t columns = columns_of(progress->file);
	bool room = true;
	char rate[32];

	for (uint32_t i = 0; i < progress->part_count; i++) {
		struct progress_part *part = &progress->parts[i];
		double per_second = (double)(part->now - part->last) / seconds;
		size_t length;

		units_format_count((uint64_t)(per_second + 0.5), rate, sizeof(rate));
		length = strlen(rate) + strlen(part->name) + strlen("   /s");
		room = room && used + length < columns;
		if (room)
			fprintf(progress->file, "  %s %s/s", part->name, rate);
		used += length;
		part->last = part->now;
	}
}

void progress_update(struct progress *progress)
{
	uint64_t now_ns = clock_now_ns();
	double seconds = (double)(now_ns - progress->last_ns) / (double)NSEC_PER_SEC;
	uint64_t requests = progress->now.requests - progress->last.requests;
	char rate[32], errors[32], p99[32], eta[32];
	int used;

	/* What is left in `last` is the second that has passed; then it becomes this reading. */
	bool paced = progress->now.response_time.count;
	struct histogram *recent =
		paced ? &progress->last.response_time : &progress->last.round_trip;
	struct histogram earlier = *recent;

	*recent = paced ? progress->now.response_time : progress->now.round_trip;
	histogram_subtract(recent, &earlier);
	used = fprintf(progress->file,
		       LINE_START "%" PRIu64 " s  %s requests/s  p99 %s  errors %s  %s left",
		       elapsed_seconds(progress, now_ns),
		       units_format_count((uint64_t)((double)requests / seconds + 0.5), rate,
					  sizeof(rate)),
		       recent->count
			       ? units_format_duration((double)histogram_quantile(recent, 0.99),
						       p99, sizeof(p99))
			       : "-",
		       units_format_count(stats_errors(&progress->now), errors, sizeof(errors)),
		       format_eta(progress, now_ns, eta, sizeof(eta)));
	print_parts(progress, seconds, used > 0 ? (size_t)used : 0);
	fflush(progress->file);
	progress->shown = true;
	progress->last = progress->now;
	progress->last_ns = now_ns;
}

void progress_clear(struct progress *progress)
{
	if (!progress->shown)
		return;
	fputs(LINE_START, progress->file);
	fflush(progress->file);
	progress->shown = false;
}
