// SPDX-License-Identifier: MIT
/* The report as Markdown tables, to paste into an issue. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plain.h"
#include "report/means.h"
#include "report/parts.h"
#include "sojourn/compare.h"
#include "sojourn/finding.h"
#include "sojourn/report.h"
#include "sojourn/sweep.h"

#define SWEEP_BAR 20 /* characters for the highest throughput */

/* Escape foreign text for a table's cell or a line: it must not be markup. */
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
	fprintf(file, " %s |", as_time(ns));
}

static void put_histogram(const char *name, const struct histogram *h, FILE *file)
{
	static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};

	fprintf(file, "| %s | %s |", name, as_count(h->count));
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

/* Write a sentence as a paragraph. */
static void put_sentence(const struct report_verdict *verdict, FILE *file)
{
	fputs("\n**", file);
	put_text(verdict->text, file);
	fputs("**\n", file);
}

/* Write the first sentences of the text report. */
static void put_verdict(const struct run *run, FILE *file)
{
	const struct run_service *service = report_driven_service(run);
	struct report_verdict verdict;
	bool headed = run->driver && report_headline(run->driver, &verdict);

	if (!headed && (report_hosts_verdict(run, &verdict) ||
			(run->driver && report_verdict(run, service, &verdict))))
		put_sentence(&verdict, file);
	if (!run->driver)
		return;
	if (report_failure(run->driver, &verdict) > 0)
		put_sentence(&verdict, file);
	if (report_redirects(run->driver, &verdict) > 0)
		put_sentence(&verdict, file);
}

static void put_limited(const struct run_driver *driver, FILE *file)
{
	if (!driver || !driver->limited)
		return;
	fputs("\n**Limited by the driver, not by the server** (", file);
	put_text(driver->limited->by, file);
	fputs("): ", file);
	put_text(driver->limited->why, file);
	fputc('\n', file);
}

static void put_driver(const struct run *run, FILE *file)
{
	const struct run_driver *driver = run->driver;

	fprintf(file, "\n%s requests, %s/s, %" PRIu32 " connections, %s errors\n",
		as_count(driver->requests), as_rate(run_driver_timely(driver), driver->duration_ns),
		driver->connections, as_count(run_driver_errors(driver)));
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
		fprintf(file, " %s |\n", as_share(100 * mean_ns / means->round_trip_ns));
	else
		fputs(" - |\n", file);
}

/* Write the parts of the driver's round trip. */
static void put_means(const struct run *run, FILE *file)
{
	const struct run_service *service = report_driven_service(run);
	char text[REPORT_MEANS_TEXT], why[REPORT_UNDIVIDED_TEXT];
	struct report_means means;

	if (!service)
		return;
	if (report_undivided(run, service, why)) {
		fprintf(file, "\nnot divided: %s\n", why);
		return;
	}
	report_means(run, service, &means);
	fprintf(file,
		"\nWhere a request's time goes, means of %s:\n\n| part | mean | share "
		"|\n|---|--:|--:|\n",
		report_means_basis(run, &means, text) ? text : "all requests");
	if (!means.network_unknown)
		put_mean("network + client", means.network_ns, &means, file);
	for (unsigned int i = 0; i < REPORT_MEAN_STAGES; i++)
		if (!means.stages[i].missing)
			put_mean(as_words(means.stages[i].name), means.stages[i].mean_ns, &means,
				 file);
	if (means.overhang_ns > 0)
		put_mean("after its end", -means.overhang_ns, &means, file);
	if (means.network_unknown)
		fprintf(file, "\nnetwork + client: not known: %s\n", means.network_unknown);
}

static void put_lost(const struct run *run, const struct run_service *service, FILE *file)
{
	struct report_caveat caveat;

	fprintf(file, "\nlost: %s\n", as_count(report_lost(run, service)));
	for (unsigned int i = 0; i < REPORT_CAVEATS; i++)
		if (report_caveat(service, i, &caveat))
			fprintf(file, "- %s %s\n", as_count(caveat.count), caveat.text);
}

/* Write the parts of the service stage. */
static void put_split(const struct run_stage *parts, FILE *file)
{
	char name[SHORT_TEXT];

	for (unsigned int i = 0; parts->measured && i < RUN_CPU_COUNT; i++) {
		snprintf(name, sizeof(name), "of it %s", run_cpu_names[i]);
		put_histogram(name, &parts[i].histogram, file);
	}
}

/* Write how the end of a stage was detected, if there are several ways. */
static void put_source(const struct run_service *service, enum stage which, FILE *file)
{
	const struct run_stage *stage = &service->stages[which];
	const char *meaning;

	if (!stage->measured || !stage->source)
		return;
	fprintf(file, "\n%s: source ", as_words(run_stage_label(service->stages, which)));
	put_text(stage->source, file);
	meaning = report_source_meaning(stage->source);
	if (meaning)
		fprintf(file, " \\(%s\\)", meaning);
	fputc('\n', file);
}

static void put_number(struct run_number number, FILE *file)
{
	if (number.known)
		fprintf(file, " %ju |", (uintmax_t)number.value);
	else
		fputs(" - |", file);
}

/* Write each of several listeners. */
static void put_listeners(const struct run_service *service, FILE *file)
{
	if (service->listener_count)
		fputs("\n| listener | PID | accept queue | max | limit | overflows |\n"
		      "|---|--:|--:|--:|--:|--:|\n",
		      file);
	for (size_t i = 0; i < service->listener_count; i++) {
		const struct run_listener *listener = &service->listeners[i];

		fputs("| ", file);
		put_text(listener->address, file);
		fputc(' ', file);
		put_text(listener->comm, file);
		fputs(" |", file);
		put_number(listener->pid, file);
		put_number(listener->depth, file);
		put_number(listener->depth_max, file);
		put_number(listener->limit, file);
		put_number(listener->overflows, file);
		fputc('\n', file);
	}
}

static void put_hints(const struct run *run, const struct run_service *service, FILE *file)
{
	struct report_hint hints[REPORT_HINTS];
	size_t count = report_hints(run, service, hints);

	for (size_t i = 0; i < count; i++)
		fprintf(file, "\nhint: %s\n", hints[i].text);
}

static void put_service(const struct run *run, const struct run_service *service, FILE *file)
{
	struct report_verdict verdict;
	struct report_note note;
	char place[RUN_PLACE_NAME];

	fprintf(file, "\n### %s ", service->protocol);
	put_text(service->address, file);
	fprintf(file, ":%u", service->port);
	if (service->host) {
		fputs(", host ", file);
		put_text(service->host, file);
	}
	if (*run_place_name(&service->place, place)) {
		fputs(", ", file);
		put_text(place, file);
	}
	fputc('\n', file);
	if ((!run->driver || service != report_driven_service(run)) &&
	    report_service_verdict(run, service, &verdict))
		put_sentence(&verdict, file);
	put_latency_head(file);
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		const struct run_stage *stage = &service->stages[i];

		if (stage->measured)
			put_histogram(as_words(run_stage_label(service->stages, i)),
				      &stage->histogram, file);
		if (i == STAGE_SERVICE)
			put_split(service->cpu, file);
	}
	if (report_service_note(service, &note))
		fprintf(file, "\nnote: %s\n", note.text);
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		const struct run_stage *stage = &service->stages[i];

		if (stage->measured || !stage->reason)
			continue;
		fprintf(file,
			"\n%s: not measured: ", as_words(run_stage_label(service->stages, i)));
		put_text(stage->reason, file);
		fputc('\n', file);
	}
	put_listeners(service, file);
	put_hints(run, service, file);
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
	struct report_part part;

	fputs("| ", file);
	put_text(step->name, file);
	fprintf(file, " | %s |", as_count(step->count));
	put_time((double)run_parts_total(&step->sum) / count, file);
	for (size_t i = 0; i < REPORT_PARTS; i++)
		if (report_part(joined, &step->sum, i, &part))
			fprintf(file, " %s, %s |", as_time((double)part.sum_ns / count),
				as_share(part.share));
	fputc('\n', file);
}

/* Leave out steps without joined exchanges. */
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

static void put_bar(double share, FILE *file)
{
	for (int i = 0; i < (int)(share * SWEEP_BAR + 0.5); i++)
		fputs("\u2588", file);
}

/* Write a step's counts for each of several targets, without a load. */
static void put_sweep_targets(const struct run_sweep_step *step, FILE *file)
{
	for (size_t i = 0; i < step->target_count; i++) {
		const struct run_sweep_target *target = &step->targets[i];
		uint64_t good = run_sweep_good(&target->good, target->requests, target->drained);

		fprintf(file, "| | %s | %s | %s | %s | ", as_rate(good, step->duration_ns),
			as_quantile(&target->latency, 0.5), as_quantile(&target->latency, 0.99),
			as_count(target->errors));
		put_text(target->name ? target->name : "(no name)", file);
		fputs(" |\n", file);
	}
}

static void put_sweep_row(const struct run_sweep_step *step, double highest, const char *mark,
			  FILE *file)
{
	char remarks[SWEEP_REMARKS];

	fprintf(file, "| %s | %s | %s | %s | %s | ", as_count(step->load),
		report_sweep_rate(run_sweep_throughput(step), UNITS_ROOM),
		as_quantile(&step->latency, 0.5), as_quantile(&step->latency, 0.99),
		as_count(step->errors));
	put_bar(highest > 0 ? run_sweep_throughput(step) / highest : 0, file);
	report_sweep_remarks(step, remarks);
	fprintf(file, "%s%s", mark, *remarks ? *mark ? ", " : " " : "");
	put_text(remarks, file);
	fputs(" |\n", file);
	put_sweep_targets(step, file);
}

static void put_three_quarters(const struct run_sweep_step *step, FILE *file)
{
	char remarks[SWEEP_REMARKS];

	fprintf(file, "\n\nat 75 %% of it (%s/s due): %s/s, p50 %s, p99 %s, errors %s",
		as_count(step->load), report_sweep_rate(run_sweep_throughput(step), UNITS_ROOM),
		as_quantile(&step->latency, 0.5), as_quantile(&step->latency, 0.99),
		as_count(step->errors));
	if (*report_sweep_remarks(step, remarks)) {
		fputs("; ", file);
		put_text(remarks, file);
	}
}

static void put_sweep(const struct run_sweep *sweep, FILE *file)
{
	size_t knee = report_sweep_knee(sweep);
	char text[SWEEP_REMARKS];
	double highest = 0;

	for (size_t i = 0; i < sweep->step_count; i++)
		highest = fmax(highest, run_sweep_throughput(&sweep->steps[i]));
	fputs("\n**plateau**: ", file);
	put_text(report_sweep_plateau(sweep, text), file);
	if (sweep->misfit_per_mille.known)
		fprintf(file, "; steps off the fit by %.1f %%",
			(double)sweep->misfit_per_mille.value / 10);
	if (sweep->three_quarters)
		put_three_quarters(sweep->three_quarters, file);
	if (sweep->resumed) {
		fputs("\n\nresumed: ", file);
		put_text(sweep->resumed, file);
	}
	if (sweep->stopped) {
		fputs("\n\nstopped: ", file);
		put_text(sweep->stopped, file);
	}
	fprintf(file, "\n\n| %s | good/s | p50 | p99 | errors | |\n|--:|--:|--:|--:|--:|---|\n",
		report_sweep_is_rated(sweep) ? "due/s" : "connections");
	for (size_t i = 0; i < sweep->step_count; i++)
		put_sweep_row(&sweep->steps[i], highest, i == knee ? " \u25c4 knee" : "", file);
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
	if (run->sweep && run->sweep->target)
		put_text(run->sweep->target, file);
	else
		put_text(run->driver && run->driver->target ? run->driver->target : name, file);
	fputs("\n\n", file);
	for (size_t i = 0; i < 4; i++) {
		const char *const parts[] = {run->tool, run->host, run->kernel, run->started_at};

		if (!parts[i])
			continue;
		put_text(parts[i], file);
		fputs(i < 3 ? ", " : "\n", file);
	}
	if (run->namespaces.observed)
		fprintf(file, "\n%ju network namespaces, %ju not entered\n",
			(uintmax_t)run->namespaces.observed,
			(uintmax_t)(run->namespaces.not_entered + run->namespaces.left_out));
	put_limited(run->driver, file);
	put_verdict(run, file);
	if (run->driver)
		put_driver(run, file);
	if (run->sweep)
		put_sweep(run->sweep, file);
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
	char text[COMPARE_TEXT];

	fprintf(file, " %s |", compare_figure(row, value, text));
}

static void put_side(const struct compare_row *row, const struct compare_side *side, FILE *file)
{
	char text[COMPARE_TEXT];

	put_figure(row, side->value, file);
	if (side->change.known)
		fprintf(file, " %s |", page_change(100 * side->change.value, text));
	else
		fputs(" - |", file);
	fprintf(file, " %s |", compare_surety(row, side, text));
}

/* Write the answer and the differing settings. */
static int put_answer(const struct compare *compare, size_t side, FILE *file)
{
	autofree char *answer = compare_answer(compare, side);
	autofree char *settings = compare_settings(compare, side);
	char *rest = NULL;

	if (!answer || !settings)
		return -ENOMEM;
	for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		fputs(line == answer ? "**" : "- ", file);
		put_text(line, file);
		fputs(line == answer ? "**\n\n" : "\n", file);
	}
	fputs(*settings ? "- settings differ: " : "", file);
	put_text(settings, file);
	fputs(*settings ? "\n\n" : "\n", file);
	return 0;
}

static int put_compare(struct run *const *runs, const char *const *names, size_t count, FILE *file)
{
	autocompare struct compare *compare = compare_runs(runs, names, count);

	if (!compare)
		return -ENOMEM;
	fputs("## Compared with the first run\n\n", file);
	for (size_t i = 0; i < compare->side_count; i++)
		if (put_answer(compare, i, file))
			return -ENOMEM;
	fputs("| |", file);
	for (size_t i = 0; i < count; i++) {
		fputc(' ', file);
		put_text(names[i], file);
		fputs(i ? " | change | how surely |" : " |", file);
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

struct pages {
	struct run *const *runs;
	const char *const *names;
	size_t count;
	bool verbose;
};

static int put_all(const void *what, FILE *file)
{
	const struct pages *pages = what;
	int r = pages->count > 1 ? put_compare(pages->runs, pages->names, pages->count, file) : 0;

	for (size_t i = 0; i < pages->count && !r && (pages->count == 1 || pages->verbose); i++)
		put_run(pages->runs[i], pages->names[i], file);
	return ferror(file) ? -EIO : r;
}

int report_markdown(struct run *const *runs, const char *const *names, size_t count,
		    const struct report_options *options, FILE *file)
{
	const struct pages pages = {runs, names, count, options->verbose};

	return plain_print(put_all, &pages, file);
}
