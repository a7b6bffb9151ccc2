// SPDX-License-Identifier: MIT
/* The command line. Neighbours: the other files here (rows), sojourn/cli.h (parsing). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engines.h"
#include "rows.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define DURATION_NS (10 * NSEC_PER_SEC)
#define SLOTS_MAX   1000000U

static const struct cli_command command_drive = {
	.tables = {&option_load, &option_request, &option_connection, &option_h2, &option_tls,
		   &option_stream, &option_datagram, &option_observer, &option_output,
		   &option_sweep},
	.getopt = true,
};
/* The command `run`, for --help. */
static const struct cli_command command_run = {
	.tables = {&option_load, &option_request, &option_connection, &option_h2, &option_tls,
		   &option_stream, &option_datagram, &option_observer, &option_output},
	.getopt = true,
};

#define URL_FORMS                                                                            \
	"\n"                                                                                 \
	"URL is one of these, where HOST is a name, an IPv4 address or an [IPv6] address.\n" \
	"HOST:PORT alone is http. A name is resolved once; the first of its addresses\n"     \
	"that accepts a connection is taken."

#define URLS_IN_TURN                               \
	" Several URLs of one kind are asked in\n" \
	"turn: each of the connections is one to every server then."

static const char help_drive[] =
	"Usage: sojourn-drive [OPTION]... URL...\n"
	"       sojourn-drive sweep [OPTION]... URL...\n"
	"       sojourn-drive run FILE.yaml [OPTION]... [URL]\n"
	"       sojourn-drive fleet --hosts HOST[,HOST]... -- URL [OPTION]...\n"
	"       sojourn-drive help [sweep|run|fleet|agent]\n"
	"Load a server, closed loop or at a rate, and report what its clients see;\n"
	"or sweep over loads to find what it can do.\n"
	"\n"
	"run carries out the steps of a scenario (docs/scenarios.md). Options replace\n"
	"the file's settings, URL its target.\n" URL_FORMS URLS_IN_TURN "\n";

static const char help_sweep[] =
	"Usage: sojourn-drive sweep [OPTION]... URL...\n"
	"Load a server with more and more connections, or at higher and higher rates, and\n"
	"find what it can do: the plateau, from which load on it is reached, and the\n"
	"latency at 75 % of it.\n" URL_FORMS URLS_IN_TURN "\n";

static const char help_run[] =
	"Usage: sojourn-drive run FILE.yaml [OPTION]... [URL]\n"
	"Carry out the steps of a scenario (docs/scenarios.md), in a cycle or as a mix,\n"
	"and report what each took. Options replace the file's settings, URL its target."
	"\n" URL_FORMS "\n";

/* Help above the URL forms. */
static const char *const helps[] = {
	[COMMAND_DRIVE] = help_drive,
	[COMMAND_SWEEP] = help_sweep,
	[COMMAND_RUN] = help_run,
};

/* Help below everything else. */
static const char *const examples[] = {
	[COMMAND_DRIVE] =
		"  $ sojourn-drive 127.0.0.1:8080 -c 64 -d 10s\n"
		"  $ sojourn-drive http://127.0.0.1:8080/ --rate 5000 --assert 'p99<5ms'\n"
		"  $ sojourn-drive 127.0.0.1:8080 --observer http://127.0.0.1:9180\n",
	[COMMAND_SWEEP] = "  $ sojourn-drive sweep http://127.0.0.1:8080/\n"
			  "  $ sojourn-drive sweep --ladder rate:1k..64k -c 200 127.0.0.1:8080\n",
	[COMMAND_RUN] = "  $ sojourn-drive run sessions.yaml\n"
			"  $ sojourn-drive run sessions.yaml --check\n",
};

static const char help_tail[] =
	"\n"
	"TIME is a number with ns, us, ms, s, m or h; seconds if bare.\n"
	"Ctrl-C ends the run early, with the complete report; a second one quits at once.\n"
	"\n"
	"Exit status:\n"
	"  0  every request was answered with a status below 400, or as --expect-...\n"
	"     or --assert allow; and every --assert holds\n"
	"  1  some requests failed, an --assert does not hold, connections found no\n"
	"     source port or descriptor, the observer's part is missing, the run could\n"
	"     not start, was interrupted before measuring, or its result not be written\n"
	"  2  bad usage\n";

void options_help(enum options_command command, FILE *file)
{
	char forms[ENGINE_FORMS_SIZE];
	char *rest = engine_forms(engines, forms, sizeof(forms)), *form;

	fputs(helps[command], file);
	while ((form = strsep(&rest, ",")))
		fprintf(file, "  %s\n", form + strspn(form, " "));
	cli_help_tables(command == COMMAND_RUN ? &command_run : &command_drive, file);
	fputs(help_tail, file);
	fprintf(file, "\nExamples:\n%s", examples[command]);
}

bool options_were_given(const struct options *options, const char *name, size_t length)
{
	return cli_was_given(&command_drive, &options->words, name, length);
}

const struct cli_option *options_row(const char *name, size_t length)
{
	return cli_row(&command_drive, name, length);
}

int options_parse_words(int argc, char **argv, struct options *options, char **ret_error)
{
	free(options->words.list);
	free(TAKE_PTR(options->words.uses));
	options->words.use_count = 0;
	options->words.keeps_uses = true;
	options->words.list = calloc((size_t)argc, sizeof(char *));
	if (!options->words.list)
		return -ENOMEM;
	return cli_walk(&command_drive, argc, argv, options, &options->words, ret_error);
}

static int settle_policy(struct options *options, char **ret_error)
{
	struct connection_policy *policy = &options->link.policy;

	if (options->link.new_connections && policy->requests > 1)
		return refuse(ret_error, "--requests-per-connection: --new-connections makes it 1; "
					 "give one of the two");
	if (options->link.new_connections)
		policy->requests = 1;
	options->link.new_connections = policy->requests == 1;
	return 0;
}

static bool is_timed(const struct shape *shape)
{
	return shape->count && shape->segments[shape->count - 1].duration_ns;
}

/* A single segment without a length and of one value is no shape. */
static bool is_level(const struct shape *shape)
{
	return shape->count == 1 && !is_timed(shape) &&
	       shape->segments[0].from == shape->segments[0].to;
}

/* The sum of the segments is the default duration. */
static int settle_lengths(struct options *options, struct shape *shape, char **ret_error)
{
	uint64_t total_ns = 0;

	for (size_t i = 0; i < shape->count && is_timed(shape); i++)
		total_ns += shape->segments[i].duration_ns;
	if (!options->load.duration_ns && !options->load.requests)
		options->load.duration_ns = total_ns ? total_ns : DURATION_NS;
	return shape_settle(shape, options->load.duration_ns, ret_error);
}

/* Checks and forecasts use the mean rate. */
static int settle_rate(struct options *options, char **ret_error)
{
	struct schedule_spec *spec = &options->load.schedule;
	struct shape *shape = &spec->shape;
	const struct shape_segment *last;
	double duration_ns;
	int err;

	if (!shape->count)
		return 0;
	if (is_level(shape)) {
		spec->rate = (uint64_t)shape->segments[0].from;
		shape->count = 0;
		return 0;
	}
	err = settle_lengths(options, shape, ret_error);
	if (err)
		return err;
	last = &shape->segments[shape->count - 1];
	duration_ns = options->load.duration_ns ? (double)options->load.duration_ns
						: last->begin_ns + (double)last->duration_ns;
	spec->rate =
		(uint64_t)(shape_count(shape, duration_ns) / duration_ns * (double)NSEC_PER_SEC +
			   0.5);
	spec->rate = spec->rate ? spec->rate : 1;
	return 0;
}

static int settle_ramp(struct options *options, char **ret_error)
{
	if (!options->load.ramp.count)
		return 0;
	if (options->command == COMMAND_SWEEP || options->load.schedule.rate)
		return refuse(
			ret_error, "--connections: '%s' changes with time; give one number: %s",
			options->load.connections_text,
			options->command == COMMAND_SWEEP ? "a sweep goes through those of --ladder"
							  : "--rate is for all of them");
	if (is_level(&options->load.ramp)) {
		options->load.ramp.count = 0;
		return 0;
	}
	if (options->load.requests)
		return refuse(ret_error,
			      "--requests: %" PRIu64 " of them may end before --connections: '%s' "
			      "does; give --duration, or lengths, in place of the number",
			      options->load.requests, options->load.connections_text);
	return settle_lengths(options, &options->load.ramp, ret_error);
}

static int settle_schedule(struct options *options, char **ret_error)
{
	struct schedule_spec *spec = &options->load.schedule;

	if (options->command == COMMAND_SWEEP)
		return 0; /* each step has its own */
	if (spec->arrival != SCHEDULE_CLOSED && !spec->rate)
		return refuse(ret_error, "--arrival: %s needs a rate; add --rate=N",
			      schedule_arrival_names[spec->arrival]);
	if (spec->rate && spec->think_ns)
		return refuse(ret_error, "--think: a rate and a think time exclude each other; "
					 "give --rate or --think");
	if (options->think_distribution_given && !spec->think_ns)
		return refuse(ret_error, "--think-distribution: %s needs a time; add --think=TIME",
			      schedule_think_names[spec->think]);
	if (spec->rate && spec->arrival == SCHEDULE_CLOSED)
		spec->arrival = SCHEDULE_CONSTANT;
	return 0;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* Return "folder/name" with the folder's real path; NULL: not known. */
static char *real_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	autofree char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	autofree char *real = folder ? realpath(folder, NULL) : NULL;

	return real ? text_format("%s/%s", real, name) : NULL;
}

/* Return whether writing to one path replaces the other's contents; /dev/null has none. */
static bool is_same_file(const char *a, const char *b)
{
	autofree char *real_a = NULL, *real_b = NULL;
	bool there_a, there_b;
	struct stat at, bt;

	there_a = !stat(a, &at);
	there_b = !stat(b, &bt);
	if (there_a && there_b)
		return S_ISREG(at.st_mode) && at.st_dev == bt.st_dev && at.st_ino == bt.st_ino;
	if (there_a || there_b)
		return false;
	real_a = real_name(a);
	real_b = real_name(b);
	return real_a && real_b && !strcmp(real_a, real_b);
}

static int check_apart(const struct options *options, char **ret_error)
{
	const struct {
		const char *option;
		const char *path;
	} outputs[] = {
		{"--json", options->json_path},
		{"--csv", options->csv_path},
		{"--hlog", options->hlog_path},
		{"--trace", options->trace_path},
	};

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		for (size_t j = 0; j < i; j++)
			if (outputs[i].path && outputs[j].path &&
			    is_same_file(outputs[i].path, outputs[j].path))
				return refuse(ret_error,
					      "%s: '%s' is the file of %s, too, which would be "
					      "lost; give two files",
					      outputs[i].option, outputs[i].path,
					      outputs[j].option);
	return 0;
}

static int settle_outputs(const struct options *options, char **ret_error)
{
	if (is_stdout(options->json_path) + is_stdout(options->csv_path) +
		    is_stdout(options->hlog_path) >
	    1)
		return refuse(ret_error, "only one of --json, --csv and --hlog can be -");
	return check_apart(options, ret_error);
}

bool options_own_stdout(const struct options *options)
{
	return is_stdout(options->json_path) || is_stdout(options->csv_path) ||
	       is_stdout(options->hlog_path);
}

static int settle_datagrams(struct options *options, char **ret_error)
{
	for (size_t i = 0; i < option_datagram.count; i++) {
		const char *name = option_datagram.rows[i].name;

		if (options_were_given(options, name, strlen(name)))
			options->link.datagrams.given = true;
	}
	if (!options->link.datagrams.retransmit_ns ||
	    options->link.datagrams.retransmit_ns < options->link.timeout_ns)
		return 0;
	return refuse(ret_error,
		      "--retransmit: nothing is sent again before the request is given up, after "
		      "%s (--timeout); make it shorter than that",
		      as_setting((double)options->link.timeout_ns));
}

static const char *grpc_option(const struct request *request)
{
	if (request->grpc_expectation.given)
		return "--expect-grpc-status";
	if (request->grpc_expectation.replies_given)
		return "--grpc-replies";
	if (request->grpc_messages.count)
		return "--grpc-messages";
	return request->grpc_messages.interval_ns ? "--grpc-interval" : NULL;
}

static int settle_grpc(const struct request *request, const struct link_settings *link,
		       char **ret_error)
{
	const struct grpc_messages *messages = &request->grpc_messages;
	const char *option = request->grpc ? NULL : grpc_option(request);

	if (option)
		return refuse(ret_error, "%s: there is none without gRPC; add --grpc", option);
	if (messages->interval_ns && messages->count < 2)
		return refuse(ret_error, "--grpc-interval: a call has one message; add "
					 "--grpc-messages");
	if (messages->interval_ns &&
	    messages->interval_ns >= link->timeout_ns / (messages->count - 1))
		return refuse(
			ret_error,
			"--grpc-interval: the last message would be sent after %s, but a call is "
			"given up after %s; make --timeout longer",
			as_setting((double)messages->interval_ns * (messages->count - 1)),
			as_setting((double)link->timeout_ns));
	return 0;
}

static int settle_h2(const struct options *options, char **ret_error)
{
	if ((uint64_t)options->load.connections * options->link.streams > SLOTS_MAX)
		return refuse(ret_error,
			      "--streams: %u on each of %u connections are more than %u at "
			      "a time",
			      options->link.streams, options->load.connections, SLOTS_MAX);
	return settle_grpc(&options->request, &options->link, ret_error);
}

static int settle_tls(const struct options *options, char **ret_error)
{
	const struct tls_options *tls = &options->link.tls;

	if (tls->ca_path && tls->insecure)
		return refuse(ret_error,
			      "--insecure: every certificate is accepted, --ca says which "
			      "are; give one of the two");
	if (tls->key_path && !tls->cert_path)
		return refuse(ret_error, "--key: it belongs to a certificate; add --cert=FILE");
	return 0;
}

int options_settle(struct options *options, char **ret_error)
{
	int err;

	if (options->load.connections < options->run.threads)
		return refuse(ret_error,
			      "--connections: %u is fewer than the %u threads of --threads; every "
			      "thread needs a connection",
			      options->load.connections, options->run.threads);
	err = option_settle_sweep(options, ret_error);
	if (!err)
		err = settle_ramp(options, ret_error);
	if (!err)
		err = settle_rate(options, ret_error);
	if (err)
		return err;
	if (!options->load.duration_ns && !options->load.requests)
		options->load.duration_ns = DURATION_NS;
	err = settle_policy(options, ret_error);
	if (err)
		return err;
	if (options->trace_path && !observer_is_given(&options->run.observers))
		return refuse(ret_error, "--trace: the timelines are the observer's; add "
					 "--observer=URL");
	/* Keep samples only if they are joined or written. */
	if (!observer_is_given(&options->run.observers) && !options->json_path)
		options->run.samples = 0;
	options->link.sampling = options->run.samples != 0;
	err = option_settle_observer(options, ret_error);
	if (!err)
		err = settle_outputs(options, ret_error);
	if (!err)
		err = settle_tls(options, ret_error);
	if (!err)
		err = settle_h2(options, ret_error);
	if (!err)
		err = settle_datagrams(options, ret_error);
	return err ? err : settle_schedule(options, ret_error);
}

static int take_words(struct options *options, char **ret_error)
{
	int left = options->words.count;

	if (!left)
		return refuse(ret_error, "no URL given; write e.g. sojourn-drive "
					 "http://127.0.0.1:8080/");
	if (left > 1 && options->command == COMMAND_SWEEP &&
	    options->run.observers.url_count == 1 && !options->run.observers.fleet)
		return refuse(ret_error,
			      "--observer: '%s' sees its own host alone, a sweep's load is "
			      "divided between %d URLs; give one --observer for each host, sweep "
			      "one URL, or without --observer",
			      options->run.observers.urls[0], left);
	for (int i = 0; i < left; i++) {
		int err = options_complete_url(options, &options->words.list[i], ret_error);

		if (err)
			return err;
	}
	options->url = left == 1 ? options->words.list[0] : NULL;
	if (!options->request.method)
		options->request.method =
			options->request.body || options->request.grpc ? "POST" : "GET";
	return 0;
}

int options_begin(int argc, char **argv, struct options *ret_options)
{
	bool help = argc > 1 && !strcmp(argv[1], "help");
	const char *word = argc > 1 + help ? argv[1 + help] : "";

	*ret_options = (struct options){
		.action = help ? OPTIONS_HELP : OPTIONS_DRIVE,
		.command = !strcmp(word, "run")	    ? COMMAND_RUN
			   : !strcmp(word, "sweep") ? COMMAND_SWEEP
						    : COMMAND_DRIVE,
		.link = {.timeout_ns = 5 * NSEC_PER_SEC,
			 .streams = 1,
			 .datagrams = {.outstanding = 1}},
		.load = {.connections = 16, .interval_ns = NSEC_PER_SEC},
		.run = {.threads = 1, .samples = 20000, .slowest = JOIN_SLOWEST},
	};
	return help + (ret_options->command != COMMAND_DRIVE);
}

int options_parse(int argc, char **argv, struct options *options, char **ret_error)
{
	int err = options_parse_words(argc, argv, options, ret_error);

	if (!err && options->action != OPTIONS_DRIVE) {
		free(TAKE_PTR(options->words.list));
		free(TAKE_PTR(options->words.uses));
		options->words.count = options->words.use_count = 0;
	}
	if (err || options->action != OPTIONS_DRIVE)
		return err;
	err = take_words(options, ret_error);
	return err ? err : options_settle(options, ret_error);
}

static const char *http_option(const struct request *request)
{
	if (request->method_given)
		return "--method";
	if (request->body)
		return "--body";
	if (request->expectation.status_count)
		return "--expect-status";
	return request->header_count ? "--header" : NULL;
}

static const char *plain_option(const struct request *request)
{
	static const char *const payloads[] = {"--payload-hex", "--payload-file"};

	for (size_t i = 0; request->payload_option && i < ARRAY_SIZE(payloads); i++)
		if (!strcmp(request->payload_option, payloads[i] + 2))
			return payloads[i];
	if (request->payload)
		return "--payload";
	if (request->framing.kind)
		return "--framing";
	return request->framing.replies ? "--replies" : NULL;
}

static int check_datagrams(const struct link_settings *link, const struct engine *engine,
			   char **ret_error)
{
	if (!link->datagrams.given || engine_has(engine, ENGINE_DATAGRAMS))
		return 0;
	return refuse(
		ret_error,
		"--match, --outstanding and --retransmit: %s: targets have no datagrams; they "
		"go with udp:",
		engine->scheme);
}

static const char *h2_option(const struct request *request, const struct link_settings *link)
{
	if (request->grpc)
		return "--grpc";
	return link->streams > 1 ? "--streams" : NULL;
}

int options_check(const struct request *request, const struct link_settings *link,
		  const struct engine *engine, char **ret_error)
{
	const char *wrong = engine_has(engine, ENGINE_TLS) ? NULL : tls_option_given(&link->tls);
	const char *scheme = engine->scheme;
	bool plain = engine_has(engine, ENGINE_PLAIN);

	if (wrong)
		return refuse(ret_error,
			      "%s: %s: targets have no TLS; it goes with https: and h2:", wrong,
			      scheme);
	wrong = engine_has(engine, ENGINE_HTTP2) ? NULL : h2_option(request, link);
	if (wrong)
		return refuse(ret_error,
			      "%s: %s: targets are not HTTP/2; it goes with h2: and h2c:", wrong,
			      scheme);
	wrong = plain ? http_option(request) : plain_option(request);

	if (wrong)
		return refuse(ret_error, "%s: %s: targets have none; it goes with %s", wrong,
			      scheme, plain ? "http:" : "tcp:, udp: and unix:");
	if (plain && request->expectation.body && !engine->add)
		return refuse(
			ret_error,
			"--expect-body: %s: responses are not looked into; it goes with http:, "
			"tcp: and unix:",
			scheme);
	if (plain && !request->payload)
		return refuse(ret_error,
			      "%s: targets need a request: give --payload=TEXT, --payload-hex=HEX "
			      "or --payload-file=FILE",
			      scheme);
	return check_datagrams(link, engine, ret_error);
}

void options_inherit_request(struct request *request)
{
	request->expectation.inherited = request->expectation.body_inherited = true;
	request->payload_option = NULL;
}

const char *options_request_given(const struct request *request)
{
	const char *given = http_option(request);

	if (!given)
		given = plain_option(request);
	if (!given && request->rows.count)
		given = "--rows";
	if (!given && request->expectation.body)
		given = "--expect-body";
	return !given && request->no_template ? "--no-template" : given;
}

void options_clear(struct options *options)
{
	request_clear(&options->request);
	free(options->assertions);
	source_clear(&options->link.sources);
	option_clear_observers(&options->run.observers);
	free(options->words.list);
	free(options->words.uses);
	for (size_t i = 0; i < options->url_count; i++)
		free(options->urls[i]);
	free(options->urls);
	*options = (struct options){0};
}
