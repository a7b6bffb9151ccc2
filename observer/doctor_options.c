// SPDX-License-Identifier: MIT
/* The command line of `sojourn doctor`; see doctor.h. */
#include <errno.h>
#include <string.h>

#include "doctor.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define LONGEST_SAMPLE_NS  (60 * NSEC_PER_SEC)
#define SHORTEST_SAMPLE_NS (100 * NSEC_PER_MSEC)

static const char *set_pid(void *target, const char *value)
{
	uint64_t pid;

	if (units_parse_u64(value, 1, 4194304, &pid) < 0)
		return "a process id from 1 to 4194304";
	((struct doctor_options *)target)->pid = (uint32_t)pid;
	return NULL;
}

static const char *set_port(void *target, const char *value)
{
	uint64_t port;

	if (units_parse_u64(value, 1, 65535, &port) < 0)
		return "a port from 1 to 65535";
	((struct doctor_options *)target)->port = (uint16_t)port;
	return NULL;
}

static const char *set_netns(void *target, const char *value)
{
	((struct doctor_options *)target)->netns = value;
	return *value ? NULL : "a name of 'ip netns list', or a path such as /proc/PID/ns/net";
}

static const char *set_all_netns(void *target, const char *value)
{
	(void)value;
	((struct doctor_options *)target)->all_netns = true;
	return NULL;
}

static const char *set_json(void *target, const char *value)
{
	(void)value;
	((struct doctor_options *)target)->json = true;
	return NULL;
}

static const char *set_watch(void *target, const char *value)
{
	(void)value;
	((struct doctor_options *)target)->watch = true;
	return NULL;
}

static const char *set_syscalls(void *target, const char *value)
{
	(void)value;
	((struct doctor_options *)target)->syscalls = true;
	return NULL;
}

static const char *set_sample(void *target, const char *value)
{
	struct doctor_options *options = target;

	if (units_parse_duration(value, &options->sample_ns) < 0 ||
	    options->sample_ns > LONGEST_SAMPLE_NS ||
	    (options->sample_ns && options->sample_ns < SHORTEST_SAMPLE_NS))
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

static const char *set_sockets(void *target, const char *value)
{
	struct doctor_options *options = target;

	options->procfs = !strcmp(value, "proc");
	return options->procfs || !strcmp(value, "netlink") ? NULL : "netlink or proc";
}

static const struct cli_option table[] = {
	{"pid", 0, "PID", "Only what this process takes, in its network namespace.", set_pid},
	{"port", 'p', "PORT", "Only what has to do with this port, here or at the peer.", set_port},
	{"netns", 'n', "NAME|PATH", "Look at this network namespace instead of our own.",
	 set_netns},
	{"all-netns", 'a', NULL,
	 "Look at every network namespace that a process is in or that "
	 "'ip netns' knows.",
	 set_all_netns},
	{"sample", 's', "DURATION",
	 "Time between the two readings that rates and predictions come from (default 1s). 0: one "
	 "reading, no predictions.",
	 set_sample},
	{"watch", 'w', NULL, "Stay, and look again every interval, until Ctrl-C or SIGTERM.",
	 set_watch},
	{"interval", 'i', "DURATION", "The interval of --watch (default 2s); implies it.",
	 set_interval},
	{"json", 'j', NULL, "Print a JSON object (docs/diagnoses.md), with --watch one per line.",
	 set_json},
	{"syscalls", 0, NULL,
	 "Count EMFILE, ENFILE and EADDRINUSE too where the kernel refuses fexit programs: by what "
	 "system calls return, which makes every system call on this host slower meanwhile. Counts "
	 "without --watch too.",
	 set_syscalls},
	{"sockets", 0, "SOURCE",
	 "Where sockets come from: netlink (default), or proc, which knows less and is slower.",
	 set_sockets},
};

static const struct cli_command command = {
	.program = "sojourn doctor",
	.usage = "[OPTION...]",
	.intro = "Says what is running out on this host, who takes it, when it ends and what to "
		 "do: ephemeral ports per destination, descriptors, accept queues, TIME_WAIT, "
		 "CLOSE_WAIT and the kernel's limits. Changes nothing.",
	.options = table,
	.option_count = ARRAY_SIZE(table),
	.outro = "Exit codes: 0 healthy; 1 warnings; 2 something is exhausted or about to be;\n"
		 "64 wrong options; 70 could not look. With --watch: of the last look.\n"
		 "Works without root, and then says what it could not see.\n",
};

static int check(const struct doctor_options *options)
{
	if ((options->pid != 0) + (options->netns != NULL) + options->all_netns > 1)
		return cli_error(&command, "--pid, --netns and --all-netns: give one of them");
	return 0;
}

int doctor_parse(int argc, char **argv, struct doctor_options *ret_options)
{
	struct doctor_options options = {.sample_ns = NSEC_PER_SEC,
					 .interval_ns = 2 * NSEC_PER_SEC};
	int next, r = cli_parse(&command, argc, argv, &options, &next);

	if (!r && next < argc)
		r = cli_error(&command, "'%s': unexpected, see --help", argv[next]);
	if (!r)
		r = check(&options);
	if (!r)
		*ret_options = options;
	return r;
}
