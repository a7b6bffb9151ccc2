// SPDX-License-Identifier: MIT
/* sojourn: the subcommands and nothing else. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "observe.h"
#include "options/options.h"
#include "kernel/heap.h"
#include "kernel/plan.h"
#include "probe/probe.h"
#include "sinks/live/replay.h"
#include "report/report.h"
#include "sojourn/cleanup.h"
#include "sojourn/cli.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "sojourn/streams.h"
#include "sojourn/suggest.h"

/* The result of cli_parse() as an exit code. */
static int parse_exit(int r)
{
	return r == -ECANCELED ? EXIT_SUCCESS : EXIT_USAGE;
}

/* Run a command that observes; argv[0] is its name. */
static int start(int argc, char **argv,
		 int (*parse)(int argc, char **argv, struct observe_options *ret_options))
{
	static char program[32];
	struct observe_options options;
	int r = parse(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	snprintf(program, sizeof(program), "sojourn %s", argv[0]);
	log_open(program, options.debug);
	if (options.live && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		log_error("standard input and output must be a terminal: 'sojourn observe "
			  "--interval 1s' prints lines");
		return EXIT_FAILURE;
	}
	return options.replay ? replay(options.replay) : observe(&options);
}

static int probe_exit(const struct plan *plan)
{
	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++) {
		if (plan_missing(plan, stage))
			return EXIT_UNSUPPORTED;
	}
	return EXIT_SUCCESS;
}

/* --help promises five seconds for --cost, which include the end of this process. */
#define COST_END_NS   (4500 * NSEC_PER_MSEC)
#define COST_LEAST_NS (2 * NSEC_PER_SEC)

/* The programs of --http are only loaded, without a trial: if that fails, their cost is not printed. */
static bool plan_http(struct plan *ret_plan)
{
	const struct plan_wish wish = {.cgroup_fd = -1, .http = true, .hopeful = true};

	return !plan_build(&wish, ret_plan) && !plan_missing_http(ret_plan);
}

static int probe_cost(const struct probe_options *options, const struct plan *plan,
		      uint64_t begun_ns)
{
	const char *missing = plan_missing(plan, STAGE_SERVICE);
	struct plan http;
	struct cost cost;
	uint64_t taken_ns = clock_now_ns() - begun_ns, budget_ns = COST_LEAST_NS;
	int r;

	if (taken_ns + COST_LEAST_NS < COST_END_NS)
		budget_ns = COST_END_NS - taken_ns;
	log_open("sojourn probe", false);
	if (missing) {
		log_error("--cost: cannot observe: %s", missing);
		return EXIT_UNSUPPORTED;
	}
	r = cost_measure(plan, plan_http(&http) ? &http : NULL, OPTIONS_QUIET_NS, budget_ns, &cost);
	if (!r)
		r = options->json ? probe_print_json(plan, &cost, stdout)
				  : probe_print_cost(&cost, stdout);
	if (r == -ENODATA)
		log_error("--cost: the programs did not see all exchanges that were made: their "
			  "cost would be that of something else");
	else if (r < 0)
		log_errno(r, "--cost: cannot measure");
	return r < 0 ? EXIT_FAILURE : probe_exit(plan);
}

static int main_probe(int argc, char **argv)
{
	uint64_t begun_ns = clock_now_ns();
	struct plan_wish wish = {.cgroup_fd = -1};
	struct probe_options options;
	struct plan plan;
	int r = options_parse_probe(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	wish.everything = options.json || !options.cost;
	heap_loading();
	r = plan_build(&wish, &plan);
	if (r < 0) {
		log_open("sojourn probe", false);
		log_errno(r, "cannot try the kernel's programs");
		return EXIT_FAILURE;
	}
	if (options.cost)
		return probe_cost(&options, &plan, begun_ns);
	if (options.json)
		r = probe_print_json(&plan, NULL, stdout);
	else
		probe_print_text(&plan, stdout);
	return r < 0 ? EXIT_FAILURE : probe_exit(&plan);
}

/* The driver is a program of its own, beside this one or in the path. */
static int main_drive(int argc, char **argv)
{
	char self[PATH_MAX], path[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)argc;
	if (n > 0) {
		self[n] = 0;
		snprintf(path, sizeof(path), "%s/sojourn-drive", dirname(self));
		execv(path, argv);
	}
	execvp("sojourn-drive", argv);
	log_errno(-errno, "cannot run sojourn-drive");
	return EXIT_FAILURE;
}

static int main_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("sojourn " SOJOURN_VERSION);
	return EXIT_SUCCESS;
}

static const struct {
	const char *name;
	const char *help;
	int (*run)(int argc, char **argv);
	/* Of one that observes, instead of @run. */
	int (*parse)(int argc, char **argv, struct observe_options *ret_options);
} commands[] = {
	{"observe", "time the requests of services on this host", .parse = options_parse_observe},
	{"live", "the same on the terminal, renewed every second", .parse = options_parse_live},
	{"serve", "the same over HTTP: metrics, a page, run documents",
	 .parse = options_parse_serve},
	{"record", "the same into a file that survives a crash", .parse = options_parse_record},
	{"doctor", "say what is running out on this host, and what to do", .run = doctor_main},
	{"report", "print run documents as a report", .run = report_main},
	{"probe", "say what this kernel allows to be measured, and what it costs",
	 .run = main_probe},
	{"drive", "make load: sojourn-drive", .run = main_drive},
	{"version", "print the version", .run = main_version},
};

static int usage(FILE *file, int exit_code)
{
	fputs("Usage: sojourn COMMAND [OPTION...]\n\nShows where a request's time goes. On a "
	      "terminal, without a command: live.\n\n",
	      file);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(file, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n'sojourn help COMMAND' says more.\n\n"
	      "Examples:\n"
	      "  $ sojourn live\n"
	      "  $ sojourn doctor\n"
	      "  $ sojourn observe --port 8080 --for 10s\n",
	      file);
	return exit_code;
}

static int run_command(int argc, char **argv)
{
	struct suggestion suggestion = {0};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(argv[0], commands[i].name))
			return commands[i].parse ? start(argc, argv, commands[i].parse)
						 : commands[i].run(argc, argv);
		suggest_try(&suggestion, argv[0], strlen(argv[0]), commands[i].name);
	}
	if (*argv[0] == '-')
		log_error("%s: options follow a command, e.g. sojourn observe --port 8080; "
			  "'sojourn help' lists them",
			  argv[0]);
	else if (strspn(argv[0], "0123456789") == strlen(argv[0]))
		log_error("'%s' is no command: did you mean sojourn observe --port %s?", argv[0],
			  argv[0]);
	else if (suggestion.best)
		log_error("'%s' is no command: did you mean %s? 'sojourn help' lists them", argv[0],
			  suggestion.best);
	else
		log_error("'%s' is no command: allowed are observe, live, serve, record, doctor, "
			  "report, probe, drive, version",
			  argv[0]);
	return EXIT_USAGE;
}

/* `sojourn help observe` is `sojourn observe --help`. */
static int help(int argc, char **argv)
{
	char option[] = "--help";

	if (argc < 3)
		return usage(stdout, EXIT_SUCCESS);
	if (!strcmp(argv[2], "version"))
		return usage(stdout, EXIT_SUCCESS);
	return run_command(2, (char *[]){argv[2], option, NULL});
}

static int run(int argc, char **argv)
{
	log_open("sojourn", false);
	if (argc < 2 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return run_command(1, (char *[]){"live", NULL});
	if (argc < 2)
		return usage(stderr, EXIT_USAGE);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return usage(stdout, EXIT_SUCCESS);
	if (!strcmp(argv[1], "help"))
		return help(argc, argv);
	if (!strcmp(argv[1], "--version"))
		argv[1] += 2;
	return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	heap_running();
	streams_begin();
	return streams_end(run(argc, argv));
}
