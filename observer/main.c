// SPDX-License-Identifier: MIT
/* sojourn: the subcommands and nothing else. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "observe.h"
#include "options.h"
#include "plan.h"
#include "probe.h"
#include "replay.h"
#include "report.h"
#include "sojourn/cleanup.h"
#include "sojourn/cli.h"
#include "sojourn/log.h"

/* What cli_parse() returned, as an exit code. */
static int parse_exit(int r)
{
	return r == -ECANCELED ? EXIT_SUCCESS : EXIT_USAGE;
}

static int main_observe(int argc, char **argv)
{
	struct observe_options options;
	int r = options_parse_observe(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	log_open("sojourn observe", options.verbose);
	return observe(&options);
}

static int main_live(int argc, char **argv)
{
	struct observe_options options;
	int r = options_parse_live(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	log_open("sojourn live", false);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		log_error("standard input and output must be a terminal: 'sojourn observe "
			  "--interval 1s' prints lines");
		return EXIT_FAILURE;
	}
	return options.replay ? replay(options.replay) : observe(&options);
}

static int main_record(int argc, char **argv)
{
	struct observe_options options;
	int r = options_parse_record(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	log_open("sojourn record", options.verbose);
	return observe(&options);
}

static int main_serve(int argc, char **argv)
{
	struct observe_options options;
	int r = options_parse_serve(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	log_open("sojourn serve", false);
	return observe(&options);
}

static int main_probe(int argc, char **argv)
{
	struct plan_wish wish = {.everything = true, .cgroup_fd = -1};
	struct probe_options options;
	struct plan plan;
	int r = options_parse_probe(argc, argv, &options);

	if (r < 0)
		return parse_exit(r);
	r = plan_build(&wish, &plan);
	if (!r && options.json)
		r = probe_print_json(&plan, stdout);
	else if (!r)
		probe_print_text(&plan, stdout);
	if (r < 0)
		return EXIT_FAILURE;
	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++) {
		if (plan_missing(&plan, stage))
			return EXIT_UNSUPPORTED;
	}
	return EXIT_SUCCESS;
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
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"observe", main_observe, "time the requests of services on this host"},
	{"live", main_live, "the same on the terminal, renewed every second"},
	{"serve", main_serve, "the same over HTTP: metrics, a page, run documents"},
	{"record", main_record, "the same into a file that survives a crash"},
	{"doctor", doctor_main, "say what is running out on this host, and what to do"},
	{"report", report_main, "print run documents as a report"},
	{"probe", main_probe, "say what this kernel allows to be measured"},
	{"drive", main_drive, "make load: sojourn-drive"},
	{"version", main_version, "print the version"},
};

static int usage(FILE *file, int exit_code)
{
	fputs("Usage: sojourn COMMAND [OPTION...]\n\nShows where a request's time goes. On a "
	      "terminal, without a command: live.\n\n",
	      file);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(file, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n'sojourn COMMAND --help' says more.\n", file);
	return exit_code;
}

int main(int argc, char **argv)
{
	log_open("sojourn", false);
	if (argc < 2 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return main_live(1, (char *[]){"live", NULL});
	if (argc < 2)
		return usage(stderr, EXIT_USAGE);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return usage(stdout, EXIT_SUCCESS);
	if (!strcmp(argv[1], "--version"))
		argv[1] += 2;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	log_error("'%s' is no command: allowed are observe, live, serve, record, doctor, report, "
		  "probe, drive, version",
		  argv[1]);
	return EXIT_USAGE;
}
