// SPDX-License-Identifier: MIT
/* Options for output files, the report, and what is printed instead of a run. */
#include "rows.h"

#include <errno.h>

#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"

/* A document with both sides' samples stays far below a reader's limit. */
#define SAMPLES_MAX 50000U

#define EMPTY "'' is no file; give one, or - for standard output"

static int apply_assert(void *settings, const char *value, char **ret_error)
{
	struct options *options = settings;
	struct assertion assertion, *added;
	int err = assertion_parse(value, &assertion, ret_error);

	if (err)
		return err;
	added = ARRAY_APPEND(options->assertions, options->assertion_count);
	if (!added)
		return -ENOMEM;
	*added = assertion;
	return 0;
}

_Static_assert(SAMPLES_MAX == 50000, "as --samples says");

/* clang-format off */
static const struct cli_option rows[] = {
	{"samples", 0, "N",
	 "exchanges kept to be joined one by one with the\nobserver's, with --observer or --json (default 20k;\n"
	 "0: none)", CLI_COUNT, AT(run.samples), .maximum = SAMPLES_MAX,
	 .allowed = "is not a count from 0 to 50000; write it like 20k"},
	{"slowest", 0, "N",
	 "joined exchanges printed with their timeline\n(default 10)",
	 CLI_NUMBER, AT(run.slowest), .maximum = JOIN_SLOWEST_MAX},
	{"trace", 0, "FILE",
	 "write these timelines to FILE, for ui.perfetto.dev", CLI_TEXT,
	 AT(trace_path), .minimum = 1, .allowed = "the file name is empty; give a file"},
	{"keep-samples", 0, NULL,
	 "leave single exchanges in the document although\nthey are joined",
	 CLI_FLAG, AT(run.keep_samples)},
	{"json", 0, "FILE",
	 "write the run document to FILE; with - to standard\n"
	 "output, in place of the text report",
	 CLI_TEXT, AT(json_path), .minimum = 1, .allowed = "the file name is empty; give a file, or - for standard output"},
	{"csv", 0, "FILE",
	 "write intervals and overall figures to FILE, comma-\nseparated; - as with --json",
	 CLI_TEXT,
	 AT(csv_path), .minimum = 1, .allowed = EMPTY},
	{"hlog", 0, "FILE",
	 "write the latency of the intervals to FILE as a log\nof HdrHistogram; - as with --json",
	 CLI_TEXT,
	 AT(hlog_path), .minimum = 1, .allowed = EMPTY},
	{"interval", 0, "TIME", "length of the intervals in the results (default 1s)", CLI_DURATION,
	 AT(load.interval_ns), .minimum = NSEC_PER_MSEC},
	{"assert", 0, "CONDITION",
	 "exit with 1 unless it holds: 'p99<5ms', 'rate>900',\n'errors<0.1%', 'unsent<1%', 'timeouts<1%', and with\n"
	 "--observer 'unanswered<1%'; may be repeated. One\nabout errors decides how many are too many. A\n"
	 "percentile needs answers to all but what is beyond",
	 CLI_APPLY, .apply = apply_assert},
	{"fail-fast", 0, NULL, "end the run at the first failure", CLI_FLAG, AT(run.fail_fast)},
	{"quiet", 0, NULL, "no progress, no steps of a sweep and no text report", CLI_FLAG, AT(run.quiet)},
	{"no-tui", 0, NULL,
	 "progress as one line on a terminal, too, in place of\nthe live view", CLI_FLAG, AT(run.no_tui)},
	{"verbose", 'v', NULL,
	 "the whole text report: every percentile, resource\nand count, not only what comes first",
	 CLI_FLAG, AT(verbose)},
	{"check", 0, NULL, "only say whether options and scenario are valid", CLI_FLAG,
	 AT(check_only)},
	{"help", 'h', NULL, "print this help", CLI_CONSTANT, AT(action), .minimum = OPTIONS_HELP},
	{"version", 0, NULL, "print the version",
	 CLI_CONSTANT, AT(action), .minimum = OPTIONS_VERSION},
};
/* clang-format on */

const struct cli_table option_output = {"Output", rows, ARRAY_SIZE(rows), 0};
