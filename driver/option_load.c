// SPDX-License-Identifier: MIT
/* How much load, for how long, and when requests start. */
#include "option_rows.h"

#include <errno.h>
#include <string.h>

#include "refuse.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define CONNECTIONS_MAX 1000000
#define THREADS_MAX	1024

static int apply_connections(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("connections", value, 1, CONNECTIONS_MAX, &number, ret_error);

	if (!err)
		options->connections = (uint32_t)number;
	return err;
}

static int apply_threads(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("threads", value, 1, THREADS_MAX, &number, ret_error);

	if (!err)
		options->threads = (uint32_t)number;
	return err;
}

static int apply_duration(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("duration", value, NSEC_PER_MSEC, &options->duration_ns,
				     ret_error);
}

static int apply_requests(struct options *options, const char *value, char **ret_error)
{
	uint64_t count;
	int err = units_parse_count(value, &count);

	if (err || !count)
		return refuse(ret_error,
			      "--requests: '%s' is not a count; write it like 1000, 200k or 5M",
			      value);
	options->requests = count;
	return 0;
}
static int apply_warmup(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("warmup", value, 0, &options->warmup_ns, ret_error);
}

static int apply_timeout(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("timeout", value, NSEC_PER_MSEC, &options->timeout_ns,
				     ret_error);
}

/* clang-format off */
static const struct option_row rows[] = {
	{'c', "connections", "N", "connections kept busy (default 16)", apply_connections},
	{'t', "threads", "N", "threads that share the connections (default 1)", apply_threads},
	{'d', "duration", "TIME", "how long to measure (default 10s; with -n: no limit)",
	 apply_duration},
	{'n', "requests", "N", "measure exactly N requests, e.g. 1000, 200k, 5M", apply_requests},
	{0, "warmup", "TIME", "send load for TIME first, unmeasured (default 0)", apply_warmup},
	{0, "timeout", "TIME",
	 "give up connecting, and waiting for a response,\nafter TIME each (default 5s)",
	 apply_timeout},
};
/* clang-format on */

const struct option_table option_load = {"Load", rows, ARRAY_SIZE(rows)};
