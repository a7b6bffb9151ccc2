// SPDX-License-Identifier: MIT
/* The table of forms, and the writing of their text to a file; see output.h. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/compare.h"
#include "sojourn/report.h"

enum form {
	TEXT,
	HTML,
	MARKDOWN,
	JSON,
	CSV,
	HLOG,
};

struct report_format {
	const char *name;
	const char *suffix;
	bool compares;
	enum form form;
};

const char report_format_names[] = "text, html, markdown, json, csv or hlog";
const char report_format_endings[] = ".txt, .html, .md, .json, .csv and .hlog";

static int print_text(struct run *const *runs, const char *const *names, size_t count,
		      const struct report_options *options, FILE *file)
{
	int r = count > 1 ? report_compare(runs, names, count, options, file) : 0;

	if (count == 1)
		return report_text(runs[0], options, file);
	for (size_t i = 0; i < count && !r && options->verbose; i++) {
		autofree char *name = compare_run_name(names, count, i);

		if (!name)
			return -ENOMEM;
		fprintf(file, "\n== %s\n", name);
		r = report_text(runs[i], options, file);
	}
	return r;
}

/*
 * An issue shows a block of code as a terminal shows the text. No foreign text ends a block that is indented, or is
 * markup in it.
 */
static int print_markdown(struct run *const *runs, const char *const *names, size_t count,
			  bool verbose, FILE *file)
{
	const struct report_options options = {.verbose = verbose};
	autofree char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int r = memory ? print_text(runs, names, count, &options, memory) : -errno;
	char *rest, *line;

	if (memory && fclose(memory) && !r)
		r = -errno;
	rest = r ? NULL : text;
	while ((line = strsep(&rest, "\n")))
		if (rest)
			fprintf(file, *line ? "    %s\n" : "\n", line);
	return !r && ferror(file) ? -EIO : r;
}

static int print_json(const struct run *run, FILE *file)
{
	autofree char *json = run_to_json(run);

	if (!json)
		return -ENOMEM;
	return fputs(json, file) < 0 ? -EIO : 0;
}

static int print(enum form form, struct run *const *runs, const char *const *names, size_t count,
		 const struct report_options *options, FILE *file)
{
	switch (form) {
	case TEXT:
		return print_text(runs, names, count, options, file);
	case HTML:
		return report_html(runs, names, count, file);
	case MARKDOWN:
		return print_markdown(runs, names, count, options->verbose, file);
	case JSON:
		return print_json(runs[0], file);
	case CSV:
		return report_csv(runs[0], file);
	case HLOG:
		return report_hlog(runs[0], file);
	}
	return -EINVAL;
}

static const struct report_format formats[] = {
	{"text", ".txt", true, TEXT},	     {"html", ".html", true, HTML},
	{"markdown", ".md", true, MARKDOWN}, {"json", ".json", false, JSON},
	{"csv", ".csv", false, CSV},	     {"hlog", ".hlog", false, HLOG},
};

const struct report_format *report_format_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	return NULL;
}

/* The names of devices and pipes say nothing about a form. */
static bool has_ending(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return dot && dot > name && dot[1];
}

const struct report_format *report_format_for(const char *path)
{
	for (size_t i = 0; path && i < ARRAY_SIZE(formats); i++) {
		size_t length = strlen(path), suffix = strlen(formats[i].suffix);

		if (length > suffix && !strcmp(path + length - suffix, formats[i].suffix))
			return &formats[i];
	}
	return path && has_ending(path) ? NULL : &formats[0];
}

bool report_format_compares(const struct report_format *format)
{
	return format->compares;
}

int report_output(const struct report_format *format, struct run *const *runs,
		  const char *const *names, size_t count, bool verbose, const char *path)
{
	struct report_options options = {.verbose = verbose};
	autofree char *text = NULL;
	size_t size;
	FILE *file;
	int r;

	if (!path || !strcmp(path, "-")) {
		report_options_for(stdout, &options);
		options.verbose = verbose;
		r = print(format->form, runs, names, count, &options, stdout);
		return r || !fflush(stdout) ? r : -errno;
	}
	options.verbose = verbose;
	file = open_memstream(&text, &size);
	if (!file)
		return -errno;
	r = print(format->form, runs, names, count, &options, file);
	if (fclose(file) && !r)
		r = -errno;
	return r ? r : run_write_text(text, path);
}
