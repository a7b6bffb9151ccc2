// SPDX-License-Identifier: MIT
/*
 * Any bytes as two run documents, split at a record separator. Documents that can be read are shown
 * in every form, alone and compared. No form crashes, JSON is valid, and text controls no terminal.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "sojourn/join.h"
#include "sojourn/metrics.h"
#include "sojourn/report.h"
#include "sojourn/run.h"
#include "sojourn/text.h"
#include "sojourn/trace.h"

#define SEPARATOR '\x1e'

static struct run *const *pair;
static const char *const names[] = {"a", "b"};
static const struct report_options all = {.verbose = true, .width = 100};

static int as_html(const struct run *run, FILE *file)
{
	(void)run;
	return report_html(pair, names, 2, file);
}

static int as_comparison(const struct run *run, FILE *file)
{
	(void)run;
	return report_compare(pair, names, 2, &all, file);
}

static int as_text(const struct run *run, FILE *file)
{
	return report_text(run, &all, file);
}

static int as_short_ascii(const struct run *run, FILE *file)
{
	const struct report_options options = {.ascii = true, .width = 60};

	return report_text(run, &options, file);
}

static int as_host(const struct run *run, FILE *file)
{
	return report_host(run, &all, file);
}

/* Require that no line has control characters: it stays the same without them. */
static void check_lines(char *text, bool ascii)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		autofree char *clean = strdup(line);

		require(clean != NULL);
		text_make_printable(clean, '?');
		require(!strcmp(clean, line));
		for (const char *c = line; ascii && *c; c++)
			require((unsigned char)*c < 0x80);
	}
}

static const struct {
	int (*write)(const struct run *run, FILE *file);
	enum {
		FOR_PROGRAMS,
		FOR_TERMINALS,
		FOR_ASCII_TERMINALS
	} reader;
} forms[] = {
	{as_text, FOR_TERMINALS},    {as_short_ascii, FOR_ASCII_TERMINALS},
	{as_host, FOR_TERMINALS},    {as_comparison, FOR_TERMINALS},
	{as_html, FOR_PROGRAMS},     {report_csv, FOR_PROGRAMS},
	{report_hlog, FOR_PROGRAMS},
};

static void show(const struct run *run)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		autofree char *text = NULL;
		size_t length;
		FILE *file = open_memstream(&text, &length);

		require(file != NULL);
		(void)forms[i].write(run, file);
		require(!fclose(file));
		if (forms[i].reader != FOR_PROGRAMS)
			check_lines(text, forms[i].reader == FOR_ASCII_TERMINALS);
	}
}

static void require_json(char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	require(json_is_object(json));
	json_decref(json);
	free(text);
}

static void measure(const struct run *run)
{
	autometrics struct metrics *metrics =
		metrics_new(run->service_count % 2 ? METRICS_FINE : METRICS_COARSE);

	require(metrics != NULL);
	for (enum metrics_format format = 0; format <= METRICS_OPENMETRICS; format++) {
		autofree char *text = NULL;
		size_t size;
		struct metrics_printing printing = {.metrics = metrics,
						    .run = run,
						    .format = format,
						    .file = open_memstream(&text, &size)};

		require(printing.file != NULL);
		while (metrics_print_part(&printing))
			;
		require(!fclose(printing.file));
	}
	require_json(metrics_otlp(metrics, run, 1, 2));
}

static struct run *read_run(const char *text, size_t length)
{
	autofree char *error = NULL;
	struct run *run = NULL;

	(void)run_from_json(text, length, &run, &error);
	return run;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *split = size ? memchr(text, SEPARATOR, size) : NULL;
	size_t first = split ? (size_t)(split - text) : size;
	autorun struct run *a = read_run(text, first);
	autorun struct run *b = split ? read_run(split + 1, size - first - 1) : NULL;
	struct run *runs[] = {a, b ? b : a};

	if (!a)
		return 0;
	pair = runs;
	show(a);
	measure(a);
	require(!join_run(a, JOIN_SLOWEST));
	if (a->joined)
		require_json(trace_to_json(a));
	show(a);
	return 0;
}
