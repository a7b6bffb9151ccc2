// SPDX-License-Identifier: MIT
/* Option tables of the observer's subcommands; see options.h. Parsing itself is lib/cli.c. */
#include "options.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "options_listen.h"
#include "options_rows.h"
#include "plan.h"
#include "sink_http.h"
#include "sojourn/cleanup.h"
#include "sojourn/cli.h"
#include "sojourn/units.h"

#define SHORTEST_INTERVAL_NS 10000000ULL /* 10 ms: below, reading would be most of the work */

#define PORTS_ALLOWED "ports from 1 to 65535, separated by commas, each a TCP port or with /udp"

/* Cuts "/tcp" or "/udp" off @word. -EINVAL if something else follows a slash. */
static int cut_protocol(char *word, uint16_t *ret_protocol)
{
	char *slash = strchr(word, '/');

	*ret_protocol = slash && !strcmp(slash, "/udp") ? IPPROTO_UDP : IPPROTO_TCP;
	if (slash && *ret_protocol == IPPROTO_TCP && strcmp(slash, "/tcp"))
		return -EINVAL;
	if (slash)
		*slash = 0;
	return 0;
}

static const char *add_port(struct observe_options *options, char *word)
{
	uint16_t protocol;
	uint64_t port;

	if (cut_protocol(word, &protocol) < 0 || units_parse_u64(word, 1, 65535, &port) < 0)
		return PORTS_ALLOWED;
	for (size_t i = 0; i < options->port_count; i++) {
		if (options->ports[i].port == port && options->ports[i].protocol == protocol)
			return NULL;
	}
	if (options->port_count == OPTIONS_PORTS)
		return "at most 64 ports";
	options->ports[options->port_count].port = (uint16_t)port;
	options->ports[options->port_count++].protocol = protocol;
	options->udp |= protocol == IPPROTO_UDP;
	return NULL;
}

static const char *set_port(void *target, const char *value)
{
	const char *error = NULL;

	for (const char *at = value; at && !error;) {
		const char *comma = strchr(at, ',');
		size_t length = comma ? (size_t)(comma - at) : strlen(at);
		char word[16];

		if (length >= sizeof(word))
			length = 0;
		memcpy(word, at, length);
		word[length] = 0;
		error = add_port(target, word);
		at = comma ? comma + 1 : NULL;
	}
	return error;
}

static const char *set_pid(void *target, const char *value)
{
	uint64_t pid;

	if (units_parse_u64(value, 1, 4194304, &pid) < 0)
		return "a process id from 1 to 4194304";
	((struct observe_options *)target)->pid = (uint32_t)pid;
	return NULL;
}

static const char *set_all(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->all_listeners = true;
	return NULL;
}

static const char *set_interval(void *target, const char *value)
{
	struct observe_options *options = target;

	if (units_parse_duration(value, &options->interval_ns) < 0 ||
	    options->interval_ns < SHORTEST_INTERVAL_NS)
		return "a duration of at least 10ms, e.g. 1s or 500ms";
	return NULL;
}

static const char *set_for(void *target, const char *value)
{
	struct observe_options *options = target;

	if (units_parse_duration(value, &options->for_ns) < 0 || !options->for_ns)
		return "a duration above zero, e.g. 10s or 2m";
	return NULL;
}

static const char *set_json(void *target, const char *value)
{
	((struct observe_options *)target)->json = value;
	return *value ? NULL : "a file, or - for standard output";
}

static const char *set_listen(void *target, const char *value)
{
	struct observe_options *options = target;

	options->listen = true;
	if (sink_http_parse_address(value, &options->address) < 0)
		return "ADDR:PORT, [ADDR6]:PORT or PORT, e.g. 127.0.0.1:9180";
	return NULL;
}

static const char *const accept_sources[] = {
	[ACCEPT_AUTO] = "auto",
	[ACCEPT_RETURNED] = "accept",
	[ACCEPT_SYSCALL] = "syscall",
	[ACCEPT_INFERRED] = "inferred",
};

const char *options_accept_source(enum accept_source source)
{
	return accept_sources[source];
}

static const char *set_accept_source(void *target, const char *value)
{
	for (enum accept_source i = 0; i < ARRAY_SIZE(accept_sources); i++) {
		if (!strcmp(value, accept_sources[i])) {
			((struct observe_options *)target)->accept_source = i;
			return NULL;
		}
	}
	return "auto, accept, syscall or inferred";
}

static const char *set_prefer(void *target, const char *value)
{
	struct observe_options *options = target;

	if (!plan_knows(value))
		return "a hook or a program as 'sojourn probe' prints it, e.g. tp_btf/tcp_probe";
	if (options->prefer_count == OPTIONS_PREFER)
		return "given at most 8 times";
	options->prefer[options->prefer_count++] = value;
	return NULL;
}

#define TRANSMIT_ALLOWED "off, all, or 1/N with N from 2 to 65536"

static const char *set_transmit(void *target, const char *value)
{
	struct observe_options *options = target;
	uint64_t n;

	if (!strcmp(value, "off"))
		n = 0;
	else if (!strcmp(value, "all"))
		n = 1;
	else if (strncmp(value, "1/", 2) || units_parse_u64(value + 2, 2, 65536, &n) < 0)
		return TRANSMIT_ALLOWED;
	options->transmit_below = n ? (1ULL << 32) / n : 0;
	return NULL;
}

static const char *set_cgroup(void *target, const char *value)
{
	((struct observe_options *)target)->cgroup = value;
	return *value == '/' ? NULL : "the path of a cgroup's directory, e.g. /sys/fs/cgroup/web";
}

static const char *set_cpu(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->cpu = true;
	return NULL;
}

static const char *set_statistics(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->run_statistics = true;
	return NULL;
}

static const char *set_floor(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->floor = true;
	return NULL;
}

static const char *set_samples(void *target, const char *value)
{
	uint64_t samples;

	if (units_parse_u64(value, 0, 1000000, &samples) < 0)
		return "a number from 0 to 1000000";
	((struct observe_options *)target)->samples = (uint32_t)samples;
	return NULL;
}

static const char *set_ring(void *target, const char *value)
{
	uint64_t kib;

	if (units_parse_u64(value, 4, 1048576, &kib) < 0)
		return "a number of KiB from 4 to 1048576";
	((struct observe_options *)target)->ring_kib = (uint32_t)kib;
	return NULL;
}

static const char *set_no_doctor(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->no_doctor = true;
	return NULL;
}

static const char *set_quiet(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->quiet = true;
	return NULL;
}

static const char *set_verbose(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->verbose = true;
	return NULL;
}

static const struct cli_option observe_table[] = {
	{"port", 'p', "PORT[/udp][,...]",
	 "Observe the services on these ports here, now or later: TCP listeners, or with /udp "
	 "bound UDP sockets.",
	 set_port},
	{"pid", 0, "PID", "Observe what this process listens on, in its own network namespace.",
	 set_pid},
	{"all-listeners", 'a', NULL, "Observe every TCP listener of this network namespace.",
	 set_all},
	{"interval", 'i', "DURATION", "Print a line per service this often.", set_interval},
	{"for", 0, "DURATION", "Stop after this time.", set_for},
	{"json", 'j', "FILE", "Write the run document to FILE at the end; - is standard output.",
	 set_json},
	{"listen", 'l', "ADDR:PORT",
	 "Serve run documents and measured phases over HTTP here; loopback if only a port is "
	 "given. Port 0 takes a free one.",
	 set_listen},
	{"accept-source", 0, "SOURCE",
	 "How the return of accept() is known. accept: exactly, where the kernel allows fexit "
	 "programs. inferred: from the first read, when the request was there before accept(). "
	 "syscall: exactly, but every system call on this host gets slower meanwhile. auto "
	 "(default): accept where it works, else inferred.",
	 set_accept_source},
	{"transmit", 0, "SHARE",
	 "Follow this share of the responses to the driver and to their acknowledgement "
	 "(transmit_queue, ack): all, 1/N, or off (default).",
	 set_transmit},
	{"cpu", 0, NULL,
	 "Divide service into running, runnable (waiting for a CPU) and blocked, by the state of "
	 "the thread that serves. Our programs then also run at every switch of this host.",
	 set_cpu},
	{"cgroup", 0, "PATH",
	 "Follow them by TX timestamps of the sockets that belong to this cgroup (version 2).",
	 set_cgroup},
	{"prefer", 0, "HOOK",
	 "Use this hook or program of 'sojourn probe' for its question, and none of the others; "
	 "may "
	 "be repeated. For comparing them.",
	 set_prefer},
	{"cost", 0, NULL, "Have the kernel time our programs too (two clock reads per run more).",
	 set_statistics},
	{"samples", 0, "N",
	 "Keep up to N single exchanges of a service in a measured phase (default 20000; 0: "
	 "none), of busier services a fair choice: the driver makes the same one.",
	 set_samples},
	{"ring", 0, "KIB",
	 "Memory for single exchanges between the kernel and us, rounded up to a power of two "
	 "(default 4096).",
	 set_ring},
	{"no-doctor", 0, NULL,
	 "Do not look for what runs out on this host, which 'sojourn doctor' explains, at the "
	 "begin "
	 "and the end of each period.",
	 set_no_doctor},
	{"quiet", 'q', NULL, "Print no summary.", set_quiet},
	{"verbose", 'v', NULL, "Print what libbpf says.", set_verbose},
	{"floor", 0, NULL, NULL, set_floor},
};

const struct cli_option *options_observe_row(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(observe_table); i++) {
		if (!strcmp(observe_table[i].name, name))
			return &observe_table[i];
	}
	return NULL;
}

static struct cli_option observe_rows[ARRAY_SIZE(observe_table) + OPTIONS_LISTEN_ROWS];

static const struct cli_command observe_command = {
	.program = "sojourn observe",
	.usage = "--port PORT | --pid PID | --all-listeners [OPTION...] [-- COMMAND...]",
	.intro =
		"Times the requests of TCP services from inside the kernel, without touching them: "
		"where each request's time goes, connections, TIME_WAIT, accept queue, "
		"descriptors. "
		"Ends with a summary on Ctrl-C, SIGTERM, after --for, or when COMMAND ends.",
	.options = observe_rows,
	.option_count = ARRAY_SIZE(observe_rows),
	.outro = "Examples:\n"
		 "  sojourn observe --port 8080 --for 10s\n"
		 "  sojourn observe --port 80,443 --interval 1s --json run.json\n"
		 "  sojourn observe --port 53/udp,53 --interval 1s\n"
		 "  sojourn observe --port 8080 -- wrk -d5 http://127.0.0.1:8080/\n\n"
		 "Exit codes: 0 complete; 1 failed; 2 wrong options; 3 this kernel or this user\n"
		 "may not observe; with COMMAND its own code, or 128 + the signal that ended it.\n"
		 "Needs root, or CAP_BPF and CAP_PERFMON (--pid in another namespace, and other\n"
		 "users' descriptors: CAP_SYS_ADMIN and CAP_SYS_PTRACE).\n",
};

static const char *set_probe_json(void *target, const char *value)
{
	(void)value;
	((struct probe_options *)target)->json = true;
	return NULL;
}

static const struct cli_option probe_table[] = {
	{"json", 'j', NULL, "Print one JSON object instead of a table.", set_probe_json},
};

static const struct cli_command probe_command = {
	.program = "sojourn probe",
	.usage = "[OPTION...]",
	.intro = "Tries on this kernel what observing needs, by loading and attaching each program "
		 "for a moment, and says which stages can be measured and why others cannot.",
	.options = probe_table,
	.option_count = ARRAY_SIZE(probe_table),
	.outro = "Exit codes: 0 every stage of the residence can be measured; 2 wrong options; 3 "
		 "some\n"
		 "cannot.\n",
};

static int check_observe(const struct observe_options *options)
{
	int targets = !!options->port_count + !!options->pid + options->all_listeners;

	if (targets == 0)
		return cli_error(&observe_command,
				 "nothing to observe: give --port, --pid or --all-listeners");
	if (targets > 1)
		return cli_error(&observe_command,
				 "give only one of --port, --pid and --all-listeners");
	if (options->cgroup && !options->transmit_below)
		return cli_error(&observe_command, "--cgroup is for --transmit, which is off");
	return options_listen_check(&observe_command, options);
}

int options_parse_observe(int argc, char **argv, struct observe_options *ret_options)
{
	int next, r;

	*ret_options = (struct observe_options){.samples = 20000, .ring_kib = 4096};
	memcpy(observe_rows, observe_table, sizeof(observe_table));
	memcpy(observe_rows + ARRAY_SIZE(observe_table), options_listen_rows,
	       sizeof(options_listen_rows));
	r = cli_parse(&observe_command, argc, argv, ret_options, &next);
	if (r < 0)
		return r;
	if (next < argc && strcmp(argv[next - 1], "--"))
		return cli_error(&observe_command, "'%s': unexpected; a command follows --",
				 argv[next]);
	ret_options->command = next < argc ? argv + next : NULL;
	return check_observe(ret_options);
}

int options_parse_probe(int argc, char **argv, struct probe_options *ret_options)
{
	int next, r;

	*ret_options = (struct probe_options){};
	r = cli_parse(&probe_command, argc, argv, ret_options, &next);
	if (r < 0)
		return r;
	if (next < argc)
		return cli_error(&probe_command, "'%s': unexpected, it takes no words", argv[next]);
	return 0;
}
