// SPDX-License-Identifier: MIT
/* Metrics in Prometheus's text formats; see sojourn/metrics.h. Metrics: metrics.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

const char *const metrics_types[] = {
	[METRICS_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[METRICS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct writer {
	FILE *file;
	enum metrics_format format;
	const struct metrics_family *family;
};

static const char *const type_names[] = {"counter", "gauge", "histogram"};

/* OpenMetrics names a counter's family without the `_total` of its samples. */
static void put_family(void *context, const struct metrics_family *family)
{
	struct writer *w = context;
	const char *suffix =
		family->type == METRICS_COUNTER && w->format == METRICS_PROMETHEUS ? "_total" : "";

	w->family = family;
	fprintf(w->file, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, suffix, family->help,
		family->name, suffix, type_names[family->type]);
}

/* Write foreign text as a label's value. */
static void put_escaped(const struct writer *w, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(w->file, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", w->file);
		else
			putc(*text, w->file);
	}
}

static void put_labels(const struct writer *w, const struct metrics_labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		fprintf(w->file, "%s%s=\"", i ? "," : "", labels->list[i].name);
		put_escaped(w, labels->list[i].value);
		putc('"', w->file);
	}
}

/* Write name and labels; a value follows. */
static void put_sample(const struct writer *w, const char *suffix,
		       const struct metrics_labels *labels)
{
	fprintf(w->file, "%s%s", w->family->name, suffix);
	if (labels->count) {
		putc('{', w->file);
		put_labels(w, labels);
		putc('}', w->file);
	}
	putc(' ', w->file);
}

static void put_seconds(const struct writer *w, uint64_t ns)
{
	fprintf(w->file, "%" PRIu64 ".%09" PRIu64, (uint64_t)(ns / NSEC_PER_SEC),
		(uint64_t)(ns % NSEC_PER_SEC));
}

static void put_number(void *context, const struct metrics_labels *labels, uint64_t value)
{
	const struct writer *w = context;

	put_sample(w, w->family->type == METRICS_COUNTER ? "_total" : "", labels);
	if (w->family->unit == METRICS_SECONDS)
		put_seconds(w, value);
	else
		fprintf(w->file, "%" PRIu64, value);
	putc('\n', w->file);
}

/* Return the newest exemplar above the edge before @edge, up to that one; NULL: there is none. */
static const struct run_newest *find_exemplar(const struct metrics_edges *edges, unsigned int edge)
{
	uint64_t above = edge ? metrics_edge_ns(edges->buckets, edge - 1) + 1 : 0,
		 most = UINT64_MAX;
	const struct run_newest *found = NULL;

	if (edge < edges->count)
		most = metrics_edge_ns(edges->buckets, edge);
	for (size_t i = 0; edges->newest && i < RUN_NEWEST; i++) {
		const struct run_newest *one = &edges->newest[i];
		uint64_t ns = one->sample.stage_ns[edges->stage];

		if (one->ended_ns && one->sample.known & RUN_SAMPLE_STAGE(edges->stage) &&
		    ns >= above && ns <= most && (!found || one->ended_ns > found->ended_ns))
			found = one;
	}
	return found;
}

/*
 * Write the request that a point of a graph stands for: its connection, its number there, and where its time went.
 * Names and values have at most 128 characters (OpenMetrics 1.0, Exemplars): 126 with an address of IPv6.
 */
static void put_exemplar(const struct writer *w, const struct metrics_edges *edges,
			 unsigned int edge)
{
	const struct run_newest *newest;
	const uint64_t *ns;
	char peer[64];

	if (w->format != METRICS_OPENMETRICS)
		return;
	newest = find_exemplar(edges, edge);
	if (!newest)
		return;
	ns = newest->sample.stage_ns;
	units_format_endpoint(newest->sample.flow.client, newest->sample.flow.client_port, peer,
			      sizeof(peer));
	fprintf(w->file, " # {peer=\"%s\",request=\"%" PRIu64 "\"", peer,
		(uint64_t)newest->sample.index + 1);
	fprintf(w->file, ",queue=\"%.3g\",receive=\"%.3g\",service=\"%.3g\",respond=\"%.3g\"} ",
		(double)(ns[STAGE_ACCEPT_QUEUE] + ns[STAGE_SOCKET_QUEUE]) / NSEC_PER_SEC,
		(double)ns[STAGE_RECEIVE] / NSEC_PER_SEC, (double)ns[STAGE_SERVICE] / NSEC_PER_SEC,
		(double)ns[STAGE_RESPOND] / NSEC_PER_SEC);
	put_seconds(w, ns[edges->stage]);
	putc(' ', w->file);
	put_seconds(w, newest->ended_ns);
}

static void put_bucket(const struct writer *w, const struct metrics_labels *labels,
		       const struct metrics_edges *edges, unsigned int edge, uint64_t count)
{
	fprintf(w->file, "%s_bucket{", w->family->name);
	put_labels(w, labels);
	fputs(",le=\"", w->file);
	if (edge < edges->count)
		put_seconds(w, metrics_edge_ns(edges->buckets, edge));
	else
		fputs("+Inf", w->file);
	fprintf(w->file, "\"} %" PRIu64, count);
	put_exemplar(w, edges, edge);
	putc('\n', w->file);
}

static void put_histogram(void *context, const struct metrics_labels *labels,
			  const struct metrics_edges *edges, const struct histogram *h)
{
	const struct writer *w = context;

	for (unsigned int i = 0; i < edges->count; i++)
		put_bucket(w, labels, edges, i, edges->below[i]);
	put_bucket(w, labels, edges, edges->count, h->count);
	put_sample(w, "_sum", labels);
	put_seconds(w, h->sum);
	putc('\n', w->file);
	put_sample(w, "_count", labels);
	fprintf(w->file, "%" PRIu64 "\n", h->count);
}

bool metrics_print_part(struct metrics_printing *printing)
{
	struct writer w = {.file = printing->file, .format = printing->format};
	const struct metrics_output out = {&w, put_family, put_number, put_histogram};

	w.family = printing->family;
	if (metrics_tell_part(printing->metrics, printing->run, &printing->place, &out)) {
		printing->family = w.family;
		return true;
	}
	if (printing->format == METRICS_OPENMETRICS)
		fputs("# EOF\n", printing->file);
	return false;
}

/* ---- which format ---- */

/* Return q of "type/subtype; version=…; q=0.5", in thousandths. */
static unsigned int quality_of(const char *item, size_t length)
{
	const char *q = memmem(item, length, "q=", 2);
	double value = q ? strtod(q + 2, NULL) : 1;

	return value > 0 && value <= 1 ? (unsigned int)(value * 1000) : 0;
}

enum metrics_format metrics_choose(const char *accept)
{
	static const char open[] = "application/openmetrics-text", plain[] = "text/plain";
	unsigned int open_quality = 0, plain_quality = 0;

	for (; accept && *accept; accept += *accept == ',') {
		size_t length = strcspn(accept, ",");
		const char *item = accept + strspn(accept, " \t");

		if (!strncasecmp(item, open, strlen(open)))
			open_quality = quality_of(accept, length);
		else if (!strncasecmp(item, plain, strlen(plain)))
			plain_quality = quality_of(accept, length);
		accept += length;
	}
	return open_quality && open_quality >= plain_quality ? METRICS_OPENMETRICS
							     : METRICS_PROMETHEUS;
}
