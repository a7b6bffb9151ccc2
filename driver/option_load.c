// SPDX-License-Identifier: MIT
/* How much load, for how long, and when requests start. */
#include "option_rows.h"

#include <errno.h>
#include <string.h>

#include "ramp.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define CONNECTIONS_MAX 1000000
#define THREADS_MAX	1024
#define PROCESSES_MAX	256

static int apply_connections(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err;

	options->ramp.count = 0;
	options->connections_text = value;
	if (strpbrk(value, ".,:")) {
		err = shape_parse(&shape_connections, value, &options->ramp, ret_error);
		if (!err)
			options->connections = ramp_most(&options->ramp);
		return err;
	}
	err = option_parse_number("connections", value, 1, CONNECTIONS_MAX, &number, ret_error);

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

static int apply_processes(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("processes", value, 1, PROCESSES_MAX, &number, ret_error);

	if (!err)
		options->processes = (uint32_t)number;
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

static int apply_cooldown(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("cool-down", value, 0, &options->cooldown_ns, ret_error);
}

/* The mean is known when the duration is; until then any rate says that there is one. */
static int apply_rate(struct options *options, const char *value, char **ret_error)
{
	options->rate_text = value;
	options->schedule.rate = 1;
	return shape_parse(&shape_rate, value, &options->schedule.shape, ret_error);
}

/* The index of @value in @names, from @first on; @count if it is not there. */
static size_t find_name(const char *const *names, size_t first, size_t count, const char *value)
{
	while (first < count && strcmp(names[first], value))
		first++;
	return first;
}

static int apply_arrival(struct options *options, const char *value, char **ret_error)
{
	size_t i = find_name(schedule_arrival_names, SCHEDULE_CONSTANT,
			     ARRAY_SIZE(schedule_arrival_names), value);

	if (i == ARRAY_SIZE(schedule_arrival_names))
		return refuse(ret_error, "--arrival: '%s' is not known; use constant or poisson",
			      value);
	options->schedule.arrival = (enum schedule_arrival)i;
	return 0;
}

static int apply_think(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("think", value, 0, &options->schedule.think_ns, ret_error);
}

static int apply_think_distribution(struct options *options, const char *value, char **ret_error)
{
	size_t i = find_name(schedule_think_names, 0, ARRAY_SIZE(schedule_think_names), value);

	if (i == ARRAY_SIZE(schedule_think_names))
		return refuse(ret_error,
			      "--think-distribution: '%s' is not known; use fixed or exponential",
			      value);
	options->schedule.think = (enum schedule_think)i;
	options->think_distribution_given = true;
	return 0;
}

static int apply_start_at(struct options *options, const char *value, char **ret_error)
{
	if (start_parse_time(value, &options->start.at_ns))
		return refuse(ret_error,
			      "--start-at: '%s' is not a time; write seconds since 1970, or like "
			      "2026-01-31T12:00:00Z",
			      value);
	return 0;
}

static int apply_wait_for(struct options *options, const char *value, char **ret_error)
{
	options->start.flag = value;
	return start_check_flag(value, ret_error);
}

static int apply_source(struct options *options, const char *value, char **ret_error)
{
	return source_parse(value, &options->sources, ret_error);
}

static int apply_port_choice(struct options *options, const char *value, char **ret_error)
{
	static const char *const names[] = {
		[SOURCE_RANGE] = "range", [SOURCE_OWN] = "own", [SOURCE_KERNEL] = "kernel"};
	size_t i = find_name(names, 0, ARRAY_SIZE(names), value);

	if (i == ARRAY_SIZE(names))
		return refuse(ret_error,
			      "--port-choice: '%s' is not known; use range, own or kernel", value);
	options->sources.choice = (enum source_choice)i;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
	{'c', "connections", "N",
	 "connections kept busy (default 16). A ramp: 1..64;\nsteps: 1,8,64; both with lengths: 1..64:10s,64:30s",
	 apply_connections},
	{'t', "threads", "N", "threads that share the connections (default 1)", apply_threads},
	{0, "processes", "N",
	 "processes that share the connections, each with its\nthreads: for more descriptors than one may have\n"
	 "(default 1)", apply_processes},
	{'d', "duration", "TIME", "how long to measure (default 10s; with -n: no limit)",
	 apply_duration},
	{'n', "requests", "N", "measure exactly N requests, e.g. 1000, 200k, 5M", apply_requests},
	{0, "rate", "N",
	 "start N requests per second, over all connections,\nwhether or not responses come (open loop);\n"
	 "latency counts from when a request was due. A ramp:\n100..2k; steps: 100,200,400; both with lengths:\n"
	 "0..500:10s,500:30s", apply_rate},
	{0, "arrival", "KIND", "with --rate: constant (default) or poisson", apply_arrival},
	{0, "think", "TIME",
	 "closed loop: wait TIME between a response and the\nconnection's next request (default 0)",
	 apply_think},
	{0, "think-distribution", "KIND", "with --think: fixed (default) or exponential",
	 apply_think_distribution},
	{0, "source", "ADDR[,ADDR|A-B]",
	 "connect from these addresses in turn: each has its\nown source ports",
	 apply_source},
	{0, "port-choice", "HOW", NULL, apply_port_choice}, /* for tests and benchmarks */
	{0, "wait-for", "FLAG",
	 "begin once FLAG is up: a file that exists, fd:N that\ncan be read, or a URL that answers 2xx", apply_wait_for},
	{0, "start-at", "TIMESTAMP",
	 "begin then: seconds since 1970, or ISO 8601 like\n2026-01-31T12:00:00.5Z", apply_start_at},
	{0, "warmup", "TIME", "send load for TIME first, unmeasured (default 0)", apply_warmup},
	{0, "cool-down", "TIME", "go on for TIME afterwards, unmeasured (default 0)",
	 apply_cooldown},
	{0, "timeout", "TIME",
	 "give up connecting, and waiting for a response,\nafter TIME each (default 5s)",
	 apply_timeout},
};
/* clang-format on */

const struct option_table option_load = {"Load", rows, ARRAY_SIZE(rows)};
