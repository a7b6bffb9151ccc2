// SPDX-License-Identifier: MIT
/* Options for the load, its duration, and when requests start. */
#include "rows.h"

#include <ctype.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"

#define CONNECTIONS_MAX 1000000
#define THREADS_MAX	1024

static int apply_connections(void *settings, const char *value, char **ret_error)
{
	static const struct cli_option number = {"connections", .kind = CLI_NUMBER,
						 CLI_AT(struct load_settings, connections),
						 .minimum = 1, .maximum = CONNECTIONS_MAX};
	struct load_settings *load = settings;
	int err;

	load->ramp.count = 0;
	load->connections_text = value;
	if (!strpbrk(value, ".,:"))
		return cli_apply(&number, load, value, ret_error);
	err = shape_parse(&shape_connections, value, &load->ramp, ret_error);
	if (!err)
		load->connections = (uint32_t)shape_most(&load->ramp);
	return err;
}

/* Refuse text with advice: -d gives the body in curl and hey. */
static int apply_duration(void *settings, const char *value, char **ret_error)
{
	static const struct cli_option duration = {"duration", .kind = CLI_DURATION,
						   CLI_AT(struct load_settings, duration_ns),
						   .minimum = NSEC_PER_MSEC};

	if (!isdigit((unsigned char)*value) && *value && !strchr("+-.", *value))
		return refuse(ret_error,
			      "--duration: '%s' is not a duration; write it like 500ms, 10s or "
			      "2m. A request's body is given by --body",
			      value);
	return cli_apply(&duration, settings, value, ret_error);
}

/* The mean rate is not known before the duration; until then 1 marks that a rate was given. */
static int apply_rate(void *settings, const char *value, char **ret_error)
{
	struct load_settings *load = settings;

	load->rate_text = value;
	load->schedule.rate = 1;
	return shape_parse(&shape_rate, value, &load->schedule.shape, ret_error);
}

static int apply_think_distribution(void *settings, const char *value, char **ret_error)
{
	static const struct cli_option word = {"think-distribution",
					       .kind = CLI_WORD,
					       AT(load.schedule.think),
					       .words = schedule_think_names,
					       .maximum = 2,
					       .allowed = "is not known; use fixed or exponential"};

	((struct options *)settings)->think_distribution_given = true;
	return cli_apply(&word, settings, value, ret_error);
}

static const char *set_start_at(void *at_ns, const char *value)
{
	return start_parse_time(value, at_ns)
		       ? "is not a time; write seconds since 1970, or like 2026-01-31T12:00:00Z"
		       : NULL;
}

static int apply_wait_for(void *flag, const char *value, char **ret_error)
{
	*(const char **)flag = value;
	return start_check_flag(value, ret_error);
}

static int apply_source(void *sources, const char *value, char **ret_error)
{
	return source_parse(value, sources, ret_error);
}

/* clang-format off */
static const struct cli_option rows[] = {
	{"connections", 'c', "N",
	 "connections kept busy (default 16). A ramp: 1..64;\nsteps: 1,8,64; both with lengths: 1..64:10s,64:30s",
	 CLI_APPLY, AT(load), .apply = apply_connections, .elsewhere = "concurrency"},
	{"threads", 't', "N", "threads that share the connections (default 1)", CLI_NUMBER,
	 AT(run.threads), .minimum = 1, .maximum = THREADS_MAX},
	{"duration", 'd', "TIME", "how long to measure (default 10s; with -n: no limit)",
	 CLI_APPLY, AT(load), .apply = apply_duration, .alias = 'z'},
	{"requests", 'n', "N", "measure exactly N requests, e.g. 1000, 200k, 5M", CLI_COUNT,
	 AT(load.requests), .minimum = 1,
	 .allowed = "is not a count; write it like 1000, 200k or 5M"},
	{"rate", 'q', "N",
	 "start N requests per second, over all connections,\nwhether or not responses come (open loop);\n"
	 "latency counts from when a request was due. A ramp:\n100..2k; steps: 100,200,400; both with lengths:\n"
	 "0..500:10s,500:30s", CLI_APPLY, AT(load), .apply = apply_rate, .elsewhere = "qps"},
	{"arrival", 0, "KIND", "with --rate: constant (default) or poisson", CLI_WORD,
	 AT(load.schedule.arrival), .words = schedule_arrival_names, .minimum = SCHEDULE_CONSTANT,
	 .maximum = SCHEDULE_POISSON + 1, .allowed = "is not known; use constant or poisson"},
	{"think", 0, "TIME",
	 "closed loop: wait TIME between a response and the\nconnection's next request (default 0)",
	 CLI_DURATION, AT(load.schedule.think_ns)},
	{"think-distribution", 0, "KIND", "with --think: fixed (default) or exponential",
	 CLI_APPLY, .apply = apply_think_distribution},
	{"source", 0, "ADDR[,ADDR|A-B]",
	 "connect from these addresses in turn: each has its\nown source ports",
	 CLI_APPLY, AT(link.sources), .apply = apply_source},
	{"wait-for", 0, "FLAG",
	 "begin once FLAG is up: a file that exists, fd:N that\ncan be read, or a URL that answers 2xx",
	 CLI_APPLY, AT(run.start.flag), .apply = apply_wait_for},
	{"start-at", 0, "TIMESTAMP",
	 "begin then: seconds since 1970, or ISO 8601 like\n2026-01-31T12:00:00.5Z",
	 CLI_SET, AT(run.start.at_ns), .set = set_start_at},
	{"warmup", 0, "TIME", "send load for TIME first, unmeasured (default 0)", CLI_DURATION,
	 AT(load.warmup_ns)},
	{"cool-down", 0, "TIME", "go on for TIME afterwards, unmeasured (default 0)", CLI_DURATION,
	 AT(load.cooldown_ns)},
	{"timeout", 0, "TIME",
	 "give up connecting, and waiting for a response,\nafter TIME each (default 5s)",
	 CLI_DURATION, AT(link.timeout_ns), .minimum = NSEC_PER_MSEC},
	{"keep-trying", 0, NULL,
	 "go on where no connection comes about (default: end\nthe run after 1s without one)",
	 CLI_FLAG, AT(run.keep_trying)},
};
/* clang-format on */

const struct cli_table option_load = {"Load", rows, ARRAY_SIZE(rows), 0};
