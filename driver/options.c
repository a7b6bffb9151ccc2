// SPDX-License-Identifier: MIT
/*
 * The command line: getopt_long walks the rows of the tables, silently, so that every complaint is
 * ours, one line each. Neighbours: option_NAME.c, the rows.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "option_rows.h"
#include "scenario.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "sojourn/refuse.h"

static const struct option_table *const tables[] = {
	&option_load,	&option_request,  &option_connection, &option_h2,     &option_tls,
	&option_stream, &option_datagram, &option_observer,   &option_output, &option_sweep,
};

#define ROWS_MAX 96  /* bits of options.given, too */
#define KEY_LONG 256 /* keys of rows without a letter: this plus their index over all tables */

/* The row of @index over all tables; NULL past the last one. */
static const struct option_row *row_at(size_t index)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (index < tables[i]->count)
			return &tables[i]->rows[index];
		index -= tables[i]->count;
	}
	return NULL;
}

static int key_of(const struct option_row *row, size_t index)
{
	return row->letter ? row->letter : KEY_LONG + (int)index;
}

#define URL_FORMS                                                                            \
	"\n"                                                                                 \
	"URL is one of these, where HOST is a name, an IPv4 address or an [IPv6] address.\n" \
	"A name is resolved once."
#define URLS_IN_TURN                                             \
	" Several URLs of one kind are asked in turn: each of\n" \
	"the connections is one to every server then."

static const char help_drive[] =
	"Usage: sojourn-drive [OPTION]... URL...\n"
	"       sojourn-drive sweep [OPTION]... URL...\n"
	"       sojourn-drive run FILE.yaml [OPTION]... [URL]\n"
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

/* What stands above the forms of URLs, and which table is for another command. */
static const struct {
	const char *head;
	const struct option_table *left_out;
} helps[] = {
	[COMMAND_DRIVE] = {.head = help_drive},
	[COMMAND_SWEEP] = {.head = help_sweep},
	[COMMAND_RUN] = {.head = help_run, .left_out = &option_sweep},
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

static void print_row(const struct option_row *row, FILE *file)
{
	const char *line = row->help;
	char left[32];

	if (!row->help)
		return;
	snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? "=" : "",
		 row->argument ? row->argument : "");
	if (row->letter)
		fprintf(file, "  -%c, ", row->letter);
	else
		fprintf(file, "      ");
	if (strlen(left) > 20)
		fprintf(file, "%s\n%28s", left, "");
	else
		fprintf(file, "%-20s  ", left);
	for (const char *end; (end = strchr(line, '\n')); line = end + 1)
		fprintf(file, "%.*s\n%28s", (int)(end - line), line, "");
	fprintf(file, "%s\n", line);
}

/* One a line. */
static void print_forms(FILE *file)
{
	char forms[ENGINE_FORMS_SIZE];
	char *rest = engine_forms(forms, sizeof(forms)), *form;

	while ((form = strsep(&rest, ",")))
		fprintf(file, "  %s\n", form + strspn(form, " "));
	fputs("\n", file);
}

void options_help(enum options_command command, FILE *file)
{
	fputs(helps[command].head, file);
	print_forms(file);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i] == helps[command].left_out)
			continue;
		fprintf(file, "%s%s:\n", i ? "\n" : "", tables[i]->title);
		for (size_t j = 0; j < tables[i]->count; j++)
			print_row(&tables[i]->rows[j], file);
	}
	fputs(help_tail, file);
}

/* What getopt_long wants: @ret_short 2 + 2 * ROWS_MAX bytes, @ret_long ROWS_MAX + 1 entries. */
static void fill_getopt(char *ret_short, struct option *ret_long)
{
	const struct option_row *row;
	char *p = ret_short;
	size_t i;

	*p++ = ':'; /* report a missing value as ':', and silently */
	for (i = 0; i < ROWS_MAX && (row = row_at(i)); i++) {
		ret_long[i] =
			(struct option){row->name, row->argument != NULL, NULL, key_of(row, i)};
		if (!row->letter)
			continue;
		*p++ = row->letter;
		if (row->argument)
			*p++ = ':';
	}
	*p = '\0';
	ret_long[i] = (struct option){0};
}

static const struct option_row *find_row(int key, size_t *ret_index)
{
	const struct option_row *row;

	for (size_t i = 0; (row = row_at(i)); i++)
		if (key_of(row, i) == key) {
			*ret_index = i;
			return row;
		}
	return NULL;
}

bool options_were_given(const struct options *options, const char *name, size_t length)
{
	const struct option_row *row;

	for (size_t i = 0; (row = row_at(i)); i++)
		if (strlen(row->name) == length && !strncmp(row->name, name, length))
			return options->given[i / 64] >> i % 64 & 1;
	return false;
}

static int apply(int key, struct options *options, char **ret_error)
{
	size_t i = 0;
	const struct option_row *row = find_row(key, &i);

	options->given[i / 64] |= UINT64_C(1) << i % 64;
	return row->apply(options, optarg, ret_error);
}

/* @word is the argument that getopt_long stopped at. */
static int refuse_option(int result, const char *word, char **ret_error)
{
	size_t index;
	const struct option_row *row = find_row(optopt, &index);

	if (result == ':' && row)
		return refuse(ret_error, "--%s needs a value: --%s=%s (%.*s)", row->name, row->name,
			      row->argument, (int)strcspn(row->help ? row->help : "", "\n"),
			      row->help ? row->help : "");
	if (row && !row->argument && strchr(word, '='))
		return refuse(ret_error, "--%s takes no value: '%s'", row->name, word);
	if (optopt && optopt < KEY_LONG)
		return refuse(ret_error, "unknown option '-%c'; --help lists the options", optopt);
	return refuse(ret_error, "unknown or ambiguous option '%s'; --help lists the options",
		      word);
}

int options_parse_words(int argc, char **argv, struct options *options, char **ret_error)
{
	char short_options[2 + 2 * ROWS_MAX];
	struct option long_options[ROWS_MAX + 1];
	int key, err = 0;

	fill_getopt(short_options, long_options);
	optind = 0; /* GNU: start afresh, tests parse more than once */
	opterr = 0;
	while (!err && options->action == OPTIONS_DRIVE) {
		key = getopt_long(argc, argv, short_options, long_options, NULL);
		if (key == -1)
			break;
		if (key == '?' || key == ':')
			return refuse_option(key, argv[optind - 1], ret_error);
		err = apply(key, options, ret_error);
	}
	return err;
}

/* The words that are no options. */
static int take_words(struct options *options, int left, char **words, char **ret_error)
{
	if (!left)
		return refuse(ret_error, "no URL given; write e.g. sojourn-drive "
					 "http://127.0.0.1:8080/");
	if (left > 1 && options->command == COMMAND_SWEEP && options->observer.url)
		return refuse(ret_error,
			      "--observer: '%s' sees its own host alone, a sweep's load is "
			      "divided between %d URLs; sweep one URL, or without --observer",
			      options->observer.url, left);
	options->url = left == 1 ? words[0] : NULL;
	if (!options->method)
		options->method = options->body || options->grpc ? "POST" : "GET";
	return 0;
}

static int parse_plain(int argc, char **argv, struct options *options, char **ret_error)
{
	int err = options_parse_words(argc, argv, options, ret_error);

	if (err || options->action != OPTIONS_DRIVE)
		return err;
	err = take_words(options, argc - optind, argv + optind, ret_error);
	if (!err)
		err = options_settle(options, ret_error);
	if (err || options->url)
		return err;
	return scenario_of_targets(argv + optind, (size_t)(argc - optind), options,
				   &options->scenario, ret_error);
}

static enum options_command command_of(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "run"))
		return COMMAND_RUN;
	return argc > 1 && !strcmp(argv[1], "sweep") ? COMMAND_SWEEP : COMMAND_DRIVE;
}

int options_parse(int argc, char **argv, struct options *ret_options, char **ret_error)
{
	struct options options = {
		.connections = 16,
		.streams = 1,
		.processes = 1,
		.threads = 1,
		.interval_ns = NSEC_PER_SEC,
		.timeout_ns = 5 * NSEC_PER_SEC,
		.samples = 20000,
		.slowest = JOIN_SLOWEST,
		.datagrams = {.outstanding = 1},
	};
	int err;

	options.command = command_of(argc, argv);
	argc -= options.command != COMMAND_DRIVE;
	argv += options.command != COMMAND_DRIVE;
	err = options.command == COMMAND_RUN ? options_parse_run(argc, argv, &options, ret_error)
					     : parse_plain(argc, argv, &options, ret_error);
	if (err) {
		options_clear(&options);
		return err;
	}
	*ret_options = options;
	return 0;
}

static const char *http_option(const struct options *options)
{
	if (options->method_given)
		return "--method";
	if (options->body)
		return "--body";
	if (options->expectation.status_count)
		return "--expect-status";
	return options->header_count ? "--header" : NULL;
}

static const char *plain_option(const struct options *options)
{
	if (options->payload)
		return "--payload";
	return options->framing.kind || options->framing.replies ? "--framing" : NULL;
}

static int check_datagrams(const struct options *options, const struct engine *engine,
			   char **ret_error)
{
	if (!options->datagrams.given || engine->datagrams)
		return 0;
	return refuse(
		ret_error,
		"--match, --outstanding and --retransmit: %s: targets have no datagrams; they "
		"go with udp:",
		engine->scheme);
}

static const char *h2_option(const struct options *options)
{
	if (options->grpc)
		return "--grpc";
	return options->streams > 1 ? "--streams" : NULL;
}

int options_check(const struct options *options, const struct engine *engine, char **ret_error)
{
	const char *wrong = engine->tls ? NULL : tls_option_given(&options->tls);
	const char *scheme = engine->scheme;
	bool plain = engine->plain;

	if (wrong)
		return refuse(ret_error,
			      "%s: %s: targets have no TLS; it goes with https: and h2:", wrong,
			      scheme);
	wrong = engine->h2 ? NULL : h2_option(options);
	if (wrong)
		return refuse(ret_error,
			      "%s: %s: targets are not HTTP/2; it goes with h2: and h2c:", wrong,
			      scheme);
	wrong = plain ? http_option(options) : plain_option(options);

	if (wrong)
		return refuse(ret_error, "%s: %s: targets have none; it goes with %s", wrong,
			      scheme, plain ? "http:" : "tcp:, udp: and unix:");
	if (plain && options->expectation.body && !engine_find(scheme)->add)
		return refuse(
			ret_error,
			"--expect-body: %s: responses are not looked into; it goes with http:, "
			"tcp: and unix:",
			scheme);
	if (plain && !options->payload)
		return refuse(ret_error,
			      "%s: targets need a request: give --payload=TEXT, --payload-hex=HEX "
			      "or --payload-file=FILE",
			      scheme);
	return check_datagrams(options, engine, ret_error);
}

void options_take_request(struct options *options, const struct options *step)
{
	options->method = step->method;
	options->method_given = step->method_given;
	options->headers = step->headers;
	options->header_count = step->header_count;
	options->body = step->body;
	options->body_length = step->body_length;
	options->expectation = step->expectation;
	options->payload = step->payload;
	options->payload_length = step->payload_length;
	options->payload_literal = step->payload_literal;
	options->framing = step->framing;
	options->rows = step->rows;
	options->no_template = step->no_template;
}

void options_inherit_request(struct options *options)
{
	options->expectation.inherited = options->expectation.body_inherited = true;
	options->payload_option = NULL;
}

const char *options_request_given(const struct options *options)
{
	const char *given = http_option(options);

	if (!given)
		given = plain_option(options);
	if (!given && options->rows.count)
		given = "--rows";
	if (!given && options->expectation.body)
		given = "--expect-body";
	return !given && options->no_template ? "--no-template" : given;
}

void options_clear(struct options *options)
{
	free(options->headers);
	free(options->body);
	free(options->payload);
	template_rows_clear(&options->rows);
	free(options->assertions);
	source_clear(&options->sources);
	expectation_clear(&options->expectation);
	free(options->observer.token);
	scenario_free(options->scenario);
	*options = (struct options){0};
}
