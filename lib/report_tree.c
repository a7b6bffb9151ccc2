/* SPDX-License-Identifier: MIT */
/*
 * The breakdown: what a round trip consists of, on average (report_means.c says of which exchanges). Means
 * add up; percentiles do not, so that those shown beside a stage are the stage's own.
 */
#include <math.h>
#include <string.h>

#include "report_means.h"
#include "report_parts.h"
#include "sojourn/clock.h"

#define ROW_COUNT (1 + REPORT_MEAN_STAGES + 1)

struct row {
	const char *label;
	const char *missing; /* why there is no mean; NULL if there is */
	const char *lacks;   /* what that is called: "not measured" */
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

/* Those of accept_queue are per connection. */
static const struct histogram *percentiles_of(const struct report_mean *mean, enum stage stage)
{
	return stage == STAGE_ACCEPT_QUEUE || !mean->histogram->count ? NULL : mean->histogram;
}

/* Network, the stages, and what these hold beyond the round trip, if anything. */
static size_t fill_rows(const struct report_means *means,
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
	for (unsigned int i = 0; i < REPORT_MEAN_STAGES; i++)
		rows[count++] = (struct row){
			.label = page_words(run_stage_names[i], labels[i]),
			.missing = means->stages[i].missing,
			.lacks = "not measured",
			.mean_ns = means->stages[i].mean_ns,
			.histogram = percentiles_of(&means->stages[i], i),
			.remark = stage_remarks[i],
			.optional = i >= STAGE_RESIDENCE_END,
		};
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
	bool known = row->histogram;
	char text[SHORT_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(percentiles) && (known || row->remark); i++) {
		uint64_t value =
			known ? histogram_quantile(row->histogram, percentiles[i].quantile) : 0;

		page_left(page, 6, "%s", known ? percentiles[i].label : "");
		page_right(page, PERCENTILE_COLUMNS - 6, "%s",
			   known ? page_time((double)value, text) : "");
	}
}

/* Without the network's part nothing is known to be a share of the round trip: blanks, where @more follows. */
static void print_share(const struct page *page, const struct row *row,
			const struct report_means *means, bool more)
{
	double percent = means->round_trip_ns > 0 ? 100 * row->mean_ns / means->round_trip_ns : 0;

	if (means->network_unknown) {
		page_left(page, more ? 7 + 2 : 0, "%s", "");
		return;
	}
	/* As above: no "-0.0". */
	page_right(page, 7, "%.1f", fabs(percent) < 0.05 ? 0 : percent);
	page_left(page, 0, " %%");
}

static void print_row(const struct page *page, const struct row *row, const struct scale *scale,
		      const struct report_means *means)
{
	bool wide = page->width >= ROW_COLUMNS + 2 * PERCENTILE_COLUMNS + REMARK_COLUMNS;

	print_scaled(page, 11, scale, row->mean_ns);
	print_share(page, row, means, row->remark || (wide && row->histogram));
	if (wide)
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
		       const struct scale *scale, const struct report_means *means)
{
	enum style style = row_style(row, largest);

	page_style(page, style);
	page_left(page, LABEL_END - 2, "%s", row->label);
	if (!row->missing)
		print_row(page, row, scale, means);
	if (style == STYLE_HOT)
		page_style(page, STYLE_PLAIN);
	if (row->missing)
		page_wrap(page, LABEL_END, "%s: %s", row->lacks, row->missing);
	else
		fputc('\n', page->file);
	if (style == STYLE_DIM)
		page_style(page, STYLE_PLAIN);
}

static void print_rows(const struct page *page, const struct report_means *means,
		       const struct row *rows, size_t count)
{
	const struct row *largest = largest_row(rows, count);
	const struct scale *scale = choose_scale(fmax(means->round_trip_ns, largest->mean_ns));

	for (size_t i = 0; i < count; i++) {
		page_style(page, STYLE_DIM);
		page_left(page, 2, "%s", i + 1 < count ? "\u251c" : "\u2514");
		print_part(page, &rows[i], largest, scale, means);
	}
}

static void print_basis(const struct page *page, const struct run *run,
			const struct report_means *means)
{
	char text[REPORT_MEANS_TEXT];

	if (!report_means_basis(run, means, text))
		return;
	page_style(page, STYLE_DIM);
	page_left(page, 2, "\u2502");
	page_wrap(page, 2, "means of %s", text);
	page_style(page, STYLE_PLAIN);
}

/* How what the observer saw of the service differs from what the driver did. */
static void print_difference(const struct page *page, const struct run *run,
			     const struct run_service *service, const struct report_means *means)
{
	char seen[SHORT_TEXT], sent[SHORT_TEXT];
	const char *hence = "the means are of different sets";

	if (service->exchanges == run->driver->requests)
		return;
	if (means->of_joined > service->exchanges)
		hence = "the means are of several services, what follows is of this one";
	else if (means->of_joined)
		hence = "the means are the driver's, what follows is of all exchanges";
	page_wrap(page, 0,
		  "note: the observer saw %s exchanges, the driver completed %s requests: %s",
		  page_count(service->exchanges, seen), page_count(run->driver->requests, sent),
		  hence);
}

/* Joined exchanges are all timed. */
static void print_untimed(const struct page *page, const struct run_service *service,
			  const struct report_means *means)
{
	char untimed[SHORT_TEXT], all[SHORT_TEXT];

	if (means->of_joined || !service->losses[RUN_LOSS_UNTIMED])
		return;
	page_wrap(page, 0,
		  "note: %s of the %s exchanges were not timed: the stages are those of the others",
		  page_count(service->losses[RUN_LOSS_UNTIMED], untimed),
		  page_count(service->exchanges, all));
}

/* What keeps the rows from meaning exactly what they say. */
static void print_notes(const struct page *page, const struct run *run,
			const struct run_service *service, const struct report_means *means,
			const struct row *rows, size_t count)
{
	bool missing = false;
	char text[SHORT_TEXT];

	for (size_t i = 1; i < count; i++)
		missing |= rows[i].missing && !rows[i].optional;
	if (missing)
		page_wrap(page, 0, "note: network + client includes the stages not measured");
	if (means->transmit_unknown)
		page_wrap(page, 0,
			  "note: network + client includes the transmit queue of %s joined"
			  " exchanges whose last byte was not seen to leave",
			  page_count(means->transmit_unknown, text));
	print_difference(page, run, service, means);
	print_untimed(page, service, means);
}

void report_tree(const struct page *page, const struct run *run, const struct run_service *service)
{
	char labels[REPORT_MEAN_STAGES][SHORT_TEXT];
	struct row rows[ROW_COUNT];
	struct report_means means;
	size_t count;

	report_means(run, service, &means);
	count = fill_rows(&means, labels, rows);
	report_round_trip(page, run->driver);
	print_basis(page, run, &means);
	print_rows(page, &means, rows, count);
	report_state(page, run, service);
	print_notes(page, run, service, &means, rows, count);
}
