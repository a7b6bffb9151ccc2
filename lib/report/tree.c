// SPDX-License-Identifier: MIT
/*
 * The breakdown: the average parts of a round trip (means.c chooses the exchanges). Means add up
 * and percentiles do not: those shown next to a stage are the stage's own.
 */
#include <math.h>

#include "parts.h"
#include "report/observed/means.h"
#include "sojourn/text.h"

#define ROW_COUNT (1 + REPORT_MEAN_STAGES + 1)

struct row {
	const char *label;
	const char *missing; /* why there is no mean; NULL: there is */
	const char *lacks;   /* in words: "not measured" */
	double mean_ns;
	const struct histogram *histogram; /* its percentiles; NULL: not per exchange */
	const char *remark;
	bool optional; /* may be missing without a note */
};

/* Columns of the longest remark, with three blanks before. */
#define WIDEST_REMARK 29U

static const char *const stage_remarks[STAGE_COUNT] = {
	[STAGE_SOCKET_QUEUE] = "\u2190 waiting at the server",
	[STAGE_SERVICE] = "\u2190 true server-side latency",
};

/* Fill rows for the network, the stages, and their excess over the round trip, if any. */
static size_t fill_rows(const struct run_service *service, const struct report_means *means,
			char labels[static REPORT_MEAN_STAGES][SHORT_TEXT],
			struct row rows[static ROW_COUNT])
{
	size_t count = 0;

	rows[count++] = (struct row){
		.label = "network + client",
		.missing = means->network_unknown,
		.lacks = "not known",
		.mean_ns = means->network_ns,
	};
	for (unsigned int i = 0; i < REPORT_MEAN_STAGES; i++) {
		/* Stages not requested are reported once, elsewhere. */
		if (!report_has_stage(service, i) ||
		    (means->stages[i].missing && report_is_unasked(&service->stages[i])))
			continue;
		rows[count++] = (struct row){
			.label = page_words(means->stages[i].name, labels[i]),
			.missing = means->stages[i].missing,
			.lacks = "not measured",
			.mean_ns = means->stages[i].mean_ns,
			/* The accept queue's percentiles are per connection. */
			.histogram = i == STAGE_ACCEPT_QUEUE || !means->stages[i].histogram->count
					     ? NULL
					     : means->stages[i].histogram,
			.remark = stage_remarks[i],
			.optional = i >= STAGE_RESIDENCE_END,
		};
	}
	if (means->overhang_ns > 0)
		rows[count++] = (struct row){
			.label = "after its end",
			.mean_ns = -means->overhang_ns,
			.remark = "\u2190 the client had it before",
		};
	return count;
}

static const struct row *largest_row(const struct row *rows, size_t count)
{
	const struct row *largest = &rows[0];

	for (size_t i = 1; i < count; i++)
		if (rows[i].mean_ns > largest->mean_ns)
			largest = &rows[i];
	return largest;
}

/* Minimum column of a row's mean; columns of mean, share and percentile. */
#define LABEL_END	   19
#define MEAN_COLUMNS	   9
#define SHARE_COLUMNS	   8
#define PERCENTILE_COLUMNS 14
#define PERCENTILES	   2U

/* An inferred accept queue has the longest label. */
static unsigned int label_end(const struct report_means *means)
{
	unsigned int end = 2 + text_columns(means->stages[STAGE_ACCEPT_QUEUE].name) + 1;

	return end > LABEL_END ? end : LABEL_END;
}

/* The room after a row's label: a narrow page omits percentiles, then remarks. */
struct room {
	bool percentiles;
	bool remark;
};

static struct room room_for(const struct page *page, const struct report_means *means,
			    const struct row *row)
{
	unsigned int left = label_end(means) + MEAN_COLUMNS + SHARE_COLUMNS;
	unsigned int remark = row->remark ? 3 + text_columns(row->remark) : 0;
	bool percentiles = page->width >= left + PERCENTILES * PERCENTILE_COLUMNS + WIDEST_REMARK;

	return (struct room){
		.percentiles = percentiles,
		.remark = remark && page->width >= left + remark,
	};
}

static void print_percentiles(const struct page *page, const struct row *row)
{
	static const struct {
		const char *label;
		double quantile;
	} percentiles[PERCENTILES] = {{"  p50", 0.5}, {"  p99", 0.99}};

	for (size_t i = 0; i < PERCENTILES; i++) {
		uint64_t value = histogram_quantile(row->histogram, percentiles[i].quantile);

		page_left(page, 5, "%s", percentiles[i].label);
		page_right(page, PERCENTILE_COLUMNS - 5, "%s", as_time((double)value));
	}
}

/* Without the network's part no share of the round trip is known. */
static void print_share(const struct page *page, const struct row *row,
			const struct report_means *means, bool more)
{
	double percent = means->round_trip_ns > 0 ? 100 * row->mean_ns / means->round_trip_ns : 0;

	if (!means->network_unknown)
		page_right(page, SHARE_COLUMNS, "%s", as_share(percent));
	else if (more)
		page_left(page, SHARE_COLUMNS, "%s", "");
}

static void print_row(const struct page *page, const struct row *row,
		      const struct report_means *means)
{
	struct room room = room_for(page, means, row);
	bool percentiles = room.percentiles && row->histogram;

	page_right(page, MEAN_COLUMNS, "%s", as_time(row->mean_ns));
	print_share(page, row, means, room.remark || percentiles);
	if (percentiles)
		print_percentiles(page, row);
	else if (room.percentiles && room.remark)
		page_left(page, PERCENTILES * PERCENTILE_COLUMNS, "%s", "");
	if (room.remark)
		page_left(page, 0, "   %s", row->remark);
}

static enum style row_style(const struct row *row, const struct row *largest)
{
	if (row == largest)
		return STYLE_HOT;
	return row->missing && row->optional ? STYLE_DIM : STYLE_PLAIN;
}

static void print_part(const struct page *page, const struct row *row, const struct row *largest,
		       const struct report_means *means)
{
	enum style style = row_style(row, largest);

	page_style(page, style);
	page_left(page, label_end(means) - 2, "%s", row->label);
	if (!row->missing)
		print_row(page, row, means);
	if (style == STYLE_HOT)
		page_style(page, STYLE_PLAIN);
	if (row->missing)
		page_wrap(page, label_end(means), "%s: %s", row->lacks, row->missing);
	else
		fputc('\n', page->file);
	if (style == STYLE_DIM)
		page_style(page, STYLE_PLAIN);
}

static void print_rows(const struct page *page, const struct report_means *means,
		       const struct row *rows, size_t count, bool more)
{
	const struct row *largest = largest_row(rows, count);

	for (size_t i = 0; i < count; i++) {
		page_style(page, STYLE_DIM);
		page_left(page, 2, "%s", more || i + 1 < count ? "\u251c" : "\u2514");
		print_part(page, &rows[i], largest, means);
	}
}

/* Return whether a row's share of the round trip is negligible. */
static bool is_nothing(const struct row *row, const struct report_means *means)
{
	return !row->missing && !means->network_unknown &&
	       fabs(row->mean_ns) < 0.0005 * means->round_trip_ns;
}

/* Remove negligible rows. Return how many are left, and the sum of the others in @ret_sum. */
static size_t drop_nothings(const struct report_means *means, struct row *rows, size_t count,
			    char *label, size_t size, struct row *ret_sum)
{
	size_t kept = 0, dropped = 0, used = 0;

	*ret_sum = (struct row){.label = label};
	for (size_t i = 0; i < count; i++) {
		if (!is_nothing(&rows[i], means)) {
			rows[kept++] = rows[i];
			continue;
		}
		if (used < size)
			used += (size_t)snprintf(label + used, size - used, "%s%s",
						 dropped ? ", " : "", rows[i].label);
		ret_sum->mean_ns += rows[i].mean_ns;
		dropped++;
	}
	if (!dropped)
		ret_sum->label = NULL;
	return kept;
}

/* Print the last line of a tree, for its negligible rows. */
static void print_nothings(const struct page *page, const struct row *sum)
{
	page_style(page, STYLE_DIM);
	page_left(page, 2, "\u2514");
	page_wrap(page, 2, "%s: %s", sum->label, as_time(sum->mean_ns));
	page_style(page, STYLE_PLAIN);
}

static void print_basis(const struct page *page, const struct run *run,
			const struct report_means *means)
{
	char text[REPORT_MEANS_TEXT];

	/* Joining all is the normal case. */
	if (!report_means_basis(run, means, text) ||
	    (!page->verbose && means->of_joined == run->driver->requests))
		return;
	page_style(page, STYLE_DIM);
	page_left(page, 2, "\u2502");
	page_wrap(page, 2, "means of %s", text);
	page_style(page, STYLE_PLAIN);
}

/* Print how the service's exchanges and the driver's requests differ. */
static void print_difference(const struct page *page, const struct run *run,
			     const struct run_service *service, const struct report_means *means)
{
	const char *hence = "the means are of different sets";

	if (service->exchanges == run->driver->requests)
		return;
	if (means->of_joined > service->exchanges)
		hence = "the means are of several services, what follows is of this one";
	else if (means->of_joined)
		hence = "the means are the driver's, what follows is of all exchanges";
	page_wrap(page, 0,
		  "note: the observer saw %s exchanges, the driver completed %s requests: %s",
		  as_count(service->exchanges), as_count(run->driver->requests), hence);
}

/* Joined exchanges are all timed. */
static void print_untimed(const struct page *page, const struct run_service *service,
			  const struct report_means *means)
{
	if (means->of_joined || !service->losses[RUN_LOSS_UNTIMED])
		return;
	page_wrap(page, 0,
		  "note: %s of the %s exchanges were not timed: the stages are those of the others",
		  as_count(service->losses[RUN_LOSS_UNTIMED]), as_count(service->exchanges));
}

/* Print caveats on the rows. */
static void print_notes(const struct page *page, const struct run *run,
			const struct run_service *service, const struct report_means *means)
{
	bool missing = false;

	for (enum stage i = 0; i < STAGE_RESIDENCE_END; i++)
		missing |= means->stages[i].missing && report_has_stage(service, i);
	if (missing)
		page_wrap(page, 0, "note: network + client includes the stages not measured");
	if (means->transmit_unknown)
		page_wrap(page, 0,
			  "note: network + client includes the transmit queue of %s joined"
			  " exchanges whose last byte was not seen to leave",
			  as_count(means->transmit_unknown));
	print_difference(page, run, service, means);
	print_untimed(page, service, means);
	report_print_service_note(page, service);
}

static void print_undivided(const struct page *page, const char *why)
{
	page_style(page, STYLE_DIM);
	page_left(page, 2, "\u2514");
	page_style(page, STYLE_PLAIN);
	page_wrap(page, 2, "not divided: %s", why);
}

static void print_tree(const struct page *page, const struct run *run,
		       const struct run_service *service)
{
	char labels[REPORT_MEAN_STAGES][SHORT_TEXT], nothings[ROW_COUNT * SHORT_TEXT];
	struct row rows[ROW_COUNT], sum = {0};
	struct report_means means;
	size_t count, kept;

	report_means(run, service, &means);
	count = fill_rows(service, &means, labels, rows);
	print_basis(page, run, &means);
	kept = page->verbose ? count
			     : drop_nothings(&means, rows, count, nothings, sizeof(nothings), &sum);
	print_rows(page, &means, rows, kept, sum.label);
	if (sum.label)
		print_nothings(page, &sum);
	print_notes(page, run, service, &means);
}

void report_tree(const struct page *page, const struct run *run, const struct run_service *service)
{
	char why[REPORT_UNDIVIDED_TEXT];

	report_round_trip(page, run->driver);
	if (!report_undivided(run, service, why)) {
		print_tree(page, run, service);
		return;
	}
	print_undivided(page, why);
	report_print_service_note(page, service);
	if (page->verbose)
		report_stages(page, service);
}
