// SPDX-License-Identifier: MIT
/* Option tables of the observer's subcommands; see options.h. Parsing itself is lib/base/cli.c. */
#include "options.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "listen.h"
#include "rows.h"
#include "kernel/plan.h"
#include "kernel/tables/commands.h"
#include "kernel/tables/route.h"
#include "sinks/http/http.h"
#include "sojourn/cleanup.h"
#include "sojourn/cli.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define SHORTEST_INTERVAL_NS 10000000ULL /* 10 ms: below, reading would be most of the work */

#define SHORTEST_QUIET_NS NSEC_PER_MSEC
#define LONGEST_QUIET_NS  (3600 * NSEC_PER_SEC)

#define PORTS_ALLOWED "ports from 1 to 65535 like 80, 8000-8010 or 53/udp, separated by commas"
#define PORTS_MANY    "at most 64 ports; --all-listeners takes those that have a listener"

/* Cut "/tcp" or "/udp" off @word. -EINVAL if something else follows a slash. */
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

/* Parse "8000" or "8000-8010". -EINVAL or -ERANGE. */
static int parse_range(char *word, uint64_t *ret_first, uint64_t *ret_last)
{
	char *dash = strchr(word, '-');
	int r;

	if (dash)
		*dash++ = 0;
	r = units_parse_u64(word, 1, UINT16_MAX, ret_first);
	if (r < 0)
		return r;
	*ret_last = *ret_first;
	return dash ? units_parse_u64(dash, *ret_first, UINT16_MAX, ret_last) : 0;
}

static bool has_port(const struct observe_options *options, uint64_t port, uint16_t protocol)
{
	for (size_t i = 0; i < options->port_count; i++) {
		if (options->ports[i].port == port && options->ports[i].protocol == protocol)
			return true;
	}
	return false;
}

static const char *add_ports(struct observe_options *options, char *word)
{
	uint64_t first, last;
	uint16_t protocol;

	if (cut_protocol(word, &protocol) < 0 || parse_range(word, &first, &last) < 0)
		return PORTS_ALLOWED;
	for (uint64_t port = first; port <= last; port++) {
		if (has_port(options, port, protocol))
			continue;
		if (options->port_count == OPTIONS_PORTS)
			return PORTS_MANY;
		options->ports[options->port_count++] = (struct observe_port){
			.port = (uint16_t)port,
			.protocol = protocol,
			.first = (uint16_t)first,
			.last = (uint16_t)last,
		};
	}
	options->udp |= protocol == IPPROTO_UDP;
	return NULL;
}

static const char *set_port(void *target, const char *value)
{
	const char *error = NULL;

	for (const char *at = value; at && !error;) {
		const char *comma = strchr(at, ',');
		size_t length = comma ? (size_t)(comma - at) : strlen(at);
		char word[sizeof("65535-65535/udp")];

		if (length >= sizeof(word))
			length = 0;
		memcpy(word, at, length);
		word[length] = 0;
		error = add_ports(target, word);
		at = comma ? comma + 1 : NULL;
	}
	return error;
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

static const char *set_transmit(void *below, const char *value)
{
	uint64_t n;

	if (!strcmp(value, "off"))
		n = 0;
	else if (!strcmp(value, "all"))
		n = 1;
	else if (strncmp(value, "1/", 2) || units_parse_u64(value + 2, 2, 65536, &n) < 0)
		return "off, all, or 1/N with N from 2 to 65536";
	*(uint64_t *)below = n ? (1ULL << 32) / n : 0;
	return NULL;
}

#define ROUTES_MANY "at most 32 routes: each takes memory for every service and CPU"

_Static_assert(ROUTES_MOST == 32, "as the message says");

static const char *set_route(void *target, const char *value)
{
	struct observe_options *options = target;
	uint32_t count = options->route_rows ? options->route_rows - 1 : 0;
	struct route_key key, other;
	const char *error = route_parse(value, &key);

	if (error)
		return error;
	if (count == ROUTES_MOST)
		return ROUTES_MANY;
	for (uint32_t i = 0; i < count; i++) {
		if (!route_parse(options->routes[i], &other) && key.whole == other.whole &&
		    !strcmp(key.method, other.method) && !strcmp(key.path, other.path))
			return "each given once";
	}
	options->routes[count] = value;
	options->route_rows = count + 2;
	options->http = true;
	return NULL;
}

#define PROTOCOLS_MANY "given at most 8 times"

_Static_assert(COMMAND_PORTS == 8, "as the message says");

static const char *set_protocol(void *target, const char *value)
{
	struct observe_options *options = target;
	struct command_port port;
	const char *error = commands_parse(value, &port);

	if (error)
		return error;
	if (options->protocol_count == COMMAND_PORTS)
		return PROTOCOLS_MANY;
	for (uint32_t i = 0; i < options->protocol_count; i++)
		if (options->protocols[i].port == port.port)
			return "one protocol per port";
	options->protocols[options->protocol_count++] = port;
	return NULL;
}

static const char *set_cgroup(void *cgroup, const char *value)
{
	*(const char **)cgroup = value;
	return *value == '/' ? NULL : "the path of a cgroup's directory, e.g. /sys/fs/cgroup/web";
}

static const char *set_pod(void *pod, const char *value)
{
	const char *slash = strchr(value, '/');

	*(const char **)pod = value;
	return slash && slash != value && slash[1] && !strchr(slash + 1, '/')
		       ? NULL
		       : "NAMESPACE/NAME, e.g. shop/web-7d4b9-x2x4z";
}

#define AT(member) CLI_AT(struct observe_options, member)

static const struct cli_option observe_rows[] = {
	{"port", 'p', "PORT[-PORT][/udp][,...]",
	 "Observe the services on these ports here, now or later: TCP listeners, or with /udp "
	 "bound UDP sockets. At most 64 ports; 8000-8010 are eleven.",
	 CLI_SET, .set = set_port},
	{"pid", 0, "PID", "Observe what this process listens on, in its own network namespace.",
	 CLI_NUMBER, AT(pid), .minimum = 1, .maximum = 4194304,
	 .allowed = "a process id from 1 to 4194304"},
	{"all-listeners", 'a', NULL, "Observe every TCP listener of this network namespace.",
	 CLI_FLAG, AT(all_listeners)},
	{"netns", 0, "NAME|PATH",
	 "Look in this network namespace instead of our own: for --port, or else every listener.",
	 CLI_TEXT, AT(netns), .minimum = 1,
	 .allowed = "a name of 'ip netns list', or a path such as /proc/PID/ns/net"},
	{"all-netns", 0, NULL,
	 "Look in every network namespace of this host, also those that come later: for TCP "
	 "--port, or else every listener.",
	 CLI_FLAG, AT(all_netns)},
	{"cgroup", 0, "PATH",
	 "Observe what processes of this cgroup (version 2) listen on, in their network "
	 "namespace, or with --port these ports of it. With --transmit follow responses by TX "
	 "timestamps of the sockets that belong to it.",
	 CLI_SET, AT(cgroup), .set = set_cgroup},
	{"container", 0, "ID|NAME", "Likewise, for the processes of a container.", CLI_TEXT,
	 AT(container), .minimum = 1,
	 .allowed = "the number of a container, its first digits, or its name"},
	{"pod", 0, "NAMESPACE/NAME", "Likewise, for the processes of a pod.", CLI_SET, AT(pod),
	 .set = set_pod},
	{"interval", 'i', "DURATION", "Print a line per service this often.", CLI_DURATION,
	 AT(interval_ns), .minimum = SHORTEST_INTERVAL_NS,
	 .allowed = "a duration of at least 10ms, e.g. 1s or 500ms"},
	{"for", 'd', "DURATION", "Stop after this time.", CLI_DURATION, AT(for_ns), .minimum = 1,
	 .allowed = "a duration above zero, e.g. 10s or 2m", .elsewhere = "duration"},
	{"json", 'j', "FILE", "Write the run document to FILE at the end; - is standard output.",
	 CLI_TEXT, AT(json), .minimum = 1, .allowed = "a file, or - for standard output"},
	{"listen", 'l', "ADDR:PORT",
	 "Serve run documents and measured phases over HTTP here; loopback if only a port is "
	 "given. Port 0 takes a free one.",
	 CLI_SET, .set = set_listen},
	{"accept-source", 0, "SOURCE",
	 "How the return of accept() is known. accept: exactly, where the kernel allows fexit "
	 "programs. inferred: from the first read, when the request was there before accept(). "
	 "syscall: exactly, but every system call on this host gets slower meanwhile. auto "
	 "(default): accept where it works, else inferred.",
	 CLI_WORD, AT(accept_source), .words = accept_sources,
	 .maximum = ARRAY_SIZE(accept_sources), .allowed = "auto, accept, syscall or inferred"},
	{"quiet-time", 0, "DURATION",
	 "A pause this long ends a response: what the server writes later is trailing, no part of "
	 "it. A message without a response for as long is oneway once the client sends the next "
	 "(default 200ms).",
	 CLI_DURATION, AT(quiet_ns), .minimum = SHORTEST_QUIET_NS, .maximum = LONGEST_QUIET_NS,
	 .allowed = "a duration from 1ms to 1h, e.g. 200ms or 5s"},
	{"transmit", 0, "SHARE",
	 "Follow this share of the responses to the driver and to their acknowledgement "
	 "(transmit_queue, ack): all, 1/N, or off (default).",
	 CLI_SET, AT(transmit_below), .set = set_transmit},
	{"cpu", 0, NULL,
	 "Divide service into running, runnable (waiting for a CPU) and blocked, by the state of "
	 "the thread that serves. Our programs then also run at every switch of this host.",
	 CLI_FLAG, AT(cpu)},
	{"calls", 0, NULL,
	 "Time the calls of the services' processes to other places on the connections that they "
	 "open: how long each upstream takes to answer, also where nobody can observe it.",
	 CLI_FLAG, AT(calls)},
	{"http", 0, NULL,
	 "Look into HTTP in clear: responses of HTTP and gRPC are counted by status, pipelined "
	 "requests are found, and pushes are. Streams of HTTP/2 and gRPC (h2c) are exchanges "
	 "without it, too, from the moment when the first connection speaks HTTP/2; with it from "
	 "the start.",
	 CLI_FLAG, AT(http)},
	{"no-http2", 0, NULL,
	 "Do not follow streams of HTTP/2, whose programs take half of the time of a start: its "
	 "connections are counted, and their requests are not known.",
	 CLI_FLAG, AT(no_http2)},
	{"route", 0, "[METHOD ]PATH[*]",
	 "Count the requests in clear with this path, or with * at its end those that begin like "
	 "it, and keep their stages apart; may be repeated, up to 32 times. The longest one that "
	 "matches counts, others are 'other'. Paths are compared as sent, without the query; those "
	 "of gRPC are /package.Service/Method. Includes --http.",
	 CLI_SET, .set = set_route},
	{"propose-routes", 0, NULL,
	 "Propose options --route in the report, for the most frequent paths that no --route "
	 "matches, and methods of gRPC: in clear, with --tls also in TLS. For that up to 256 paths "
	 "of a service are kept in memory; only prefixes that several of them share are printed. "
	 "Includes --http.",
	 CLI_FLAG, AT(propose_routes)},
	{"protocol", 0, "NAME[:PORT]",
	 "Look into the services at this port, which speak this protocol in clear: each command is "
	 "an exchange, also of pipelines, and counted with its stages by name, like --route. "
	 "redis or valkey (RESP, port 6379), postgresql (5432: simple and extended queries, COPY, "
	 "logins); may be repeated, up to 8 times. Connections that "
	 "speak anything else are observed as without, and the report says why.",
	 CLI_SET, .set = set_protocol},
	{"tls", 0, NULL,
	 "Look into TLS of servers that use OpenSSL, GnuTLS or Go's TLS: statuses and routes are "
	 "known there "
	 "too, and streams of HTTP/2 and gRPC are exchanges. Probes stop all users of the library "
	 "at each call that reads or writes: "
	 "tens of microseconds a request (docs/cost.md). No text is kept. Includes --http.",
	 CLI_FLAG, AT(tls)},
	{"prefer", 0, "HOOK",
	 "Use this hook or program of 'sojourn probe' for its question, and none of the others; "
	 "may "
	 "be repeated. For comparing them.",
	 CLI_SET, .set = set_prefer},
	{"cost", 0, NULL, "Have the kernel time our programs too (two clock reads per run more).",
	 CLI_FLAG, AT(run_statistics)},
	{"samples", 0, "N",
	 "Keep up to N single exchanges of a service in a measured phase (default 20000; 0: "
	 "none), of busier services a fair choice: the driver makes the same one.",
	 CLI_NUMBER, AT(samples), .maximum = 1000000, .allowed = "a number from 0 to 1000000"},
	{"ring", 0, "KIB",
	 "Memory for single exchanges between the kernel and us, rounded up to a power of two "
	 "(default 4096).",
	 CLI_NUMBER, AT(ring_kib), .minimum = 4, .maximum = 1048576,
	 .allowed = "a number of KiB from 4 to 1048576"},
	{"memory", 0, "BYTES",
	 "Take no more than this, the kernel's maps included. Services beyond it are not observed; "
	 "the report says how many (default half of the cgroup's limit, else a sixteenth of the "
	 "host's memory, from 256M to 2G).",
	 CLI_COUNT, AT(memory), .minimum = 1000000,
	 .allowed = "bytes, at least 1M, e.g. 256M or 2G"},
	{"no-doctor", 0, NULL,
	 "Do not look for what runs out on this host, which 'sojourn doctor' explains, at the "
	 "begin "
	 "and the end of each period.",
	 CLI_FLAG, AT(no_doctor)},
	{"quiet", 'q', NULL, "Print no summary.", CLI_FLAG, AT(quiet)},
	{"verbose", 'v', NULL,
	 "Print the whole summary: every percentile, resource and count, not only what comes "
	 "first.",
	 CLI_FLAG, AT(verbose)},
	{"debug", 0, NULL, "Print what libbpf says.", CLI_FLAG, AT(debug)},
	{"floor", 0, NULL, NULL, CLI_FLAG, AT(floor)},
	{"cpus", 0, "N", NULL, CLI_NUMBER, AT(cpus), .minimum = 1, .maximum = 8192,
	 .allowed = "a number from 1 to 8192"},
};

const struct cli_option *options_observe_row(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(observe_rows); i++) {
		if (!strcmp(observe_rows[i].name, name))
			return &observe_rows[i];
	}
	return NULL;
}

int options_refuse_word(const struct cli_command *command, const char *word, const char *else_)
{
	size_t digits = strspn(word, "0123456789");

	if (digits && (!word[digits] || strchr("-,/", word[digits])))
		return cli_error(command, "'%s': unexpected: did you mean --port %s?", word, word);
	return cli_error(command, "'%s': unexpected; %s", word, else_);
}

static const struct cli_table observe_table = {"Options", observe_rows, ARRAY_SIZE(observe_rows),
					       0};

static const struct cli_command observe_command = {
	.program = "sojourn observe",
	.usage = "--port PORT | --pid PID | --container ID | --pod NAMESPACE/NAME | --cgroup PATH "
		 "| --all-listeners [OPTION...] [-- COMMAND...]",
	.intro =
		"Times the requests of TCP services from inside the kernel, without touching them: "
		"where each request's time goes, connections, TIME_WAIT, accept queue, "
		"descriptors. "
		"Ends with a summary on Ctrl-C, SIGTERM, after --for, or when COMMAND ends.",
	.tables = {&observe_table, &options_listen},
	.outro = "Exit codes: 0 complete; 1 failed; 2 wrong options; 3 this kernel or this user\n"
		 "may not observe; with COMMAND its own code, or 128 + the signal that ended it.\n"
		 "Needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (--pid in another\n"
		 "namespace: CAP_SYS_ADMIN; other users' descriptors: CAP_SYS_PTRACE and\n"
		 "CAP_DAC_READ_SEARCH).\n\n"
		 "Examples:\n"
		 "  $ sojourn observe --port 8080 --for 10s\n"
		 "  $ sojourn observe --port 80,443 --interval 1s --json run.json\n"
		 "  $ sojourn observe --port 53/udp,53 --interval 1s\n"
		 "  $ sojourn observe --port 8080 -- wrk -d5 http://127.0.0.1:8080/\n",
};

static const struct cli_option probe_rows[] = {
	{"json", 'j', NULL, "Print one JSON object instead of a table.", CLI_FLAG,
	 CLI_AT(struct probe_options, json)},
	{"cost", 0, NULL,
	 "Measure on the spot what observing costs on this host, in five seconds, or longer where "
	 "it is very busy: time exchanges of our own over loopback with nothing attached, with "
	 "programs that do nothing, and with ours. Nothing else is observed.",
	 CLI_FLAG, CLI_AT(struct probe_options, cost)},
};

static const struct cli_table probe_table = {"Options", probe_rows, ARRAY_SIZE(probe_rows), 0};

static const struct cli_command probe_command = {
	.program = "sojourn probe",
	.usage = "[OPTION...]",
	.intro = "Loads and attaches each program of the observer on this kernel for a moment. "
		 "Says which "
		 "stages can be measured, and why others cannot.",
	.tables = {&probe_table},
	.outro = "Exit codes: 0 every stage of the residence can be measured; 1 --cost failed; 2 "
		 "wrong\noptions; 3 some cannot.\n\n"
		 "Examples:\n"
		 "  $ sojourn probe\n"
		 "  $ sojourn probe --cost\n",
};

/* Set what others imply: namespaces without a port mean every listener in them, --tls means --http. */
static void complete(struct observe_options *options)
{
	bool whose = options->pid || options_names_cgroup(options);

	if (!options->port_count && !whose && (options->netns || options->all_netns))
		options->all_listeners = true;
	options->http |= options->tls || options->propose_routes;
	/* The kernel side finds paths where it finds routes, of which that of others is one. */
	if (options->propose_routes && !options->route_rows)
		options->route_rows = 1;
}

int options_check_where(const struct cli_command *command, const struct observe_options *options)
{
	bool whose = options_names_cgroup(options);

	if (!!options->port_count + !!options->pid + options->all_listeners > 1)
		return cli_error(command, "give only one of --port, --pid and --all-listeners");
	if (!!options->pid + !!options->netns + options->all_netns + !!options->container +
		    !!options->pod + (whose && options->cgroup) >
	    1)
		return cli_error(command, "give only one of --pid, --netns, --all-netns, --cgroup, "
					  "--container and --pod");
	if (options->all_netns && options->udp)
		return cli_error(command, "--all-netns: not with UDP ports: give --netns");
	if (options->http && options->no_http2)
		return cli_error(command, "--no-http2: not with --http, or what includes it");
	for (uint32_t i = 0; options->port_count && i < options->protocol_count; i++)
		if (!has_port(options, options->protocols[i].port, IPPROTO_TCP))
			return cli_error(command,
					 "--protocol %s:%u: --port does not name this port",
					 commands_protocol(options->protocols[i].protocol),
					 options->protocols[i].port);
	return 0;
}

static int check_observe(const struct observe_options *options)
{
	bool where = options->netns || options->all_netns || options_names_cgroup(options);

	if (!options->port_count && !options->pid && !options->all_listeners && !where)
		return cli_error(&observe_command,
				 "nothing to observe: give --port, --pid, --container, --pod, "
				 "--cgroup, --netns, --all-netns or --all-listeners");
	if (options_check_where(&observe_command, options) < 0)
		return -EINVAL;
	return options_listen_check(&observe_command, options);
}

int options_parse_observe(int argc, char **argv, struct observe_options *ret_options)
{
	int next, r;

	*ret_options = (struct observe_options){
		.samples = 20000, .ring_kib = OPTIONS_RING_KIB, .quiet_ns = OPTIONS_QUIET_NS};
	r = cli_parse(&observe_command, argc, argv, ret_options, NULL, &next);
	if (r < 0)
		return r;
	if (next < argc && strcmp(argv[next - 1], "--"))
		return options_refuse_word(&observe_command, argv[next], "a command follows --");
	ret_options->command = next < argc ? argv + next : NULL;
	complete(ret_options);
	return check_observe(ret_options);
}

int options_parse_probe(int argc, char **argv, struct probe_options *ret_options)
{
	int next, r;

	*ret_options = (struct probe_options){};
	r = cli_parse(&probe_command, argc, argv, ret_options, NULL, &next);
	if (r < 0)
		return r;
	if (next < argc)
		return cli_error(&probe_command, "'%s': unexpected, it takes no words", argv[next]);
	return 0;
}
