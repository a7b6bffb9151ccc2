/* SPDX-License-Identifier: MIT */
/* The report as Markdown tables: what one pastes into an issue. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "report_means.h"
#include "report_parts.h"
#include "sojourn/compare.h"
#include "sojourn/finding.h"
#include "sojourn/report.h"

/* Text of elsewhere in a table's cell or a line: nothing in it may be markup. */
static void put_text(const char *text, FILE *file)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ')
			fputc(' ', file);
		else if (strchr("\\`*_{}[]<>()#+!|~$", *text))
			fprintf(file, "\\%c", *text);
		else
			fputc(*text, file);
	}
}

static void put_code(const char *text, FILE *file)
{
	fputs("\n```sh\n", file);
	for (; *text; text++)
		fputc(*text == '`' ? '\'' : *text, file);
	fputs("\n```\n", file);
}

static void put_time(double ns, FILE *file)
{
	char text[SHORT_TEXT];

	fprintf(file, " %s |", page_time(ns, text));
}

static void put_histogram(const char *name, const struct histogram *h, FILE *file)
{
	static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
	char text[SHORT_TEXT];

	fprintf(file, "| %s | %s |", name, page_count(h->count, text));
	put_time(histogram_mean(h), file);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		put_time((double)histogram_quantile(h, quantiles[i]), file);
	put_time((double)h->max, file);
	fputc('\n', file);
}

static void put_latency_head(FILE *file)
{
	fputs("\n| | count | mean | p50 | p90 | p99 | p99.9 | max |\n"
	      "|---|--:|--:|--:|--:|--:|--:|--:|\n",
	      file);
}

static void put_notes(const struct run_driver *driver, FILE *file)
{
	struct report_note notes[REPORT_NOTES];
	size_t count = report_notes(driver, notes);

	for (size_t i = 0; i < count; i++)
		fprintf(file, "\nnote: %s\n", notes[i].text);
}

static void put_driver(const struct run_driver *driver, FILE *file)
{
	char requests[SHORT_TEXT], rate[SHORT_TEXT], errors[SHORT_TEXT];

	if (driver->limited) {
		fputs("\n**Limited by the driver, not by the server** (", file);
		put_text(driver->limited->by, file);
		fputs("): ", file);
		put_text(driver->limited->why, file);
		fputc('\n', file);
	}
	fprintf(file, "\n%s requests, %s/s, %" PRIu32 " connections, %s errors\n",
		page_count(driver->requests, requests),
		page_rate(run_driver_timely(driver), driver->duration_ns, rate),
		driver->connections, page_count(run_driver_errors(driver), errors));
	put_notes(driver, file);
	put_latency_head(file);
	if (driver->response_time.count)
		put_histogram("response time", &driver->response_time, file);
	put_histogram("round trip", &driver->round_trip, file);
	if (driver->connect.count)
		put_histogram("connect", &driver->connect, file);
}

static void put_mean(const char *name, double mean_ns, const struct report_means *means, FILE *file)
{
	fprintf(file, "| %s |", name);
	put_time(mean_ns, file);
	if (!means->network_unknown && means->round_trip_ns > 0)
		fprintf(file, " %.1f %% |\n", 100 * mean_ns / means->round_trip_ns);
	else
		fputs(" - |\n", file);
}

/* What the driver's round trip consists of. */
static void put_means(const struct run *run, FILE *file)
{
	const struct run_service *service = report_driven_service(run);
	char text[REPORT_MEANS_TEXT], name[SHORT_TEXT];
	struct report_means means;

	if (!service)
		return;
	report_means(run, service, &means);
	fprintf(file,
		"\nWhere a request's time goes, means of %s:\n\n| part | mean | share "
		"|\n|---|--:|--:|\n",
		report_means_basis(run, &means, text) ? text : "all requests");
	if (!means.network_unknown)
		put_mean("network + client", means.network_ns, &means, file);
	for (unsigned int i = 0; i < REPORT_MEAN_STAGES; i++)
		if (!means.stages[i].missing)
			put_mean(page_words(run_stage_names[i], name), means.stages[i].mean_ns,
				 &means, file);
	if (means.overhang_ns > 0)
		put_mean("after its end", -means.overhang_ns, &means, file);
	if (means.network_unknown)
		fprintf(file, "\nnetwork + client: not known: %s\n", means.network_unknown);
}

static void put_lost(const struct run *run, const struct run_service *service, FILE *file)
{
	struct report_caveat caveat;
	char text[SHORT_TEXT];

	fprintf(file, "\nlost: %s\n", page_count(report_lost(run, service), text));
	for (unsigned int i = 0; i < REPORT_CAVEATS; i++)
		if (report_caveat(service, i, &caveat))
			fprintf(file, "- %s %s\n", page_count(caveat.count, text), caveat.text);
}

/* What service divides into. */
static void put_split(const struct run_stage *parts, FILE *file)
{
	char name[SHORT_TEXT];

	for (unsigned int i = 0; parts->measured && i < RUN_CPU_COUNT; i++) {
		snprintf(name, sizeof(name), "of it %s", run_cpu_names[i]);
		put_histogram(name, &parts[i].histogram, file);
	}
}

/* How the ends of those stages were told for which there are several ways. */
static void put_source(const struct run_service *service, enum stage which, FILE *file)
{
	const struct run_stage *stage = &service->stages[which];
	char name[SHORT_TEXT];

	if (!stage->measured || !stage->source)
		return;
	fprintf(file, "\n%s: by ", page_words(run_stage_names[which], name));
	put_text(stage->source, file);
	fputc('\n', file);
}

static void put_service(const struct run *run, const struct run_service *service, FILE *file)
{
	char name[SHORT_TEXT];

	fprintf(file, "\n### %s ", service->protocol);
	put_text(service->address, file);
	fprintf(file, ":%u\n", service->port);
	put_latency_head(file);
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		const struct run_stage *stage = &service->stages[i];

		if (stage->measured)
			put_histogram(page_words(run_stage_names[i], name), &stage->histogram,
				      file);
		if (i == STAGE_SERVICE)
			put_split(service->cpu, file);
	}
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		const struct run_stage *stage = &service->stages[i];

		if (stage->measured || !stage->reason)
			continue;
		fprintf(file, "\n%s: not measured: ", page_words(run_stage_names[i], name));
		put_text(stage->reason, file);
		fputc('\n', file);
	}
	put_source(service, STAGE_ACCEPT_QUEUE, file);
	put_source(service, STAGE_TRANSMIT_QUEUE, file);
	put_lost(run, service, file);
}

static void put_step_head(const struct run_joined *joined, FILE *file)
{
	struct report_part part;
	unsigned int columns = 3;

	fputs("\nWhere the time of each step goes, mean of the joined exchanges:\n\n"
	      "| step | joined | mean |",
	      file);
	for (size_t i = 0; i < REPORT_PARTS; i++) {
		if (!report_part(joined, &joined->sum, i, &part))
			continue;
		fprintf(file, part.name[0] == ' ' ? " of it%s |" : " %s |",
			part.name + (part.name[0] == ' '));
		columns++;
	}
	fputs("\n|---|", file);
	for (unsigned int i = 1; i < columns; i++)
		fputs("--:|", file);
	fputc('\n', file);
}

static void put_step(const struct run_joined *joined, const struct run_joined_step *step,
		     FILE *file)
{
	double count = (double)step->count;
	char text[SHORT_TEXT];
	struct report_part part;

	fputs("| ", file);
	put_text(step->name, file);
	fprintf(file, " | %s |", page_count(step->count, text));
	put_time((double)run_parts_total(&step->sum) / count, file);
	for (size_t i = 0; i < REPORT_PARTS; i++)
		if (report_part(joined, &step->sum, i, &part))
			fprintf(file, " %s, %.0f %% |",
				page_time((double)part.sum_ns / count, text), part.share);
	fputc('\n', file);
}

/* Steps of which no exchange was joined have no line. */
static void put_steps(const struct run_joined *joined, FILE *file)
{
	bool headed = false;

	for (size_t i = 0; i < joined->step_count; i++) {
		if (!joined->steps[i].count)
			continue;
		if (!headed)
			put_step_head(joined, file);
		headed = true;
		put_step(joined, &joined->steps[i], file);
	}
}

static void put_finding(const struct run_finding *finding, FILE *file)
{
	fprintf(file, "\n**%s**: ", finding->severity);
	put_text(finding->what ? finding->what : finding->id, file);
	fputc('\n', file);
	for (size_t i = 0; finding->evidence && finding->evidence[i]; i++) {
		fputs("- ", file);
		put_text(finding->evidence[i], file);
		fputc('\n', file);
	}
	if (finding->command)
		put_code(finding->command, file);
}

static void put_run(const struct run *run, const char *name, FILE *file)
{
	fputs("## ", file);
	put_text(run->driver && run->driver->target ? run->driver->target : name, file);
	fputs("\n\n", file);
	for (size_t i = 0; i < 4; i++) {
		const char *const parts[] = {run->tool, run->host, run->kernel, run->started_at};

		if (!parts[i])
			continue;
		put_text(parts[i], file);
		fputs(i < 3 ? ", " : "\n", file);
	}
	if (run->driver)
		put_driver(run->driver, file);
	put_means(run, file);
	if (run->joined)
		put_steps(run->joined, file);
	for (size_t i = 0; i < run->service_count; i++)
		put_service(run, &run->services[i], file);
	for (size_t i = 0; i < run->finding_count; i++)
		put_finding(&run->findings[i], file);
}

static void put_figure(const struct compare_row *row, struct run_ratio value, FILE *file)
{
	if (!value.known)
		fputs(" - |", file);
	else if (!strcmp(row->unit, "ns"))
		put_time(value.value, file);
	else
		fprintf(file, " %.1f |", value.value);
}

static void put_side(const struct compare_row *row, const struct compare_side *side, FILE *file)
{
	put_figure(row, side->value, file);
	if (side->change.known)
		fprintf(file, " %+.1f %% |", 100 * side->change.value);
	else
		fputs(" - |", file);
	if (side->p_value.known)
		fprintf(file, " %s (p = %.2g) |",
			side->p_value.value < COMPARE_SIGNIFICANT ? "significant" : "within noise",
			side->p_value.value);
	else
		fprintf(file, " not tested: %s |", side->reason);
}

static int put_compare(struct run *const *runs, const char *const *names, size_t count, FILE *file)
{
	autocompare struct compare *compare = compare_runs(runs, count);

	if (!compare)
		return -ENOMEM;
	fputs("## Compared with the first run\n\n| |", file);
	for (size_t i = 0; i < count; i++) {
		fputc(' ', file);
		put_text(names[i], file);
		fputs(i ? " | difference | significance |" : " |", file);
	}
	fputs("\n|---|", file);
	for (size_t i = 0; i < count; i++)
		fputs(i ? "--:|--:|---|" : "--:|", file);
	for (size_t i = 0; i < compare->row_count; i++) {
		fprintf(file, "\n| %s |", compare->rows[i].label);
		put_figure(&compare->rows[i], compare->rows[i].first, file);
		for (size_t k = 0; k < compare->side_count; k++)
			put_side(&compare->rows[i], &compare->rows[i].sides[k], file);
	}
	fputs("\n\n", file);
	return 0;
}

int report_markdown(struct run *const *runs, const char *const *names, size_t count, FILE *file)
{
	int r = count > 1 ? put_compare(runs, names, count, file) : 0;

	for (size_t i = 0; i < count && !r; i++)
		put_run(runs[i], names[i], file);
	return ferror(file) ? -EIO : r;
}
