// SPDX-License-Identifier: MIT
/*
 * The command line as a table: a row per option with its help and the function that checks and
 * stores its value. getopt_long walks it, silently: every complaint is ours, one line each.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "http_request.h"
#include "refuse.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define CONNECTIONS_MAX 1000000
#define THREADS_MAX	1024
#define BODY_MAX	(64U << 20)

/* Keys of options that have no short form. */
enum {
	KEY_BODY = 256,
	KEY_NEW_CONNECTIONS,
	KEY_WARMUP,
	KEY_TIMEOUT,
	KEY_JSON,
	KEY_OBSERVER,
	KEY_QUIET,
	KEY_VERSION,
};

struct option_row {
	int key; /* the short option, or one of the above */
	const char *name;
	const char *argument; /* NULL: takes none */
	const char *help;     /* further lines after \n */
	int (*apply)(struct options *options, const char *value, char **ret_error);
};

static int parse_bounded(const char *name, const char *value, uint64_t min, uint64_t max,
			 uint64_t *ret_number, char **ret_error)
{
	if (!units_parse_u64(value, min, max, ret_number))
		return 0;
	return refuse(ret_error, "--%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64,
		      name, value, min, max);
}

static int parse_duration(const char *name, const char *value, uint64_t min_ns, uint64_t *ret_ns,
			  char **ret_error)
{
	uint64_t ns;
	int err = units_parse_duration(value, &ns);

	if (err == -ERANGE)
		return refuse(ret_error, "--%s: '%s' is too long", name, value);
	if (err)
		return refuse(ret_error,
			      "--%s: '%s' is not a duration; write it like 500ms, 10s or 2m", name,
			      value);
	if (ns < min_ns)
		return refuse(ret_error, "--%s: '%s' is too short; at least 1ms is needed", name,
			      value);
	*ret_ns = ns;
	return 0;
}

static int apply_connections(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = parse_bounded("connections", value, 1, CONNECTIONS_MAX, &number, ret_error);

	if (!err)
		options->connections = (uint32_t)number;
	return err;
}

static int apply_threads(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = parse_bounded("threads", value, 1, THREADS_MAX, &number, ret_error);

	if (!err)
		options->threads = (uint32_t)number;
	return err;
}

static int apply_duration(struct options *options, const char *value, char **ret_error)
{
	return parse_duration("duration", value, NSEC_PER_MSEC, &options->duration_ns, ret_error);
}

static int apply_requests(struct options *options, const char *value, char **ret_error)
{
	uint64_t count;
	int err = units_parse_count(value, &count);

	if (err || !count)
		return refuse(ret_error,
			      "--requests: '%s' is not a count; write it like 1000, 200k or 5M",
			      value);
	options->requests = count;
	return 0;
}

static int apply_method(struct options *options, const char *value, char **ret_error)
{
	options->method = value;
	return http_request_check_method(value, ret_error);
}

static int apply_header(struct options *options, const char *value, char **ret_error)
{
	size_t size = (options->header_count + 1) * sizeof(*options->headers);
	int err = http_request_check_header(value, ret_error);
	const char **headers;

	if (err)
		return err;
	headers = realloc(options->headers, size);
	if (!headers)
		return -ENOMEM;
	headers[options->header_count++] = value;
	options->headers = headers;
	return 0;
}

static int read_body(FILE *file, const char *path, struct options *options, char **ret_error)
{
	autofree char *body = malloc(BODY_MAX + 1);
	size_t length;
	char *fitted;

	if (!body)
		return -ENOMEM;
	length = fread(body, 1, BODY_MAX + 1, file);
	if (ferror(file))
		return refuse(ret_error, "--body: cannot read '%s': %s", path, strerror(errno));
	if (length > BODY_MAX)
		return refuse(ret_error, "--body: '%s' is larger than %u MiB", path,
			      BODY_MAX >> 20);
	fitted = realloc(body, length + 1);
	if (fitted)
		body = fitted;
	free(options->body);
	options->body = TAKE_PTR(body);
	options->body_length = length;
	return 0;
}

static int apply_body(struct options *options, const char *value, char **ret_error)
{
	autofclose FILE *file = NULL;

	if (value[0] == '@') {
		file = fopen(value + 1, "re");
		if (!file)
			return refuse(ret_error, "--body: cannot open '%s': %s", value + 1,
				      strerror(errno));
		return read_body(file, value + 1, options, ret_error);
	}
	free(options->body);
	options->body = strdup(value);
	options->body_length = strlen(value);
	return options->body ? 0 : -ENOMEM;
}

static int apply_new_connections(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->new_connections = true;
	return 0;
}

static int apply_warmup(struct options *options, const char *value, char **ret_error)
{
	return parse_duration("warmup", value, 0, &options->warmup_ns, ret_error);
}

static int apply_timeout(struct options *options, const char *value, char **ret_error)
{
	return parse_duration("timeout", value, NSEC_PER_MSEC, &options->timeout_ns, ret_error);
}

static int apply_json(struct options *options, const char *value, char **ret_error)
{
	if (!*value)
		return refuse(ret_error, "--json: the file name is empty; give a file, or - for "
					 "standard output");
	options->json_path = value;
	return 0;
}

static int apply_observer(struct options *options, const char *value, char **ret_error)
{
	if (strncmp(value, "http://", 7) || !value[7])
		return refuse(ret_error,
			      "--observer: '%s' is not an observer's address; write it like "
			      "http://127.0.0.1:9777",
			      value);
	options->observer_url = value;
	return 0;
}

static int apply_quiet(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->quiet = true;
	return 0;
}

static int apply_help(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->action = OPTIONS_HELP;
	return 0;
}

static int apply_version(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->action = OPTIONS_VERSION;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
	{'c', "connections", "N", "connections kept busy (default 16)", apply_connections},
	{'t', "threads", "N", "threads that share the connections (default 1)", apply_threads},
	{'d', "duration", "TIME", "how long to measure (default 10s; with -n: no limit)",
	 apply_duration},
	{'n', "requests", "N", "measure exactly N requests, e.g. 1000, 200k, 5M", apply_requests},
	{'m', "method", "METHOD", "request method (default GET; POST with --body)", apply_method},
	{'H', "header", "LINE", "add a header, 'Name: value'; may be repeated", apply_header},
	{KEY_BODY, "body", "TEXT", "request body; @FILE sends a file's content", apply_body},
	{KEY_NEW_CONNECTIONS, "new-connections", NULL,
	 "one connection per request; connecting is timed\nseparately",
	 apply_new_connections},
	{KEY_WARMUP, "warmup", "TIME", "send load for TIME first, unmeasured (default 0)",
	 apply_warmup},
	{KEY_TIMEOUT, "timeout", "TIME",
	 "give up connecting, and waiting for a response,\nafter TIME each (default 5s)",
	 apply_timeout},
	{KEY_OBSERVER, "observer", "URL",
	 "mark the measured phase on the observer at URL\n"
	 "(sojourn observe --listen) and merge its findings\ninto the report",
	 apply_observer},
	{KEY_JSON, "json", "FILE",
	 "write the run document to FILE; with - to standard\n"
	 "output, in place of the text report",
	 apply_json},
	{KEY_QUIET, "quiet", NULL, "no progress line and no text report", apply_quiet},
	{'h', "help", NULL, "print this help", apply_help},
	{KEY_VERSION, "version", NULL, "print the version", apply_version},
};
/* clang-format on */

#define ROWS ARRAY_SIZE(rows)

static const char help_head[] = "Usage: sojourn-drive [OPTION]... URL\n"
				"Load a server, closed loop, and report what its clients see.\n"
				"\n"
				"URL is %s, where HOST is a name, an IPv4\n"
				"address or an [IPv6] address. A name is resolved once.\n"
				"\n";

static const char help_tail[] =
	"\n"
	"TIME is a number with ns, us, ms, s, m or h; seconds if bare.\n"
	"Ctrl-C ends the run early, with the complete report; a second one quits at once.\n"
	"\n"
	"Exit status:\n"
	"  0  every request was answered with a status below 400\n"
	"  1  some requests failed, the observer's part is missing, the run could not\n"
	"     start, was interrupted before measuring, or its result not be written\n"
	"  2  bad usage\n";

static void print_row(const struct option_row *row, FILE *file)
{
	const char *line = row->help;
	char left[32];

	snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? "=" : "",
		 row->argument ? row->argument : "");
	if (row->key < KEY_BODY)
		fprintf(file, "  -%c, %-20s  ", row->key, left);
	else
		fprintf(file, "      %-20s  ", left);
	for (const char *end; (end = strchr(line, '\n')); line = end + 1)
		fprintf(file, "%.*s\n%28s", (int)(end - line), line, "");
	fprintf(file, "%s\n", line);
}

void options_help(FILE *file)
{
	char forms[128];

	fprintf(file, help_head, engine_forms(forms, sizeof(forms)));
	for (size_t i = 0; i < ROWS; i++)
		print_row(&rows[i], file);
	fputs(help_tail, file);
}

/* What getopt_long wants: @ret_short needs 2 + 2 * ROWS + 1 bytes, @ret_long ROWS + 1 entries. */
static void fill_getopt(char *ret_short, struct option *ret_long)
{
	char *p = ret_short;

	*p++ = ':'; /* report a missing value as ':', and silently */
	for (size_t i = 0; i < ROWS; i++) {
		const struct option_row *row = &rows[i];

		ret_long[i] = (struct option){row->name, row->argument != NULL, NULL, row->key};
		if (row->key >= KEY_BODY)
			continue;
		*p++ = (char)row->key;
		if (row->argument)
			*p++ = ':';
	}
	*p = '\0';
	ret_long[ROWS] = (struct option){0};
}

static const struct option_row *find_row(int key)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].key == key)
			return &rows[i];
	return NULL;
}

/* @word is the argument that getopt_long stopped at. */
static int refuse_option(int result, const char *word, char **ret_error)
{
	const struct option_row *row = find_row(optopt);

	if (result == ':' && row)
		return refuse(ret_error, "--%s needs a value: --%s=%s (%.*s)", row->name, row->name,
			      row->argument, (int)strcspn(row->help, "\n"), row->help);
	if (row && !row->argument && strchr(word, '='))
		return refuse(ret_error, "--%s takes no value: '%s'", row->name, word);
	if (optopt && optopt < KEY_BODY)
		return refuse(ret_error, "unknown option '-%c'; --help lists the options", optopt);
	return refuse(ret_error, "unknown or ambiguous option '%s'; --help lists the options",
		      word);
}

static int parse_words(int argc, char **argv, struct options *options, char **ret_error)
{
	char short_options[2 + 2 * ROWS];
	struct option long_options[ROWS + 1];
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
		err = find_row(key)->apply(options, optarg, ret_error);
	}
	return err;
}

/* What no single option can decide. */
static int settle(struct options *options, int left, char **words, char **ret_error)
{
	if (!left)
		return refuse(ret_error, "no URL given; write e.g. sojourn-drive "
					 "http://127.0.0.1:8080/");
	if (left > 1)
		return refuse(ret_error, "one URL is allowed, but '%s' follows '%s'", words[1],
			      words[0]);
	if (options->connections < options->threads)
		return refuse(ret_error,
			      "--connections: %u is fewer than the %u threads of --threads; every "
			      "thread needs a connection",
			      options->connections, options->threads);
	options->url = words[0];
	if (!options->method)
		options->method = options->body ? "POST" : "GET";
	if (!options->duration_ns && !options->requests)
		options->duration_ns = 10 * NSEC_PER_SEC;
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret_options, char **ret_error)
{
	struct options options = {
		.connections = 16,
		.threads = 1,
		.timeout_ns = 5 * NSEC_PER_SEC,
	};
	int err = parse_words(argc, argv, &options, ret_error);

	if (!err && options.action == OPTIONS_DRIVE)
		err = settle(&options, argc - optind, argv + optind, ret_error);
	if (err) {
		options_clear(&options);
		return err;
	}
	*ret_options = options;
	return 0;
}

void options_clear(struct options *options)
{
	free(options->headers);
	free(options->body);
	*options = (struct options){0};
}
