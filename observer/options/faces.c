// SPDX-License-Identifier: MIT
/* The command lines of `sojourn live`, `serve` and `record`, made of rows of `observe`; see options.h. */
#include <assert.h>
#include <string.h>

#include "options.h"
#include "listen.h"
#include "otlp.h"
#include "rows.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define ROWS_MAX 32

/*
 * Parse the options of @command: its tables, and at @place those @names of `observe`. The option @other means
 * something else here: @help says what.
 */
static int parse(const struct cli_command *command, size_t place, const char *const *names,
		 size_t count, const char *other, const char *help, int argc, char **argv,
		 struct observe_options *options)
{
	struct cli_option rows[ROWS_MAX];
	const struct cli_table table = {place ? NULL : "Options", rows, count, 0};
	struct cli_command whole = *command;
	int next, r;

	for (size_t i = 0; i < count; i++) {
		const struct cli_option *row = options_observe_row(names[i]);

		assert(row);
		rows[i] = *row;
		if (!strcmp(names[i], other))
			rows[i].help = help;
	}
	whole.tables[place] = &table;
	r = cli_parse(&whole, argc, argv, options, NULL, &next);
	if (r < 0)
		return r;
	if (next < argc)
		return options_refuse_word(command, argv[next], "it takes no words");
	/* Without a target observe every listener. */
	if (!options->port_count && !options->pid && !options_names_cgroup(options))
		options->all_listeners = true;
	return options_check_where(command, options);
}

#define AT(member) CLI_AT(struct observe_options, member)

static const struct cli_option live_own_rows[] = {
	{"replay", 0, "FILE", "Play a recording instead, made by 'sojourn record'.", CLI_TEXT,
	 AT(replay), .minimum = 1, .allowed = "a recording that 'sojourn record' made"},
};

static const struct cli_table live_table = {NULL, live_own_rows, ARRAY_SIZE(live_own_rows), 0};

static const char *const live_rows[] = {
	"port",		 "pid",	      "all-listeners", "interval",   "for",	 "json",
	"accept-source", "prefer",    "no-doctor",     "quiet-time", "transmit", "cpu",
	"cgroup",	 "memory",    "http",	       "no-http2",   "route",	 "tls",
	"netns",	 "all-netns", "container",     "pod",	     "protocol", "calls",
};

int options_parse_live(int argc, char **argv, struct observe_options *ret_options)
{
	static const struct cli_command command = {
		.program = "sojourn live",
		.usage = "[--port PORT | --pid PID | --container ID | --all-netns] [OPTION...]",
		.intro = "Shows the services of this host on the terminal, a row each, renewed "
			 "every interval: where requests wait, who serves them, what runs out. "
			 "Every TCP listener by default. Press ? for the keys. In a replay Space "
			 "stops, . and , step forward and back, + and - change its speed.",
		.tables = {NULL, &live_table},
		.outro = "Exit codes: 0 left by q, Ctrl-C, SIGTERM or after --for; 1 failed; 2 "
			 "wrong options;\n3 this kernel or this user may not observe.\n\n"
			 "Examples:\n"
			 "  $ sojourn live\n"
			 "  $ sojourn live --port 8080,8443\n",
	};
	int r;

	*ret_options = (struct observe_options){
		.live = true,
		.quiet = true,
		.quiet_ns = OPTIONS_QUIET_NS,
		.interval_ns = NSEC_PER_SEC,
	};
	r = parse(&command, 0, live_rows, ARRAY_SIZE(live_rows), "interval",
		  "Renew the screen this often.", argc, argv, ret_options);
	/* A recording is played as it is. */
	if (!r && ret_options->replay && argc != 2 && argc != 3)
		return cli_error(&command,
				 "--replay plays what was recorded: it takes no other option");
	if (!r && ret_options->replay)
		return 0;
	if (!r && ret_options->json && !strcmp(ret_options->json, "-"))
		return cli_error(&command, "--json: '-': standard output is the screen: a file");
	return r;
}

static const char *const serve_rows[] = {
	"port",	     "pid",	  "all-listeners", "for",     "listen",	   "accept-source",
	"prefer",    "transmit",  "cpu",	   "cgroup",  "no-doctor", "quiet-time",
	"memory",    "http",	  "no-http2",	   "route",   "tls",	   "netns",
	"all-netns", "container", "pod",	   "samples", "protocol",  "calls",
};

int options_parse_serve(int argc, char **argv, struct observe_options *ret_options)
{
	static const struct cli_command command = {
		.program = "sojourn serve",
		.usage = "[--port PORT | --pid PID | --container ID | --all-netns] [OPTION...]",
		.intro = "Observes the services of this host and answers over HTTP, until stopped: "
			 "/metrics for Prometheus, a page for browsers, /healthz, run documents "
			 "below /v1/. By default every TCP listener, at 127.0.0.1:9180.",
		.tables = {NULL, &options_listen, &options_otlp},
		.outro = "Exit codes: 0 stopped by Ctrl-C, SIGTERM or after --for; 1 failed; 2 "
			 "wrong options;\n3 this kernel or this user may not observe.\n\n"
			 "Examples:\n"
			 "  $ sojourn serve\n"
			 "  $ sojourn serve --port 8080 --listen 127.0.0.1:9181\n",
	};
	int r;

	*ret_options = (struct observe_options){
		.quiet = true,
		.listen = true,
		.ring_kib = OPTIONS_RING_KIB,
		.quiet_ns = OPTIONS_QUIET_NS,
	};
	sink_http_parse_address("127.0.0.1:9180", &ret_options->address);
	r = parse(&command, 0, serve_rows, ARRAY_SIZE(serve_rows), "samples",
		  "Keep up to N single exchanges of a service in a measured phase, which a "
		  "driver's --observer joins with its own (default: none).",
		  argc, argv, ret_options);
	if (!r)
		r = options_otlp_check(&command, ret_options);
	return r ? r : options_listen_check(&command, ret_options);
}

_Static_assert(ARRAY_SIZE(serve_rows) <= ROWS_MAX, "rows of sojourn serve");

/* Smaller files would hold a reading or two. */
#define SMALLEST_RECORDING 1000000

static const char *set_output(void *record, const char *value)
{
	*(const char **)record = value;
	return *value && strcmp(value, "-") ? NULL : "a file, which is made or continued";
}

static const struct cli_option output_rows[] = {
	{"output", 'o', "FILE",
	 "Write a reading to FILE at each interval; an existing recording is continued.", CLI_SET,
	 AT(record), .set = set_output},
	{"max-size", 0, "BYTES",
	 "Beyond so many bytes (k, M, G) FILE becomes FILE.1, which is replaced, and a new FILE "
	 "begins: both together take twice that at most.",
	 CLI_COUNT, AT(record_max_bytes), .minimum = SMALLEST_RECORDING,
	 .allowed = "bytes, at least 1M, e.g. 500M or 2G"},
};

static const struct cli_table output_table = {"Options", output_rows, ARRAY_SIZE(output_rows), 0};

static const char *const record_rows[] = {
	"port",	     "pid",	      "all-listeners", "interval", "for",	 "json",
	"listen",    "accept-source", "transmit",      "cpu",	   "cgroup",	 "prefer",
	"cost",	     "no-doctor",     "quiet",	       "debug",	   "quiet-time", "memory",
	"http",	     "no-http2",      "route",	       "tls",	   "netns",	 "all-netns",
	"container", "pod",	      "protocol",
};

int options_parse_record(int argc, char **argv, struct observe_options *ret_options)
{
	static const struct cli_command command = {
		.program = "sojourn record",
		.usage = "-o FILE [--port PORT | --pid PID | --container ID | --all-netns] "
			 "[OPTION...]",
		.intro = "Observes the services of this host and appends a reading to a file every "
			 "second. After a crash of host or program at most the last interval is "
			 "missing. 'sojourn report FILE' makes a report of it, 'sojourn live "
			 "--replay FILE' plays it. Every TCP listener by default.",
		.tables = {&output_table, NULL, &options_listen},
		.outro = "Exit codes: 0 stopped by Ctrl-C, SIGTERM or after --for; 1 failed, or "
			 "FILE lacks\nthe end; 2 wrong options; 3 this kernel or this user may not "
			 "observe.\n\n"
			 "Examples:\n"
			 "  $ sojourn record -o web.rec --port 8080\n"
			 "  $ sojourn report web.rec -o web.html\n",
	};
	int r;

	*ret_options =
		(struct observe_options){.interval_ns = NSEC_PER_SEC, .quiet_ns = OPTIONS_QUIET_NS};
	r = parse(&command, 1, record_rows, ARRAY_SIZE(record_rows), "interval",
		  "Write a reading this often (default 1s).", argc, argv, ret_options);
	if (!r && !ret_options->record)
		r = cli_error(&command, "--output: no file: give -o FILE");
	return r ? r : options_listen_check(&command, ret_options);
}

_Static_assert(ARRAY_SIZE(record_rows) <= ROWS_MAX, "rows of sojourn record");
