// SPDX-License-Identifier: MIT
/* Reads run documents, merges them, prints the report; see report.h. */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cli.h"
#include "sojourn/join.h"
#include "sojourn/log.h"
#include "sojourn/report.h"
#include "sojourn/run.h"
#include "sojourn/trace.h"
#include "sojourn/units.h"

struct options {
	const char *json;
	const char *trace;
	size_t slowest;
	bool keep_samples;
};

static const char *set_json(void *target, const char *value)
{
	((struct options *)target)->json = value;
	return *value ? NULL : "a file, or - for standard output";
}

static const char *set_trace(void *target, const char *value)
{
	((struct options *)target)->trace = value;
	return *value ? NULL : "a file, or - for standard output";
}

static const char *set_slowest(void *target, const char *value)
{
	uint64_t count;

	if (units_parse_u64(value, 0, JOIN_SLOWEST_MAX, &count))
		return "a whole number from 0 to 10000";
	((struct options *)target)->slowest = count;
	return NULL;
}

static const char *set_keep_samples(void *target, const char *value)
{
	(void)value;
	((struct options *)target)->keep_samples = true;
	return NULL;
}

_Static_assert(JOIN_SLOWEST_MAX == 10000, "as set_slowest() says");

static const struct cli_option table[] = {
	{"json", 'j', "FILE", "Write the merged document to FILE too; - prints it instead.",
	 set_json},
	{"trace", 't', "FILE",
	 "Write the slowest exchanges' timelines to FILE too, for ui.perfetto.dev.", set_trace},
	{"slowest", 'n', "N", "How many of the slowest joined exchanges are told (default 10).",
	 set_slowest},
	{"keep-samples", 0, NULL,
	 "With --json: leave single exchanges in although they are joined.", set_keep_samples},
};

static const struct cli_command command = {
	.program = "sojourn report",
	.usage = "[OPTION...] FILE...",
	.intro = "Prints run documents as one report: of the observer, of the driver, of both, of "
		 "any number of drivers or hosts, whose counts and histograms add. - is standard "
		 "input.",
	.options = table,
	.option_count = ARRAY_SIZE(table),
	.outro = "Exit codes: 0 printed; 1 failed; 2 wrong options or not a run document.\n",
};

static int read_one(const char *path, struct run **ret_run)
{
	autofree char *error = NULL;
	int r = run_read(path, ret_run, &error);

	if (r == -EINVAL)
		return cli_error(&command, "'%s': %s", path, error ? error : "not a run document");
	return r < 0 ? log_errno(r, "cannot read '%s'", path) : 0;
}

static int merge_in(struct run *run, const char *path)
{
	autorun struct run *other = NULL;
	autofree char *error = NULL;
	int r = read_one(path, &other);

	if (r < 0)
		return r;
	r = run_merge(run, other, &error);
	if (r == -EINVAL)
		return cli_error(&command, "'%s': %s", path, error);
	return r < 0 ? log_errno(r, "cannot merge '%s'", path) : 0;
}

static int read_all(int count, char **paths, struct run **ret_run)
{
	autorun struct run *run = NULL;
	int r = read_one(paths[0], &run);

	for (int i = 1; !r && i < count; i++)
		r = merge_in(run, paths[i]);
	if (r < 0)
		return r;
	*ret_run = TAKE_PTR(run);
	return 0;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int write_trace(const struct run *run, const char *path)
{
	int r;

	if (!run->joined || !run->joined->slowest_count) {
		log_error("no exchange is joined: '%s' is not written", path);
		return -ENODATA;
	}
	r = trace_write(run, path);
	return r < 0 ? log_errno(r, "cannot write '%s'", path) : 0;
}

/* Whatever single exchanges the documents have. */
static int join(struct run *run, const struct options *options)
{
	int r = join_run(run, options->slowest);

	if (r < 0)
		return log_errno(r, "cannot join");
	if (!options->keep_samples)
		join_drop_samples(run);
	return 0;
}

static int print(const struct run *run, const struct options *options)
{
	struct report_options report;
	int r = 0;

	if (options->json)
		r = run_write(run, options->json);
	if (r < 0)
		return log_errno(r, "cannot write '%s'", options->json);
	r = options->trace ? write_trace(run, options->trace) : 0;
	if (r < 0 || is_stdout(options->json) || is_stdout(options->trace))
		return r;
	report_options_for(stdout, &report);
	r = report_text(run, &report, stdout);
	return r < 0 ? log_errno(r, "cannot print the report") : 0;
}

int report_main(int argc, char **argv)
{
	struct options options = {.slowest = JOIN_SLOWEST};
	autorun struct run *run = NULL;
	int next, r = cli_parse(&command, argc, argv, &options, &next);

	log_open("sojourn report", false);
	if (r == -ECANCELED)
		return EXIT_SUCCESS;
	if (!r && next == argc)
		r = cli_error(&command, "no FILE: give run documents");
	if (!r)
		r = read_all(argc - next, argv + next, &run);
	if (!r)
		r = join(run, &options);
	if (!r)
		r = print(run, &options);
	if (r == -EINVAL)
		return EXIT_USAGE;
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
