// SPDX-License-Identifier: MIT
/* Options, defaults and refusals of a sweep. */
#include "rows.h"

#include <errno.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"

#define SWEEP_DURATION_NS (2 * NSEC_PER_SEC)
#define SWEEP_WARMUP_NS	  (500 * NSEC_PER_MSEC)

static int apply_ladder(void *ladder, const char *value, char **ret_error)
{
	return ladder_parse(value, ladder, ret_error);
}

/* clang-format off */
static const struct cli_option rows[] = {
	{"ladder", 0, "STEPS",
	 "the loads, one run each: connections like 1..512\n(doubling, the default), 1..512x1.5, 100..900+200,\n"
	 "1,2,8,32, or rates like rate:1k..64k", CLI_APPLY, AT(ladder), .apply = apply_ladder},
};
/* clang-format on */

const struct cli_table option_sweep = {"Sweep", rows, ARRAY_SIZE(rows), 0};

/* Return an option without meaning in a sweep, where every step is a run; NULL: none. */
static const char *option_against_sweep(const struct options *options)
{
	if (options->load.requests)
		return "--requests";
	if (options->load.schedule.rate)
		return "--rate";
	if (options->assertion_count)
		return "--assert";
	if (options->run.fail_fast)
		return "--fail-fast";
	if (options->ladder.of_rates && options->load.schedule.think_ns)
		return "--think";
	if (options->hlog_path)
		return "--hlog";
	return options->trace_path ? "--trace" : NULL;
}

int option_settle_sweep(struct options *options, char **ret_error)
{
	const char *wrong = option_against_sweep(options);

	if (options->command != COMMAND_SWEEP && options->ladder.count)
		return refuse(ret_error, "--ladder: it is for sojourn-drive sweep");
	if (options->command != COMMAND_SWEEP)
		return 0;
	if (wrong)
		return refuse(ret_error, "%s: a sweep has none; see --ladder", wrong);
	if (!options->ladder.count && ladder_parse("1..512", &options->ladder, ret_error))
		return -EINVAL;
	if (!options->load.duration_ns)
		options->load.duration_ns = SWEEP_DURATION_NS;
	if (options->load.duration_ns < 100 * NSEC_PER_MSEC)
		return refuse(ret_error, "--duration: a step of a sweep takes at least 100ms");
	if (!options->load.warmup_ns)
		options->load.warmup_ns = SWEEP_WARMUP_NS;
	return 0;
}
