// SPDX-License-Identifier: MIT
/* Progress as one line, rewritten each second. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "progress_faces.h"
#include "sojourn/units.h"

#define LINE_START "\r\033[K"

/* A wrapped line could not be rewritten. */
static size_t columns_of(FILE *file)
{
	struct winsize size;

	return !ioctl(fileno(file), TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

/* Print "  create 412/s" for each part that fits after @used columns. */
static void print_parts(const struct progress *progress, size_t used)
{
	size_t columns = columns_of(progress->file);
	char rate[32];

	for (uint32_t i = 0; i < progress->part_count; i++) {
		const struct progress_part *part = &progress->parts[i];

		units_format_count((uint64_t)(part->rate + 0.5), rate, sizeof(rate));
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
	char rate[32], errors[32], p99[32] = "-";
	int used;

	if (!isnan(p99_ns))
		units_format_time(p99_ns, p99, sizeof(p99));
	used = fprintf(progress->file,
		       LINE_START "%" PRIu64 " s  %s requests/s  p99 %s  errors %s  %s left",
		       figures->elapsed_s,
		       units_format_count((uint64_t)(per_second + 0.5), rate, sizeof(rate)), p99,
		       units_format_count(figures->errors, errors, sizeof(errors)), figures->left);
	print_parts(progress, used > 0 ? (size_t)used : 0);
}

void progress_line_print(const struct progress *progress)
{
	if (progress->figures.measured)
		print_measured(progress);
	else
		fprintf(progress->file, LINE_START "warming up  %" PRIu64 " s",
			progress->figures.elapsed_s);
	fflush(progress->file);
}

void progress_line_clear(const struct progress *progress)
{
	fputs(LINE_START, progress->file);
	fflush(progress->file);
}
