// SPDX-License-Identifier: MIT
/*
 * The report as one self-contained HTML file: the documents, and web/ to draw them. It loads
 * nothing, and its content security policy forbids loading.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "web.h"
#include "report/observed/means.h"
#include "report/parts.h"
#include "sojourn/autojson.h"
#include "sojourn/compare.h"
#include "sojourn/report.h"

static const char head[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
static const char body[] =
	"</style>\n</head>\n<body>\n<header><h1>Sojourn</h1><span class=\"dim\">where a request's "
	"time goes</span></header>\n<main></main>\n"
	"<noscript>This report draws itself: it needs JavaScript, and nothing from the "
	"network.</noscript>\n<script type=\"application/json\" id=\"data\">\n";
static const char end[] = "</script>\n</body>\n</html>\n";

static const char *const scripts[] = {
	web_chart_library_js, web_values_js, web_charts_js, web_series_js,
	web_compare_js,	      web_sweep_js,  web_report_js,
};

/* JSON in a script element: escape '<', which occurs only in texts, or it might end the element. */
static void put_json(const char *json, FILE *file)
{
	for (const char *at = json; *at; at++) {
		if (*at == '<')
			fputs("\\u003c", file);
		else if (*at != '\n')
			putc(*at, file);
	}
}

static json_t *ratio(struct run_ratio value)
{
	return value.known ? json_real(value.value) : json_null();
}

/* Whether a difference is an improvement; null: it may be chance. */
static json_t *is_better(const struct compare_row *row, const struct compare_side *side)
{
	enum compare_verdict verdict = compare_judge(row, side);

	if (verdict != COMPARE_BETTER && verdict != COMPARE_WORSE)
		return json_null();
	return json_boolean(verdict == COMPARE_BETTER);
}

static json_t *row_json(const struct compare_row *row, size_t side_count)
{
	json_t *after = json_array();

	for (size_t i = 0; i < side_count; i++) {
		const struct compare_side *side = &row->sides[i];
		char surety[COMPARE_TEXT];

		json_array_append_new(after,
				      json_pack("{s:o, s:o, s:o, s:s}", "value", ratio(side->value),
						"change", ratio(side->change), "better",
						is_better(row, side), "surety",
						compare_surety(row, side, surety)));
	}
	return json_pack("{s:s, s:s, s:o, s:o}", "label", row->label, "unit", row->unit, "before",
			 ratio(row->first), "after", after);
}

/* Changes from the first run to a side's, and differing settings. */
static json_t *side_json(const struct compare *compare, size_t side)
{
	autofree char *answer = compare_answer(compare, side);
	autofree char *settings = compare_settings(compare, side);

	if (!answer || !settings)
		return NULL;
	return json_pack("{s:o, s:o}", "answer", json_stringn_nocheck(answer, strlen(answer)),
			 "settings", json_stringn_nocheck(settings, strlen(settings)));
}

static json_t *compare_json(const struct compare *compare)
{
	json_t *rows = json_array(), *sides = json_array(), *names = json_array();

	for (size_t i = 0; i <= compare->side_count; i++) {
		const char *name = compare->groups[i].name;

		json_array_append_new(names, json_stringn_nocheck(name, strlen(name)));
	}
	for (size_t i = 0; i < compare->row_count; i++)
		json_array_append_new(rows, row_json(&compare->rows[i], compare->side_count));
	for (size_t i = 0; i < compare->side_count; i++)
		json_array_append_new(sides, side_json(compare, i));
	return json_pack("{s:o, s:o, s:o}", "names", names, "sides", sides, "rows", rows);
}

/* Write a value, and let go of it. */
static int put_value(json_t *json, FILE *file)
{
	autofree char *dump = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(json);
	if (!dump)
		return -ENOMEM;
	put_json(dump, file);
	return 0;
}

static int put_compare(struct run *const *runs, const char *const *names, size_t count, FILE *file)
{
	autocompare struct compare *compare = compare_runs(runs, names, count);

	return compare ? put_value(compare_json(compare), file) : -ENOMEM;
}

static int put_names(const char *const *names, size_t count, FILE *file)
{
	autojson json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		autofree char *name = compare_run_name(names, count, i);

		if (!name)
			return -ENOMEM;
		json_array_append_new(array, json_stringn_nocheck(name, strlen(name)));
	}
	return put_value(TAKE_PTR(array), file);
}

static int put_runs(struct run *const *runs, size_t count, FILE *file)
{
	for (size_t i = 0; i < count; i++) {
		autofree char *json = run_to_json(runs[i]);

		if (!json)
			return -ENOMEM;
		if (i)
			fputs(",\n", file);
		put_json(json, file);
	}
	return 0;
}

/* Write the index of the service that each run's driver loaded; null: none. */
static void put_driven(struct run *const *runs, size_t count, FILE *file)
{
	for (size_t i = 0; i < count; i++) {
		const struct run_service *driven = report_driven_service(runs[i]);

		fputs(i ? "," : "", file);
		if (driven)
			fprintf(file, "%td", driven - runs[i]->services);
		else
			fputs("null", file);
	}
}

static int put_text(const char *text, FILE *file)
{
	return put_value(text ? json_stringn_nocheck(text, strlen(text)) : json_null(), file);
}

/* Write verdicts on services without a driver, whose verdict says more. Compared ones are in the table of hosts. */
static int put_service_verdicts(const struct run *run, FILE *file)
{
	const struct report_compared compared = report_compared(run);
	struct report_verdict verdict;
	int r = 0;

	for (size_t i = 0; i < run->service_count && !r; i++) {
		const struct run_service *service = &run->services[i];
		bool in_table = report_is_compared(&compared, run, service);
		bool said =
			!run->driver && !in_table && report_service_verdict(run, service, &verdict);

		fputs(i ? "," : "", file);
		r = put_text(said ? verdict.text : NULL, file);
	}
	return r;
}

/* Write the text report's sentences: on the run, on why it is not divided, on each service. */
static int put_verdict(const struct run *run, FILE *file)
{
	const struct run_service *driven = report_driven_service(run);
	struct report_verdict verdict;
	char why[REPORT_UNDIVIDED_TEXT];
	bool said = (run->driver && report_headline(run->driver, &verdict)) ||
		    report_hosts_verdict(run, &verdict) ||
		    (run->driver && report_verdict(run, driven, &verdict));
	int r;

	fputs("{\"text\":", file);
	r = put_text(said ? verdict.text : NULL, file);
	fputs(",\"undivided\":", file);
	if (!r)
		r = put_text(driven && report_undivided(run, driven, why) ? why : NULL, file);
	fputs(",\"services\":[", file);
	if (!r)
		r = put_service_verdicts(run, file);
	fputs("]}", file);
	return r;
}

static int put_verdicts(struct run *const *runs, size_t count, FILE *file)
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		fputs(i ? "," : "", file);
		r = put_verdict(runs[i], file);
	}
	return r;
}

/* Write the caveats on each run's percentiles. */
static void put_notes(struct run *const *runs, size_t count, FILE *file)
{
	for (size_t i = 0; i < count; i++) {
		struct report_note notes[REPORT_NOTES], note;
		size_t notes_count = runs[i]->driver ? report_notes(runs[i]->driver, notes) : 0;

		fputs(i ? ",[" : "[", file);
		for (size_t j = 0; j < notes_count; j++)
			fprintf(file, "%s\"%s\"", j ? "," : "", notes[j].text);
		for (size_t j = 0; j < runs[i]->service_count; j++)
			if (report_service_note(&runs[i]->services[j], &note))
				fprintf(file, "%s\"%s\"", notes_count++ ? "," : "", note.text);
		fputs("]", file);
	}
}

/* Write the hints, by run and service. */
static int put_hints(struct run *const *runs, size_t count, FILE *file)
{
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		fputs(i ? ",[" : "[", file);
		for (size_t j = 0; j < runs[i]->service_count; j++) {
			struct report_hint hints[REPORT_HINTS];
			size_t found = report_hints(runs[i], &runs[i]->services[j], hints);

			fputs(j ? ",[" : "[", file);
			for (size_t k = 0; k < found && !r; k++) {
				fputs(k ? "," : "", file);
				r = put_text(hints[k].text, file);
			}
			fputs("]", file);
		}
		fputs("]", file);
	}
	return r;
}

static int put_host(const struct report_host *host, FILE *file)
{
	json_t *json = json_pack("{s:s, s:s, s:I, s:s}", "name", host->name, "kind", host->kind,
				 "requests", (json_int_t)host->requests, "text", host->text);

	if (host->joined)
		json_object_set_new(json, "round_trip_ns", json_real(host->round_trip_ns));
	if (host->timed) {
		json_object_set_new(json, "at_server_ns", json_real(host->at_server_ns));
		json_object_set_new(json, "service_p99_ns",
				    json_integer((json_int_t)host->service_p99_ns));
	}
	return put_value(json, file);
}

/* Write the hosts that are compared, the slowest first, by run. */
static int put_hosts(struct run *const *runs, size_t count, FILE *file)
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		autofree struct report_host *hosts = NULL;
		size_t found = 0;

		r = report_list_hosts(runs[i], &found, &hosts);
		fputs(i ? ",[" : "[", file);
		for (size_t j = 0; j < found && !r; j++) {
			fputs(j ? "," : "", file);
			r = put_host(&hosts[j], file);
		}
		fputs("]", file);
	}
	return r;
}

static int put_data(struct run *const *runs, const char *const *names, size_t count, FILE *file)
{
	int r;

	fputs("{\"names\":", file);
	r = put_names(names, count, file);
	fputs(",\n\"compare\":", file);
	if (!r && count > 1)
		r = put_compare(runs, names, count, file);
	else
		fputs("null", file);
	fputs(",\n\"driven\":[", file);
	put_driven(runs, count, file);
	fputs("],\n\"verdicts\":[", file);
	if (!r)
		r = put_verdicts(runs, count, file);
	fputs("],\n\"notes\":[", file);
	put_notes(runs, count, file);
	fputs("],\n\"hints\":[", file);
	if (!r)
		r = put_hints(runs, count, file);
	fputs("],\n\"hosts\":[", file);
	if (!r)
		r = put_hosts(runs, count, file);
	fputs("],\n\"runs\":[", file);
	if (!r)
		r = put_runs(runs, count, file);
	fputs("]}\n", file);
	return r;
}

/* Data of an empty report, as the live page has none. */
static const char no_data[] = "{\"names\":[],\"driven\":[],\"verdicts\":[],\"notes\":[],\"hints\":["
			      "],\"hosts\":[],\"runs\":[],\"compare\":null}\n";

static const char *const live_scripts[] = {
	web_chart_library_js, web_values_js, web_charts_js, web_series_js, web_live_js,
};

/*
 * Browsers obey only scripts and styles with the nonce, which the author of the data could not know beforehand. A file
 * brings its policy with it, and whoever serves the live page sends its own.
 */
static void put_head(bool policy, const char *nonce, FILE *file)
{
	fputs(head, file);
	if (policy)
		fprintf(file,
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			"'none'; "
			"script-src 'nonce-%s'; style-src 'nonce-%s'; img-src data:; "
			"base-uri 'none'; form-action 'none'\">\n",
			nonce, nonce);
	fprintf(file, "<title>Sojourn</title>\n<style nonce=\"%s\">\n", nonce);
	fputs(web_style_css, file);
	fputs(body, file);
}

static void put_scripts(const char *const *list, size_t count, const char *nonce, FILE *file)
{
	for (size_t i = 0; i < count; i++) {
		fprintf(file, "</script>\n<script nonce=\"%s\">\n", nonce);
		fputs(list[i], file);
	}
	fputs(end, file);
}

int report_live_page(FILE *file, char ret_nonce[static REPORT_NONCE])
{
	int r = secret_make(ret_nonce);

	if (r < 0)
		return r;
	put_head(false, ret_nonce, file);
	fputs(no_data, file);
	put_scripts(live_scripts, ARRAY_SIZE(live_scripts), ret_nonce, file);
	return fflush(file) || ferror(file) ? -EIO : 0;
}

int report_html(struct run *const *runs, const char *const *names, size_t count, FILE *file)
{
	char nonce[REPORT_NONCE];
	int r = secret_make(nonce);

	if (r < 0)
		return r;
	put_head(true, nonce, file);
	r = put_data(runs, names, count, file);
	put_scripts(scripts, ARRAY_SIZE(scripts), nonce, file);
	if (r < 0)
		return r;
	return fflush(file) || ferror(file) ? -EIO : 0;
}
