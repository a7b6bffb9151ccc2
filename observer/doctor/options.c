// SPDX-License-Identifier: MIT
/* The command line of `sojourn doctor`; see doctor.h. */
#include <string.h>

#include "doctor.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define LONGEST_SAMPLE_NS  (60 * NSEC_PER_SEC)
#define SHORTEST_SAMPLE_NS (100 * NSEC_PER_MSEC)

static const char *set_sample(void *sample, const char *value)
{
	uint64_t *ns = sample;

	if (units_parse_duration(value, ns) < 0 || *ns > LONGEST_SAMPLE_NS ||
	    (*ns && *ns < SHORTEST_SAMPLE_NS))
		return "0 for a single reading, or a duration from 100ms to 60s";
	return NULL;
}

static const char *set_interval(void *target, const char *value)
{
	struct doctor_options *options = target;

	if (units_parse_duration(value, &options->interval_ns) < 0 ||
	    options->interval_ns < SHORTEST_SAMPLE_NS || options->interval_ns > LONGEST_SAMPLE_NS)
		return "a duration from 100ms to 60s";
	options->watch = true;
	return NULL;
}

static const char *const socket_sources[] = {"netlink", "proc"};

#define AT(member) CLI_AT(struct doctor_options, member)

static const struct cli_option rows[] = {
	{"pid", 0, "PID", "Only what this process takes, in its network namespace.", CLI_NUMBER,
	 AT(pid), .minimum = 1, .maximum = 4194304, .allowed = "a process id from 1 to 4194304"},
	{"port", 'p', "PORT",
	 "Only what has to do with this port, here or at the peer, or with who listens on it.",
	 CLI_NUMBER, AT(port), .minimum = 1, .maximum = 65535, .allowed = "a port from 1 to 65535"},
	{"netns", 'n', "NAME|PATH", "Look at this network namespace instead of our own.", CLI_TEXT,
	 AT(netns), .minimum = 1,
	 .allowed = "a name of 'ip netns list', or a path such as /proc/PID/ns/net"},
	{"all-netns", 'a', NULL,
	 "Look at every network namespace that a process is in or that "
	 "'ip netns' knows.",
	 CLI_FLAG, AT(all_netns)},
	{"all-users", 0, NULL,
	 "Exit with 2 also for what ordinary users (from user 1000 on) exhaust alone: ports, "
	 "descriptors and queues of their own processes. Otherwise these are warnings, unless "
	 "--port, --pid or --netns names them, or --all-netns.",
	 CLI_FLAG, AT(all_users)},
	{"sample", 's', "DURATION",
	 "Time between the two readings that rates and predictions come from (default 1s). 0: one "
	 "reading, no predictions.",
	 CLI_SET, AT(sample_ns), .set = set_sample},
	{"watch", 'w', NULL, "Stay, and look again every interval, until Ctrl-C or SIGTERM.",
	 CLI_FLAG, AT(watch)},
	{"interval", 'i', "DURATION", "The interval of --watch (default 2s); implies it.", CLI_SET,
	 .set = set_interval},
	{"json", 'j', NULL, "Print a JSON object (docs/diagnoses.md), with --watch one per line.",
	 CLI_FLAG, AT(json)},
	{"syscalls", 0, NULL,
	 "Count EMFILE, ENFILE and EADDRINUSE too where the kernel refuses fexit programs: by what "
	 "system calls return, which makes every system call on this host slower meanwhile. Counts "
	 "without --watch too.",
	 CLI_FLAG, AT(syscalls)},
	{"sockets", 0, "SOURCE",
	 "Where sockets come from: netlink (default), or proc, which knows less and is slower.",
	 CLI_WORD, AT(procfs), .words = socket_sources, .maximum = 2, .allowed = "netlink or proc"},
};

static const struct cli_table table = {"Options", rows, ARRAY_SIZE(rows), 0};

static const struct cli_command command = {
	.program = "sojourn doctor",
	.usage = "[OPTION...]",
	.intro = "Says what is running out on this host, who takes it, when it ends and what to "
		 "do: ephemeral ports per destination, descriptors, accept queues, TIME_WAIT, "
		 "CLOSE_WAIT and the kernel's limits. Changes nothing.",
	.tables = {&table},
	.outro =
		"Exit codes: 0 healthy, or notices alone; 1 warnings; 2 something that others need "
		"is exhausted\n"
		"or about to be, of the host or of a process that listens; 64 wrong options; 70 "
		"could "
		"not look.\n"
		"With --watch: of the last look. Critical findings are warnings if they harm "
		"nobody "
		"else:\n"
		"on processes that do not listen, and on those of ordinary users that no option "
		"names.\n"
		"Works without root, and then says what it could not see.\n\n"
		"Examples:\n"
		"  $ sojourn doctor\n"
		"  $ sojourn doctor --port 8080\n"
		"  $ sojourn doctor --watch\n",
};

int doctor_parse(int argc, char **argv, struct doctor_options *ret_options)
{
	struct doctor_options options = {.sample_ns = NSEC_PER_SEC,
					 .interval_ns = 2 * NSEC_PER_SEC};
	int next, r = cli_parse(&command, argc, argv, &options, NULL, &next);

	if (!r && next < argc && *argv[next] && !argv[next][strspn(argv[next], "0123456789")])
		r = cli_error(&command, "'%s': unexpected: did you mean --port %s?", argv[next],
			      argv[next]);
	else if (!r && next < argc)
		r = cli_error(&command, "'%s': unexpected, see --help", argv[next]);
	if (!r && (options.pid != 0) + (options.netns != NULL) + options.all_netns > 1)
		r = cli_error(&command, "--pid, --netns and --all-netns: give one of them");
	if (!r)
		*ret_options = options;
	return r;
}
