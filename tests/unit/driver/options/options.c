// SPDX-License-Identifier: MIT
/* The command line: valid options, and that every refusal names option, value and remedy. */
#include "driver/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "options/options.h"
#include "scenario/scenario.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define URL	  "http://127.0.0.1/"
#define WORDS_MAX 12

static int parse(const char *const *words, struct options *options, char **ret_error)
{
	char *argv[WORDS_MAX + 2] = {(char *)"sojourn-drive"};
	struct scenario *scenario = NULL;
	int argc = 1, err;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	options_begin(argc, argv, options);
	err = options_parse(argc, argv, options, ret_error);
	if (!err && options->words.count > 1)
		err = scenario_of_targets(options->words.list, (size_t)options->words.count,
					  options, &scenario, ret_error);
	scenario_free(scenario);
	if (err)
		options_clear(options);
	return err;
}

#define PARSE(options, error, ...) \
	parse((const char *const[]){__VA_ARGS__, NULL}, (options), (error))

static void test_defaults(void **state)
{
	autofree char *error = NULL;
	struct options options;

	assert_int_equal(PARSE(&options, &error, URL), 0);
	assert_string_equal(options.url, URL);
	assert_int_equal(options.load.connections, 16);
	assert_int_equal(options.run.threads, 1);
	assert_int_equal(options.load.interval_ns, NSEC_PER_SEC);
	assert_int_equal(options.load.duration_ns, 10 * NSEC_PER_SEC);
	assert_int_equal(options.load.requests, 0);
	assert_int_equal(options.link.timeout_ns, 5 * NSEC_PER_SEC);
	assert_string_equal(options.request.method, "GET");
	assert_false(options.link.new_connections);
	options_clear(&options);
}

static void test_everything(void **state)
{
	autofree char *error = NULL;
	struct options options;

	assert_int_equal(PARSE(&options, &error, "-c64", "-t", "4", URL, "-n", "200k",
			       "--warmup=500ms", "-HA: 1", "-H", "B: 2", "--body=hello", "--json=-",
			       "--new-connections"),
			 0);
	assert_int_equal(options.load.connections, 64);
	assert_int_equal(options.run.threads, 4);
	assert_int_equal(options.load.requests, 200000);
	assert_int_equal(options.load.duration_ns, 0);
	assert_int_equal(options.load.warmup_ns, 500 * NSEC_PER_MSEC);
	assert_int_equal(options.request.header_count, 2);
	assert_string_equal(options.request.headers[0], "A: 1");
	assert_string_equal(options.request.headers[1], "B: 2");
	assert_string_equal(options.request.method, "POST");
	assert_int_equal(options.request.body_length, 5);
	assert_memory_equal(options.request.body, "hello", 5);
	assert_string_equal(options.json_path, "-");
	assert_true(options.link.new_connections);
	options_clear(&options);
}

static void test_body_file(void **state)
{
	char path[] = "/tmp/driver_options_test.XXXXXX";
	autoclose int fd = mkstemp(path);
	autofree char *error = NULL;
	char word[64];
	struct options options;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a\0b", 3), 3);
	snprintf(word, sizeof(word), "--body=@%s", path);
	assert_int_equal(PARSE(&options, &error, word, URL), 0);
	assert_int_equal(options.request.body_length, 3);
	assert_memory_equal(options.request.body, "a\0b", 3);
	options_clear(&options);
	unlink(path);
}

static void test_shaped_rates(void **state)
{
	static const struct {
		const char *rate;
		uint64_t mean, seconds;
		size_t segments;
	} cases[] = {
		{"500", 500, 10, 0},	      {"100..300", 200, 10, 1}, {"100,200,600", 300, 10, 3},
		{"0..10:4s,10:6s", 8, 10, 2}, {"7:3s", 7, 3, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *error = NULL;
		struct options options;
		char text[64];

		snprintf(text, sizeof(text), "--rate=%s", cases[i].rate);
		assert_int_equal(PARSE(&options, &error, text, URL), 0);
		assert_int_equal(options.load.schedule.rate, cases[i].mean);
		assert_int_equal(options.load.schedule.arrival, SCHEDULE_CONSTANT);
		assert_int_equal(options.load.schedule.shape.count, cases[i].segments);
		assert_int_equal(options.load.duration_ns, cases[i].seconds * NSEC_PER_SEC);
		options_clear(&options);
	}
}

static void test_help_and_version_win(void **state)
{
	autofree char *error = NULL;
	struct options options;

	assert_int_equal(PARSE(&options, &error, "--help"), 0);
	assert_int_equal(options.action, OPTIONS_HELP);
	assert_int_equal(PARSE(&options, &error, "--version", "--nonsense"), 0);
	assert_int_equal(options.action, OPTIONS_VERSION);
}

struct refusal {
	const char *words[5];
	const char *expected[3]; /* must all be in the message */
};

/* clang-format off */
static const struct refusal refusals[] = {
	{{"-c", "0", URL}, {"--connections", "'0'", "from 1 to 1000000"}},
	{{"-c", "1..x", URL}, {"--connections", "'1..x'", "1..64"}},
	{{"-c1..4", "--rate=5", URL}, {"--connections", "'1..4'", "--rate"}},
	{{"-c1..4", "-n5", URL}, {"--requests", "'1..4'", "--duration"}},
	{{"-c1..4:1s,9:1s", "-n5", URL}, {"--requests", "5", "lengths"}},
	{{"http://a/", "http://b/", "http://a/"}, {"'http://a/'", "twice", ""}},
	{{"-c", "12x", URL}, {"--connections", "'12x'", "from 1 to 1000000"}},
	{{"-t", "-1", URL}, {"--threads", "'-1'", "from 1 to 1024"}},
	{{"-t4", "-c3", URL}, {"--connections", "3", "4 threads"}},
	{{"--threads=0", URL}, {"--threads", "'0'", "from 1 to 1024"}},
	{{"-t20", URL}, {"--connections", "16", "20 threads"}},
	{{"--interval=1us", URL}, {"--interval", "'1us'", "at least 1ms"}},
	{{"--grpc-messages=5", "h2c://a/b"}, {"--grpc-messages", "add", "--grpc"}},
	{{"--grpc-replies=any", "h2c://a/b"}, {"--grpc-replies", "add", "--grpc"}},
	{{"--grpc-replies=some", "--grpc", "h2c://a/b"}, {"--grpc-replies", "'some'", "any"}},
	{{"--grpc-interval=1s", "--grpc", "h2c://a/b"}, {"--grpc-interval", "one", "--grpc-messages"}},
	{{"--grpc-interval=1s", "--grpc-messages=9", "--grpc", "h2c://a/b"},
	 {"--grpc-interval", "8 s", "--timeout"}},
	{{"-d", "soon", URL}, {"--duration", "'soon'", "500ms"}},
	{{"-d", "0", URL}, {"--duration", "'0'", "at least 1ms"}},
	{{"--warmup=-1s", URL}, {"--warmup", "'-1s'", "500ms"}},
	{{"--timeout=1us", URL}, {"--timeout", "'1us'", "at least 1ms"}},
	{{"-n", "0", URL}, {"--requests", "'0'", "200k"}},
	{{"-n", "many", URL}, {"--requests", "'many'", "200k"}},
	{{"--rate=0", URL}, {"--rate", "'0'", "20k"}},
	{{"--rate=1..5:10s,3", "-d10s", URL}, {"--rate", "as long as", "--duration"}},
	{{"--rate=1,2", "-n5", URL}, {"--rate", "how long", "--duration"}},
	{{"--rate=fast", URL}, {"--rate", "'fast'", "20k"}},
	{{"--arrival=closed", URL}, {"--arrival", "'closed'", "poisson"}},
	{{"--arrival=poisson", URL}, {"--arrival", "poisson", "--rate"}},
	{{"--think=1s", "--rate=5", URL}, {"--think", "exclude", "--rate"}},
	{{"--think-distribution=x", URL}, {"--think-distribution", "'x'", "exponential"}},
	{{"--think-distribution=fixed", URL}, {"--think-distribution", "fixed", "--think=TIME"}},
	{{"--requests-per-connection=0", URL}, {"--requests-per-connection", "'0'", "above 0"}},
	{{"--requests-per-connection=2", "--new-connections", URL},
	 {"--requests-per-connection", "--new-connections", "one of the two"}},
	{{"--connection-lifetime=1us", URL}, {"--connection-lifetime", "'1us'", "at least 1ms"}},
	{{"--connect-rate=no", URL}, {"--connect-rate", "'no'", "20k"}},
	{{"--close=maybe", URL}, {"--close", "'maybe'", "rst or fin"}},
	{{"--ca=a", "--insecure", URL}, {"--insecure", "--ca", "one of the two"}},
	{{"--key=a", URL}, {"--key", "certificate", "--cert=FILE"}},
	{{"--nodelay=1", URL}, {"--nodelay", "'1'", "off or on"}},
	{{"--send-buffer=1", URL}, {"--send-buffer", "'1'", "from 1024 to"}},
	{{"--receive-buffer=4k", URL}, {"--receive-buffer", "'4k'", "whole number"}},
	{{"--expect-status=2xx", URL}, {"--expect-status", "'2xx'", "200,204"}},
	{{"--expect-body=", URL}, {"--expect-body", "empty", "expected"}},
	{{"--cool-down=x", URL}, {"--cool-down", "'x'", "500ms"}},
	{{"-m", "GET /", URL}, {"--method", "'GET /'", "POST"}},
	{{"-m", "CONNECT", URL}, {"--method", "CONNECT", "not supported"}},
	{{"-H", "no colon", URL}, {"--header", "'no colon'", "Name: value"}},
	{{"-H", "A: b\r\nC: d", URL}, {"--header", "A", "control character"}},
	{{"-H", "content-length: 5", URL}, {"--header", "Content-Length", "cannot be set"}},
	{{"--body=@/nonexistent", URL}, {"--body", "'/nonexistent'", "No such file"}},
	{{"--json=", URL}, {"--json", "empty", "standard output"}},
	{{"--observer=localhost", URL}, {"--observer", "'localhost'", "http://"}},
	{{"--observer=https://", URL}, {"--observer", "'https://'", "https://server"}},
	{{"--observer-token-file=/dev/null", URL}, {"--observer-token-file", "no token", "letters"}},
	{{"--observer-token-file=/nonexistent", URL}, {"--observer-token-file", "'/nonexistent'", "No such"}},
	{{"--observer-ca=/dev/null", URL}, {"--observer-ca", "'/dev/null'", "no certificate"}},
	{{"--nonsense", URL}, {"--nonsense", "unknown", "--help"}},
	{{"--quiet=yes", URL}, {"--quiet", "takes no value", "'--quiet=yes'"}},
	{{"-x", URL}, {"-x", "unknown", "--help"}},
	{{URL, "-c"}, {"--connections", "needs a value", "default 16"}},
	{{URL, "--json"}, {"--json", "needs a value", "FILE"}},
	{{URL, "--rate"}, {"--rate", "all connections, whether or not", "(open loop)"}},
	{{"-c4"}, {"no URL", "http://", ""}},
	{{"--payload=a", "--payload-hex=00", "tcp://a:1"}, {"--payload-hex", "--payload is", "one of"}},
	{{"--payload-hex=00", "--payload-file=/dev/null", "tcp://a:1"}, {"--payload-file", "--payload-hex", "one"}},
	{{"--json=/tmp/new.x", "--csv=/tmp/../tmp/new.x", URL}, {"--csv", "'/tmp/../tmp/new.x'", "of --json"}},
	{{"--csv=/proc/version", "--hlog=/proc/version", URL}, {"--hlog", "of --csv", "two files"}},
	{{"--rate=10..20:5s", "-d1s", URL}, {"--rate", "longer than --duration", "leave it out"}},
	{{"-c1..4:5s", "-d1s", URL}, {"--connections", "longer than --duration", "leave it out"}},
	{{"--wait-for=ftp://x/", URL}, {"--wait-for", "'ftp://x/'", "https://"}},
	{{"--retransmit=1s", "--timeout=1s", "udp://a:1"}, {"--retransmit", "after 1", "--timeout"}},
	{{"--expect-body=a", "--expect-body=b", URL}, {"--expect-body", "'b' follows 'a'", "one text"}},
	{{URL, "udp://b:1"}, {"cannot be asked in turn", "'udp://b:1'", URL}},
	{{URL, "b"}, {"'b'", "not a usable URL", ""}},
	{{"--conections=4", URL}, {"--conections", "did you mean --connections?", "--help"}},
	{{"--data", "x", URL}, {"--data", "did you mean --body?", "--help"}},
	{{"--conn=4", URL}, {"'--conn'", "ambiguous", "--help"}},
	{{"-d{}", URL}, {"--duration", "'{}'", "--body"}},
	{{"load.yml"}, {"'load.yml'", "scenario", "sojourn-drive run load.yml"}},
};
/* clang-format on */

static void test_refusals(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		autofree char *error = NULL;
		struct options options;

		assert_int_equal(parse(refusals[i].words, &options, &error), -EINVAL);
		assert_non_null(error);
		assert_null(strchr(error, '\n'));
		for (size_t j = 0; j < ARRAY_SIZE(refusals[i].expected); j++)
			if (!strstr(error, refusals[i].expected[j]))
				fail_msg("'%s' lacks '%s'", error, refusals[i].expected[j]);
	}
}

/*
 * Repeated options add up where that makes sense; output to /dev/null is discarded without a
 * complaint.
 */
static void test_given_twice(void **state)
{
	autofree char *error = NULL;
	struct options options;

	assert_int_equal(PARSE(&options, &error, "--expect-status=200", "--expect-status=404,410",
			       "--json=/dev/null", "--csv=/dev/null", "--hlog=/tmp/new.y",
			       "--wait-for=./a://b", "--rate=1..5:2s", "-d3s", URL),
			 0);
	assert_int_equal(options.request.expectation.status_count, 3);
	options_clear(&options);
	assert_int_equal(PARSE(&options, &error, "--expect-grpc-status=ok",
			       "--expect-grpc-status=not_found", "--grpc", "h2c://a/b"),
			 0);
	assert_int_equal(options.request.grpc_expectation.statuses, 1U << 0 | 1U << 5);
	options_clear(&options);
}

/* An address without a scheme is http; anything with a scheme, or ambiguous, stays. */
static void test_url_without_scheme(void **state)
{
	static const char *const addresses[] = {
		"127.0.0.1", "127.0.0.1/a?b", "a.example:8080",
		"[::1]:81/", "localhost",     "localhost/a",
	};
	static const char *const kept[] = {URL, "unix:/a:1", "tcp:127.0.0.1:1", "example.com/a"};
	char expected[64];

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		autofree char *error = NULL;
		struct options options;

		snprintf(expected, sizeof(expected), "http://%s", addresses[i]);
		assert_int_equal(PARSE(&options, &error, addresses[i]), 0);
		assert_string_equal(options.url, expected);
		options_clear(&options);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		autofree char *error = NULL;
		struct options options;

		assert_int_equal(PARSE(&options, &error, kept[i]), 0);
		assert_ptr_equal(options.url, kept[i]);
		options_clear(&options);
	}
}

/* Letters of curl, oha and hey stand for the corresponding options. */
static void test_aliases(void **state)
{
	autofree char *error = NULL;
	struct options options;

	assert_int_equal(PARSE(&options, &error, "-XPUT", "-z5s", "-q100", "-k", "https://a"), 0);
	assert_string_equal(options.request.method, "PUT");
	assert_int_equal(options.load.duration_ns, 5 * NSEC_PER_SEC);
	assert_int_equal(options.load.schedule.rate, 100);
	assert_true(options.link.tls.insecure);
	options_clear(&options);
}

static void test_help_command(void **state)
{
	static const char *const words[] = {"", "sweep", "run"};
	static const enum options_command commands[] = {COMMAND_DRIVE, COMMAND_SWEEP, COMMAND_RUN};
	char *argv[] = {(char *)"sojourn-drive", (char *)"help", NULL};
	struct options options;

	for (int i = 0; i < (int)ARRAY_SIZE(commands); i++) {
		argv[2] = (char *)words[i];
		assert_int_equal(options_begin(2 + (i > 0), argv, &options), 1 + (i > 0));
		assert_int_equal(options.action, OPTIONS_HELP);
		assert_int_equal(options.command, commands[i]);
	}
}

static void check_help(enum options_command command, const char *usage)
{
	autofree char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	options_help(command, file);
	fclose(file);
	assert_ptr_equal(strstr(text, usage), text);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > 80)
			fail_msg("too wide: %.*s", (int)strcspn(line, "\n"), line);
	assert_null(strstr(text, " \n"));
	assert_int_equal(!strstr(text, "--ladder="), command == COMMAND_RUN);
}

static void test_help_fits(void **state)
{
	check_help(COMMAND_DRIVE, "Usage: sojourn-drive [");
	check_help(COMMAND_SWEEP, "Usage: sojourn-drive sweep [");
	check_help(COMMAND_RUN, "Usage: sojourn-drive run FILE.yaml [");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_body_file),
		cmocka_unit_test(test_help_and_version_win),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_help_fits),
		cmocka_unit_test(test_url_without_scheme),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_help_command),
		cmocka_unit_test(test_shaped_rates),
		cmocka_unit_test(test_given_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
