/* SPDX-License-Identifier: MIT */
/*
 * The breakdown: the mean round trip of the driver minus the means of the observer's stages is what
 * the network and the client took. Means subtract exactly; percentiles do not, so that those shown
 * beside a stage are the stage's own.
 */
#include <math.h>
#include <string.h>

#include "report_parts.h"
#include "sojourn/clock.h"

/*
 * The stages of the residence, and the transmit queue where it was measured. `ack` is no part: it
 * passes while the response is under way to the client and after that.
 */
#define PART_COUNT (STAGE_TRANSMIT_QUEUE + 1)
#define ROW_COUNT  (1 + PART_COUNT)

struct row {
	const char *label;
	const char *missing; /* why there is no mean; NULL if there is */
	double mean_ns;
	const struct histogram *histogram; /* its percentiles; NULL if they are not per exchange */
	const char *remark;
	bool optional; /* of no concern where it is missing */
};

static const char *const stage_remarks[STAGE_COUNT] = {
	[STAGE_SOCKET_QUEUE] = "\u2190 waiting at the server",
	[STAGE_SERVICE] = "\u2190 true server-side latency",
};

/* One unit and precision for every mean, chosen by the largest. */
struct scale {
	double unit_ns;
	int decimals;
	const char *name;
};

static const struct scale *choose_scale(double largest_ns)
{
	static const struct {
		double below_ns;
		struct scale scale;
	} scales[] = {
		{10.0 * NSEC_PER_USEC, {1, 0, "ns"}},
		{10.0 * NSEC_PER_MSEC, {NSEC_PER_USEC, 1, "\u00b5s"}},
		{10.0 * NSEC_PER_SEC, {NSEC_PER_MSEC, 3, "ms"}},
		{INFINITY, {NSEC_PER_SEC, 3, "s"}},
	};
	size_t i = 0;

	while (i < ARRAY_SIZE(scales) - 1 && largest_ns >= scales[i].below_ns)
		i++;
	return &scales[i].scale;
}

/* What of an exchange lies in @stage, on average; behind the residence, of those that were sampled. */
static double stage_mean(const struct run_service *service, enum stage stage)
{
	const struct histogram *h = &service->stages[stage].histogram;

	if (stage >= STAGE_RESIDENCE_END)
		return histogram_mean(h);
	return (double)(stage == STAGE_ACCEPT_QUEUE ? service->accept_delay_ns : h->sum) /
	       (double)service->exchanges;
}

/* The stages, and before them what of @round_trip_ns they leave. */
static void fill_rows(const struct run_service *service, double round_trip_ns,
		      char labels[static PART_COUNT][SHORT_TEXT], struct row rows[static ROW_COUNT])
{
	rows[0] = (struct row){.label = "network + client", .mean_ns = round_trip_ns};
	for (unsigned int i = 0; i < PART_COUNT; i++) {
		const struct run_stage *stage = &service->stages[i];
		struct row *row = &rows[1 + i];

		*row = (struct row){
			.label = page_words(run_stage_names[i], labels[i]),
			.missing = report_missing(stage, i),
			.histogram = i == STAGE_ACCEPT_QUEUE ? NULL : &stage->histogram,
			.remark = stage_remarks[i],
			.optional = i >= STAGE_RESIDENCE_END,
		};
		if (row->missing)
			continue;
		row->mean_ns = stage_mean(service, i);
		rows[0].mean_ns -= row->mean_ns;
	}
}

static const struct row *largest_row(const struct row rows[static ROW_COUNT])
{
	const struct row *largest = &rows[0];

	for (unsigned int i = 1; i < ROW_COUNT; i++)
		if (rows[i].mean_ns > largest->mean_ns)
			largest = &rows[i];
	return largest;
}

static void print_scaled(const struct page *page, unsigned int columns, const struct scale *scale,
			 double ns)
{
	double value = ns / scale->unit_ns;

	/* Rounding leaves "-0.0" of what is a little below zero; that is zero at this precision. */
	if (fabs(value) < 0.5 * pow(10, -scale->decimals))
		value = 0;
	page_right(page, columns, "%.*f %s", scale->decimals, value, scale->name);
}

/* Where a row's mean begins; columns of "├ network + client     275.1 µs   67.8 %", of the percentiles, of the remark. */
#define LABEL_END	   19
#define ROW_COLUMNS	   39
#define PERCENTILE_COLUMNS 15
#define REMARK_COLUMNS	   29

static void print_percentiles(const struct page *page, const struct row *row)
{
	static const struct {
		const char *label;
		double quantile;
	} percentiles[] = {{"   p50", 0.5}, {"   p99", 0.99}};
	bool known = row->histogram && row->histogram->count;
	char text[SHORT_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(percentiles) && (known || row->remark); i++) {
		uint64_t value =
			known ? histogram_quantile(row->histogram, percentiles[i].quantile) : 0;

		page_left(page, 6, "%s", known ? percentiles[i].label : "");
		page_right(page, PERCENTILE_COLUMNS - 6, "%s",
			   known ? page_time((double)value, text) : "");
	}
}

static void print_row(const struct page *page, const struct row *row, const struct scale *scale,
		      double round_trip_ns)
{
	print_scaled(page, 11, scale, row->mean_ns);
	page_right(page, 7, "%.1f", round_trip_ns > 0 ? 100 * row->mean_ns / round_trip_ns : 0.0);
	page_left(page, 0, " %%");
	if (page->width >= ROW_COLUMNS + 2 * PERCENTILE_COLUMNS + REMARK_COLUMNS)
		print_percentiles(page, row);
	if (row->remark)
		page_left(page, 0, "   %s", row->remark);
}

static enum style row_style(const struct row *row, const struct row *largest)
{
	if (row == largest)
		return STYLE_HOT;
	return row->missing && row->optional ? STYLE_DIM : STYLE_PLAIN;
}

static void print_part(const struct page *page, const struct row *row, const struct row *largest,
		       const struct scale *scale, double round_trip_ns)
{
	enum style style = row_style(row, largest);

	page_style(page, style);
	page_left(page, LABEL_END - 2, "%s", row->label);
	if (!row->missing)
		print_row(page, row, scale, round_trip_ns);
	if (style == STYLE_HOT)
		page_style(page, STYLE_PLAIN);
	if (row->missing)
		page_wrap(page, LABEL_END, "not measured: %s", row->missing);
	else
		fputc('\n', page->file);
	if (style == STYLE_DIM)
		page_style(page, STYLE_PLAIN);
}

static void print_rows(const struct page *page, const struct row rows[static ROW_COUNT],
		       double round_trip_ns)
{
	const struct scale *scale = choose_scale(round_trip_ns);
	const struct row *largest = largest_row(rows);

	for (unsigned int i = 0; i < ROW_COUNT; i++) {
		page_style(page, STYLE_DIM);
		page_left(page, 2, "%s", i + 1 < ROW_COUNT ? "\u251c" : "\u2514");
		print_part(page, &rows[i], largest, scale, round_trip_ns);
	}
}

/* What keeps the rows from meaning exactly what they say. */
static void print_notes(const struct page *page, const struct run *run,
			const struct run_service *service, const struct row rows[static ROW_COUNT])
{
	char seen[SHORT_TEXT], sent[SHORT_TEXT];
	bool missing = false;

	for (unsigned int i = 0; i < ROW_COUNT; i++)
		missing |= rows[i].missing && !rows[i].optional;
	if (missing)
		page_wrap(page, 0, "note: network + client includes the stages not measured");
	if (service->exchanges != run->driver->requests)
		page_wrap(page, 0,
			  "note: the observer saw %s exchanges, the driver completed %s requests:"
			  " the means are of different sets",
			  page_count(service->exchanges, seen),
			  page_count(run->driver->requests, sent));
	if (rows[0].mean_ns < 0)
		page_wrap(page, 0,
			  "note: network + client is negative: the stages hold more than the"
			  " driver's round trips");
}

void report_tree(const struct page *page, const struct run *run, const struct run_service *service)
{
	double round_trip_ns = histogram_mean(&run->driver->round_trip);
	char labels[PART_COUNT][SHORT_TEXT];
	struct row rows[ROW_COUNT];

	fill_rows(service, round_trip_ns, labels, rows);
	report_round_trip(page, run->driver);
	print_rows(page, rows, round_trip_ns);
	report_state(page, run, service);
	print_notes(page, run, service, rows);
}
