// SPDX-License-Identifier: MIT
/* Reads run documents, merges them, prints the report; see report.h. */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cli.h"
#include "sojourn/log.h"
#include "sojourn/report.h"
#include "sojourn/run.h"

struct options {
	const char *json;
};

static const char *set_json(void *target, const char *value)
{
	((struct options *)target)->json = value;
	return *value ? NULL : "a file, or - for standard output";
}

static const struct cli_option table[] = {
	{"json", 'j', "FILE", "Write the merged document to FILE too; - prints it instead.",
	 set_json},
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

static int print(const struct run *run, const struct options *options)
{
	struct report_options report;
	int r = 0;

	if (options->json)
		r = run_write(run, options->json);
	if (r < 0)
		return log_errno(r, "cannot write '%s'", options->json);
	if (options->json && !strcmp(options->json, "-"))
		return 0;
	report_options_for(stdout, &report);
	r = report_text(run, &report, stdout);
	return r < 0 ? log_errno(r, "cannot print the report") : 0;
}

int report_main(int argc, char **argv)
{
	struct options options = {};
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
		r = print(run, &options);
	if (r == -EINVAL)
		return EXIT_USAGE;
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
