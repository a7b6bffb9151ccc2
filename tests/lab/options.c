// SPDX-License-Identifier: MIT
/* The command line: a table of the server's own options, followed by the knobs' table. */
#include "options.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "number.h"
#include "protocol.h"
#include "sojourn/cleanup.h"

#define EXIT_USAGE 2
#define FIRST_ID   256 /* above every character, for getopt_long() */

const char *const model_names[MODEL_COUNT] = {"event", "threads", "prefork"};

enum option_kind {
	OPTION_NUMBER,
	OPTION_DURATION,
	OPTION_CHOICE,
	OPTION_FILE,
	OPTION_ADDRESS,
	OPTION_HELP,
	OPTION_VERSION,
};

static const char *const protocol_names[] = {"http", "line", "frame", "udp"};
static const char *const worker_names[] = {"event", "blocking"};
static const char *const accept_names[] = {"accept4", "accept", "io_uring", "multishot"};

struct choice {
	const char *const *names;
	size_t count;
	const char *allowed;
};

static const struct choice models = {model_names, MODEL_COUNT, "event, threads or prefork"};
static const struct choice workers = {worker_names, ARRAY_SIZE(worker_names), "event or blocking"};
static const struct choice accept_calls = {accept_names, ARRAY_SIZE(accept_names),
					   "accept4, accept, io_uring or multishot"};
static const struct choice protocols = {protocol_names, ARRAY_SIZE(protocol_names),
					"http, line, frame or udp"};

struct row {
	const char *name;
	enum option_kind kind;
	size_t offset;
	uint64_t min;
	uint64_t max;
	const struct choice *choice;
	const char *argument;
	const char *help; /* lines of 48 columns at most */
};

#define AT(member) offsetof(struct options, member)

/* clang-format off */
static const struct row rows[] = {
	{"listen", OPTION_ADDRESS, AT(listen), 0, 0, NULL, "ADDR:PORT",
	 "where to listen (default 127.0.0.1:8080); IPv6\nas [ADDR]:PORT; port 0: any free one"},
	{"protocol", OPTION_CHOICE, AT(protocol), 0, 0, &protocols, "NAME",
	 "http (default): HTTP/1.x\n"
	 "line: a line in, a line out\n"
	 "frame: 4 bytes of big-endian length, payload\n"
	 "udp: a datagram in, a datagram out"},
	{"model", OPTION_CHOICE, AT(model), 0, 0, &models, "NAME",
	 "event (default): one epoll loop\n"
	 "threads: a thread per connection, blocking\n"
	 "calls (udp: --workers threads on one socket)\n"
	 "prefork: --workers processes on one socket"},
	{"workers", OPTION_NUMBER, AT(workers), 1, 256, NULL, "N",
	 "processes or udp threads, 1 to 256 (default 4)"},
	{"worker", OPTION_CHOICE, AT(blocking_workers), 0, 0, &workers, "NAME",
	 "prefork: event (default): a loop in each\n"
	 "blocking: each serves one connection at a time\n"
	 "to its end; the others wait to be accepted"},
	{"backlog", OPTION_NUMBER, AT(backlog), 0, 65535, NULL, "N",
	 "listen()'s backlog, 0 to 65535 (default 1024)"},
	{"accept", OPTION_CHOICE, AT(accept_call), 0, 0, &accept_calls, "CALL",
	 "accept4 (default), or with --model threads:\n"
	 "accept, io_uring, or multishot: io_uring accepts\nin advance"},
	{"accept-delay", OPTION_DURATION, AT(accept_delay_ns), 0, KNOB_MAX_DURATION_NS, NULL, "DUR",
	 "wait DUR before each accept(), counted from\n"
	 "when a connection is seen pending; workers take\nturns"},
	{"read-delay", OPTION_DURATION, AT(read_delay_ns), 0, KNOB_MAX_DURATION_NS, NULL, "DUR",
	 "wait DUR before the first read of each request,\n"
	 "counted from when data is seen readable (a timer\n"
	 "in a loop; poll, sleep, read where calls block;\n"
	 "those who share a udp socket take turns)"},
	{"one-in", OPTION_NUMBER, AT(one_in), 1, 1000000, NULL, "N",
	 "only one of N has the delay of --accept-delay,\n"
	 "--read-delay and --service, evenly spaced\n(default 1: each)"},
	{"truth", OPTION_FILE, AT(truth), 0, 0, NULL, "FILE",
	 "at the end, write the times of every exchange\nas CSV"},
	{"truth-limit", OPTION_NUMBER, AT(truth_limit), 1, 1000000000, NULL, "N",
	 "keep N exchanges per process, rounded up to\n1024s (default 5000000, 200 bytes each)"},
	{"summary", OPTION_FILE, AT(summary), 0, 0, NULL, "FILE",
	 "at the end and on SIGUSR1, write counters as\nJSON"},
	{"help", OPTION_HELP, 0, 0, 0, NULL, NULL, "print this and exit"},
	{"version", OPTION_VERSION, 0, 0, 0, NULL, NULL, "print the version and exit"},
};

static const char help_head[] =
"Usage: sojourn-lab [OPTION]...\n"
"\n"
"A server that treats its requests as configured, and knows exactly when.\n"
"Prints \"listening on ADDR:PORT\" when ready, serves until SIGTERM or SIGINT.\n"
"\n";

static const char help_knobs[] =
"\n"
"For every request, unless it says otherwise in its query string (http) or its\n"
"payload (line, frame, udp), as \"service=5ms&pieces=3&pause=1ms\"; flags as\n"
"\"close=1\" or \"close=0\":\n";

static const char help_tail[] =
"\n"
"DUR: a number with ns, us, ms or s (default s), at most 60s. A request that asks\n"
"for what is not allowed is answered with status 400 or a line \"error: ...\".\n"
"Without size=, http answers \"ok\", the others echo the payload. udp has neither\n"
"accept-delay nor early-close, ignore-fin, reset and close.\n"
"\n"
"The truth's times are CLOCK_MONOTONIC ns around the server's own calls:\n"
"  receive = last_read_end - first_read_end\n"
"  service = first_write_end - last_read_end\n"
"  respond = last_write_end - first_write_end\n"
"\n"
"Exit status: 0 stopped by a signal, 1 failed, 2 bad command line.\n";
/* clang-format on */

static void print_help_row(const char *name, const char *argument, const char *help)
{
	char left[32];

	snprintf(left, sizeof(left), "  --%s%s%s", name, argument ? " " : "",
		 argument ? argument : "");
	while (*help) {
		int length = (int)strcspn(help, "\n");

		printf("%-28s%.*s\n", left, length, help);
		help += length + (help[length] == '\n');
		left[0] = 0;
	}
}

static void print_help(void)
{
	fputs(help_head, stdout);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		print_help_row(rows[i].name, rows[i].argument, rows[i].help);
	fputs(help_knobs, stdout);
	for (size_t i = 0; i < knob_count; i++)
		print_help_row(knob_table[i].name,
			       knob_table[i].kind == KNOB_FLAG ? NULL : knob_table[i].argument,
			       knob_table[i].help);
	fputs(help_tail, stdout);
}

static int complain(const struct row *row, const char *value, const char *allowed)
{
	warnx("--%s: '%s' is not %s", row->name, value, allowed);
	return EXIT_USAGE;
}

static int set_number(const struct row *row, const char *value, uint64_t *ret_number)
{
	char allowed[64];
	uint64_t number;
	bool duration = row->kind == OPTION_DURATION;
	int err = duration ? number_parse_duration(value, strlen(value), row->max, &number)
			   : number_parse(value, strlen(value), row->max, &number);

	if (!err && number >= row->min) {
		*ret_number = number;
		return OPTIONS_GO_ON;
	}
	snprintf(allowed, sizeof(allowed), "a number from %llu to %llu",
		 (unsigned long long)row->min, (unsigned long long)row->max);
	return complain(row, value, duration ? "a duration from 0 to 60s, as 5ms" : allowed);
}

static int set_choice(const struct row *row, const char *value, void *target)
{
	for (size_t i = 0; i < row->choice->count; i++) {
		if (strcmp(row->choice->names[i], value))
			continue;
		if (row->choice == &protocols)
			*(const char **)target = row->choice->names[i];
		else
			*(uint64_t *)target = i;
		return OPTIONS_GO_ON;
	}
	return complain(row, value, row->choice->allowed);
}

static int set_address(const struct row *row, const char *value, union address *target)
{
	if (!address_parse(value, target))
		return OPTIONS_GO_ON;
	return complain(row, value, "an IPv4 ADDR:PORT or an IPv6 [ADDR]:PORT");
}

static int set_file(const struct row *row, const char *value, const char **target)
{
	if (!*value)
		return complain(row, value, "a file's name");
	*target = value;
	return OPTIONS_GO_ON;
}

static int set_row(const struct row *row, const char *value, struct options *options)
{
	void *target = (char *)options + row->offset;

	switch (row->kind) {
	case OPTION_HELP:
		print_help();
		return EXIT_SUCCESS;
	case OPTION_VERSION:
		puts("sojourn-lab " SOJOURN_VERSION);
		return EXIT_SUCCESS;
	case OPTION_CHOICE:
		return set_choice(row, value, target);
	case OPTION_ADDRESS:
		return set_address(row, value, target);
	case OPTION_FILE:
		return set_file(row, value, target);
	default:
		return set_number(row, value, target);
	}
}

static int set_knob(const struct knob *knob, const char *value, struct options *options)
{
	struct complaint complaint;

	if (!value)
		value = "1"; /* a flag's argument may be left out */
	if (!knobs_set(&options->knobs, knob, value, strlen(value), &complaint))
		return OPTIONS_GO_ON;
	warnx("--%s", complaint.text);
	return EXIT_USAGE;
}

static int argument_of(const struct row *row)
{
	return row->argument ? required_argument : no_argument;
}

/* Both tables for getopt_long(), in this order, ended by a zero entry. */
static void fill_long_options(struct option *ret_options)
{
	int id = FIRST_ID;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		*ret_options++ = (struct option){rows[i].name, argument_of(&rows[i]), NULL, id++};
	for (size_t i = 0; i < knob_count; i++)
		*ret_options++ = (struct option){
			knob_table[i].name,
			knob_table[i].kind == KNOB_FLAG ? optional_argument : required_argument,
			NULL, id++};
	*ret_options = (struct option){0};
}

static int check(const struct options *options)
{
	bool udp = !strcmp(options->protocol, "udp");
	const struct protocol *protocol = protocol_find(options->protocol);
	struct complaint complaint;

	if (udp && options->accept_delay_ns) {
		warnx("--accept-delay: udp accepts no connections");
		return EXIT_USAGE;
	}
	if (options->accept_call && (udp || options->model != MODEL_THREADS)) {
		warnx("--accept: only --model threads has a choice of calls, and not udp");
		return EXIT_USAGE;
	}
	if (options->blocking_workers && options->model != MODEL_PREFORK) {
		warnx("--worker: only --model prefork has kinds of workers");
		return EXIT_USAGE;
	}
	if (!knobs_check(&options->knobs, udp ? KNOB_SCOPE_DATAGRAM : protocol->scope, &complaint))
		return OPTIONS_GO_ON;
	warnx("--%s", complaint.text);
	return EXIT_USAGE;
}

static int refuse_argument(int got, char **argv)
{
	warnx(got == ':' ? "%s: needs a value (see --help)" : "%s: no such option (see --help)",
	      argv[optind - 1]);
	return EXIT_USAGE;
}

static void set_defaults(struct options *options)
{
	*options = (struct options){.protocol = "http",
				    .workers = 4,
				    .backlog = 1024,
				    .one_in = 1,
				    .truth_limit = 5000000};
	address_parse("127.0.0.1:8080", &options->listen);
	knobs_init(&options->knobs);
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct option long_options[64];
	int got, status = OPTIONS_GO_ON;

	set_defaults(ret_options);
	fill_long_options(long_options);
	opterr = 0;
	while (status == OPTIONS_GO_ON) {
		got = getopt_long(argc, argv, ":", long_options, NULL);
		if (got == -1)
			break;
		if (got < FIRST_ID)
			return refuse_argument(got, argv);
		got -= FIRST_ID;
		if ((size_t)got < ARRAY_SIZE(rows))
			status = set_row(&rows[got], optarg, ret_options);
		else
			status = set_knob(&knob_table[got - (int)ARRAY_SIZE(rows)], optarg,
					  ret_options);
	}
	if (status != OPTIONS_GO_ON)
		return status;
	if (optind < argc) {
		warnx("'%s': no argument is expected (see --help)", argv[optind]);
		return EXIT_USAGE;
	}
	return check(ret_options);
}
