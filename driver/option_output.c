// SPDX-License-Identifier: MIT
/* Where the results go, and what is printed instead of a run. */
#include "option_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

/* So that a document with those of both sides is far below what a reader refuses. */
#define SAMPLES_MAX 50000U

static int apply_json(struct options *options, const char *value, char **ret_error)
{
	if (!*value)
		return refuse(ret_error, "--json: the file name is empty; give a file, or - for "
					 "standard output");
	options->json_path = value;
	return 0;
}

static int apply_interval(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("interval", value, NSEC_PER_MSEC, &options->interval_ns,
				     ret_error);
}

static int apply_quiet(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->quiet = true;
	return 0;
}

static int apply_samples(struct options *options, const char *value, char **ret_error)
{
	uint64_t count;

	if (units_parse_count(value, &count) || count > SAMPLES_MAX)
		return refuse(ret_error,
			      "--samples: '%s' is not a count from 0 to %u; write it like 20k",
			      value, SAMPLES_MAX);
	options->samples = (uint32_t)count;
	return 0;
}

static int apply_keep_samples(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->keep_samples = true;
	return 0;
}

static int apply_slowest(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("slowest", value, 0, JOIN_SLOWEST_MAX, &number, ret_error);

	if (!err)
		options->slowest = number;
	return err;
}

static int apply_trace(struct options *options, const char *value, char **ret_error)
{
	if (!*value)
		return refuse(ret_error, "--trace: the file name is empty; give a file");
	options->trace_path = value;
	return 0;
}

static int apply_fail_fast(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->fail_fast = true;
	return 0;
}

static int apply_csv(struct options *options, const char *value, char **ret_error)
{
	if (!*value)
		return refuse(ret_error,
			      "--csv: '' is no file; give one, or - for standard output");
	options->csv_path = value;
	return 0;
}

static int apply_hlog(struct options *options, const char *value, char **ret_error)
{
	if (!*value)
		return refuse(ret_error,
			      "--hlog: '' is no file; give one, or - for standard output");
	options->hlog_path = value;
	return 0;
}

static int apply_assert(struct options *options, const char *value, char **ret_error)
{
	size_t size = (options->assertion_count + 1) * sizeof(*options->assertions);
	struct assertion assertion, *assertions;
	int err = assertion_parse(value, &assertion, ret_error);

	if (err)
		return err;
	assertions = realloc(options->assertions, size);
	if (!assertions)
		return -ENOMEM;
	assertions[options->assertion_count++] = assertion;
	options->assertions = assertions;
	return 0;
}

static int apply_check(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->check_only = true;
	return 0;
}

static int apply_help(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->action = OPTIONS_HELP;
	return 0;
}

static int apply_version(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->action = OPTIONS_VERSION;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
	{0, "samples", "N",
	 "exchanges kept to be joined one by one with the\nobserver's, with --observer or --json (default 20k;\n"
	 "0: none)", apply_samples},
	{0, "slowest", "N",
	 "joined exchanges that are told with their timeline\n(default 10)", apply_slowest},
	{0, "trace", "FILE",
	 "write these timelines to FILE, for ui.perfetto.dev", apply_trace},
	{0, "keep-samples", NULL,
	 "leave single exchanges in the document although\nthey are joined", apply_keep_samples},
	{0, "json", "FILE",
	 "write the run document to FILE; with - to standard\n"
	 "output, in place of the text report",
	 apply_json},
	{0, "csv", "FILE",
	 "write intervals and overall figures to FILE, comma-\nseparated; - as with --json", apply_csv},
	{0, "hlog", "FILE",
	 "write the latency of the intervals to FILE as a log\nof HdrHistogram; - as with --json", apply_hlog},
	{0, "interval", "TIME", "length of the intervals in the results (default 1s)",
	 apply_interval},
	{0, "assert", "CONDITION",
	 "exit with 1 unless it holds: 'p99<5ms', 'rate>900',\n'errors<0.1%', 'unsent<1%'; may be repeated. One\n"
	 "about errors decides how many are too many. A\npercentile needs answers to all but what is beyond", apply_assert},
	{0, "fail-fast", NULL, "end the run at the first failure", apply_fail_fast},
	{0, "quiet", NULL, "no progress line and no text report", apply_quiet},
	{0, "check", NULL, "only say whether options and scenario are valid", apply_check},
	{'h', "help", NULL, "print this help", apply_help},
	{0, "version", NULL, "print the version", apply_version},
};
/* clang-format on */

const struct option_table option_output = {"Output", rows, ARRAY_SIZE(rows)};
