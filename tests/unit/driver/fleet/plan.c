// SPDX-License-Identifier: MIT
/* Of a plan, an agent takes the options of a run and the files that were sent along, and no others. */
#include "driver/test.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/channel/plan.h"
#include "fleet/agent/ceilings.h"
#include "sojourn/cleanup.h"

/* Take a file as a coordinator sends it. */
static void take_file(struct plan_inbox *inbox, int number, const char *text, char **ret_error)
{
	unsigned char encoded[1024];
	int length = (int)strlen(text);
	autojson json_t *file = NULL;

	assert_true(length < 700);
	EVP_EncodeBlock(encoded, (const unsigned char *)text, length);
	file = json_pack("{s:i, s:i, s:s}", "file", number, "length", length, "base64", encoded);
	assert_int_equal(plan_take_file(inbox, file, ret_error), 0);
}

/* Take a plan as a coordinator sends it, with these arguments, after a file of one row. */
static int take(const char *arguments, const struct ceilings *ceilings, char **ret_error)
{
	struct plan_inbox inbox = {0};
	struct options options = {0};
	struct scenario *scenario = NULL;
	autojson json_t *list = json_loads(arguments, 0, NULL);
	autojson json_t *plan = json_pack("{s:O, s:i, s:i, s:i, s:i}", "arguments", list, "member",
					  1, "members", 2, "samples", 0, "patience_ms", 5000);
	int err;

	assert_non_null(plan);
	take_file(&inbox, 0, "row\n", ret_error);
	err = plan_take(&inbox, plan, &options, &scenario, ret_error);
	if (!err && ceilings)
		err = ceilings_check_load(ceilings, &options, scenario, ret_error);
	if (scenario) {
		scenario_free(scenario);
		options_clear(&options);
	}
	plan_inbox_clear(&inbox);
	return err;
}

static void files_are_those_sent_along(void **state)
{
	static const struct {
		const char *arguments;
		bool taken;
	} cases[] = {
		{"[\"http://h/\"]", true},
		{"[\"--new-connections\", \"--connections=4\", \"http://h/\"]", true},
		{"[{\"option\":\"--rows=\",\"file\":0}, \"http://h/{{row}}\"]", true},
		{"[{\"option\":\"--body=@\",\"file\":0}, \"http://h/\"]", true},
		{"[\"--body=text\", \"http://h/\"]", true},
		{"[\"--body=@/etc/passwd\", \"http://h/\"]", false},
		{"[\"--body\", \"@/etc/passwd:\", \"http://h/\"]", false},
		{"[\"--data=@/etc/passwd\", \"http://h/\"]", false},
		{"[\"--bod=@/etc/passwd\", \"http://h/\"]", false},
		{"[\"--rows=/etc/passwd\", \"http://h/{{row}}\"]", false},
		{"[\"--rows\", \"/etc/passwd\", \"http://h/{{row}}\"]", false},
		{"[{\"option\":\"--rows=/etc/passwd\",\"file\":0}, \"http://h/\"]", false},
		{"[{\"option\":\"--rows=\",\"file\":1}, \"http://h/\"]", false},
		{"[{\"option\":\"--body=\",\"file\":0}, \"http://h/\"]", false},
		{"[{\"option\":\"--json=\",\"file\":0}, \"http://h/\"]", false},
		{"[\"--ca=/etc/passwd\", \"https://h/\"]", false},
		{"[\"--payload-file=/etc/passwd\", \"--framing=close\", \"tcp://h:1\"]", false},
		{"[\"--json=/tmp/x\", \"http://h/\"]", false},
		{"[\"--wait-for=http://other/\", \"http://h/\"]", false},
		{"[\"--observer=http://other/\", \"http://h/\"]", false},
		{"[\"--check\", \"http://h/\"]", false},
		{"[\"--help\"]", false},
		{"[\"-c4\", \"http://h/\"]", false},
		{"[\"run\", \"/etc/passwd\"]", false},
		{"[\"sweep\", \"http://h/\"]", false},
		{"[\"--\", \"http://h/\"]", false},
		{"[\"--source=127.0.0.1\", \"http://h/\"]", false},
		{"[1, \"http://h/\"]", false},
		{"[]", false},
		{"{}", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *error = NULL;
		int err = take(cases[i].arguments, NULL, &error);

		if (err != (cases[i].taken ? 0 : -EINVAL) || !err != !error)
			fail_msg("%s: %d, %s", cases[i].arguments, err, error ? error : "");
	}
}

#define STEP "target: http://h/\nsteps:\n  - name: a\n    path: '/{{row}}'\n"

/* @paths: of the scenario @text, and of a file of one row. */
static int take_scenario(const char *text, const char *paths, char **ret_error)
{
	struct plan_inbox inbox = {0};
	struct options options = {0};
	struct scenario *scenario = NULL;
	autojson json_t *list = json_loads(paths, 0, NULL);
	autojson json_t *plan = json_pack("{s:[], s:O, s:i, s:i, s:i}", "arguments", "paths", list,
					  "member", 1, "members", 2, "samples", 0);
	int err;

	assert_non_null(plan);
	take_file(&inbox, 0, text, ret_error);
	take_file(&inbox, 1, "row\n", ret_error);
	err = plan_take(&inbox, plan, &options, &scenario, ret_error);
	if (!err) {
		assert_null(options.run.start.flag);
		assert_int_equal(scenario->steps[0].request.numbers.driver, 1);
	}
	if (scenario) {
		scenario_free(scenario);
		options_clear(&options);
	}
	plan_inbox_clear(&inbox);
	return err;
}

static void scenarios_name_files_that_were_sent(void **state)
{
	static const struct {
		const char *text, *paths;
		bool taken;
	} cases[] = {
		{STEP "    rows: rows\n", "[\"d/s.yaml\", \"d/rows\"]", true},
		{STEP "    rows: /rows\n", "[\"d/s.yaml\", \"/rows\"]", true},
		{"load: {wait-for: 'http://other/'}\n" STEP "    rows: rows\n",
		 "[\"s.yaml\", \"rows\"]", true},
		{STEP "    rows: rows\n", "[\"d/s.yaml\", \"rows\"]", false},
		{STEP "    rows: /etc/passwd\n", "[\"s.yaml\", \"rows\"]", false},
		{STEP "    rows: rows\n    body: '@/etc/passwd'\n", "[\"s.yaml\", \"rows\"]",
		 false},
		{STEP "    rows: rows\n    payload-file: /etc/passwd\n", "[\"s.yaml\", \"rows\"]",
		 false},
		{"load: {source: 127.0.0.1}\n" STEP "    rows: rows\n", "[\"s.yaml\", \"rows\"]",
		 false},
		{STEP "    rows: rows\n", "[\"--ca=/etc/passwd\", \"rows\"]", false},
		{STEP "    rows: rows\n", "[\"s.yaml\", \"rows\", \"third\"]", false},
		{STEP "    rows: rows\n", "[1, \"rows\"]", false},
		{STEP "    rows: rows\n", "[]", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *error = NULL;
		int err = take_scenario(cases[i].text, cases[i].paths, &error);

		if (err != (cases[i].taken ? 0 : -EINVAL) || !err != !error)
			fail_msg("%s, %s: %d, %s", cases[i].text, cases[i].paths, err,
				 error ? error : "");
	}
}

/* The second of two members, with two threads each, in a ladder up to 9 connections. */
static void steps_are_divided(void **state)
{
	static const struct {
		const char *step;
		uint32_t connections, threads; /* 0: refused */
		uint64_t rate;
	} cases[] = {
		{"\"member\":1,\"members\":2,\"threads\":2,\"connections\":9,\"rate\":0", 4, 2, 0},
		{"\"member\":0,\"members\":1,\"threads\":1,\"connections\":1,\"rate\":0", 1, 1, 0},
		{"\"member\":1,\"members\":2,\"threads\":1,\"connections\":3,\"rate\":7", 1, 1, 7},
		{"\"member\":1,\"members\":2,\"threads\":1,\"connections\":10,\"rate\":0", 0, 0, 0},
		{"\"member\":1,\"members\":2,\"threads\":2,\"connections\":3,\"rate\":0", 0, 0, 0},
		{"\"member\":1,\"members\":2,\"threads\":3,\"connections\":9,\"rate\":0", 0, 0, 0},
		{"\"member\":1,\"members\":3,\"threads\":1,\"connections\":9,\"rate\":0", 0, 0, 0},
		{"\"member\":2,\"members\":2,\"threads\":1,\"connections\":9,\"rate\":0", 0, 0, 0},
		{"\"member\":1,\"members\":2,\"threads\":1,\"connections\":9,\"rate\":-1", 0, 0, 0},
	};
	struct plan_inbox inbox = {0};
	struct options options = {0};
	struct scenario *scenario = NULL;
	autofree char *error = NULL;
	autojson json_t *plan = json_pack("{s:[sss], s:b, s:i, s:i, s:i}", "arguments",
					  "--threads=2", "--ladder=1,4,9", "http://h/", "sweep", 1,
					  "member", 1, "members", 2, "samples", 0);

	assert_int_equal(plan_take(&inbox, plan, &options, &scenario, &error), 0);
	assert_int_equal(options.load.connections, 4); /* of the largest step, for ceilings */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *reason = NULL, *text = NULL;
		autojson json_t *step = NULL;
		int err;

		assert_true(asprintf(&text, "{%s,\"warmup_ns\":5,\"interval_ns\":6}",
				     cases[i].step) > 0);
		step = json_loads(text, 0, NULL);
		assert_non_null(step);
		err = plan_take_step(&inbox, step, &options, &reason);
		assert_int_equal(err, cases[i].connections ? 0 : -EINVAL);
		if (err)
			continue;
		assert_int_equal(options.load.connections, cases[i].connections);
		assert_int_equal(options.run.threads, cases[i].threads);
		assert_int_equal(options.load.schedule.rate, cases[i].rate);
		assert_int_equal(options.load.warmup_ns, 5);
		assert_int_equal(options.load.interval_ns, 6);
	}
	scenario_free(scenario);
	options_clear(&options);
	plan_inbox_clear(&inbox);
}

static void ceilings_hold_for_all_that_is_asked(void **state)
{
	static const struct ceilings ceilings = {
		.rate = 100, .connections = 8, .duration_ns = 2000000000};
	static const struct {
		const char *arguments, *reason;
	} cases[] = {
		{"[\"--rate=200\", \"--duration=2s\", \"http://h/\"]", NULL},
		{"[\"--rate=200\", \"--duration=1s\", \"--warmup=1s\", \"http://h/\"]", NULL},
		{"[\"--rate=203\", \"--duration=2s\", \"http://h/\"]", "--max-rate 100"},
		{"[\"--rate=0..300\", \"--duration=2s\", \"http://h/\"]", "--max-rate 100"},
		{"[\"--duration=2s\", \"http://h/\"]", "--max-rate 100 needs a rate"},
		{"[\"--rate=2\", \"--connections=18\", \"--duration=2s\", \"http://h/\"]",
		 "9 connections are above its --max-connections 8"},
		{"[\"--rate=2\", \"--connections=8\", \"--duration=2s\", \"http://a/\", "
		 "\"http://b/\", "
		 "\"http://c/\"]",
		 "12 connections are above its --max-connections 8"},
		{"[\"--rate=2\", \"--retransmit=1ms\", \"--duration=2s\", \"--framing=dns\", "
		 "\"--payload=x\", \"udp://h:1\"]",
		 "no --retransmit"},
		{"[\"--rate=2\", \"--requests=4\", \"http://h/\"]", "needs a duration"},
		{"[\"--rate=2\", \"--duration=2s\", \"--cool-down=1ms\", \"http://h/\"]",
		 "--max-duration 2 s"},
		{"[\"--rate=2\", \"--duration=2s\", \"--warmup=9223372036s\", "
		 "\"--cool-down=9223372036s\", \"http://h/\"]",
		 "--max-duration 2 s"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *error = NULL;
		int err = take(cases[i].arguments, &ceilings, &error);

		if (err != (cases[i].reason ? -EINVAL : 0) ||
		    (err && !strstr(error, cases[i].reason)))
			fail_msg("%s: %d, %s", cases[i].arguments, err, error ? error : "");
	}
}

static void files_have_a_limit(void **state)
{
	struct plan_inbox inbox = {0};
	autofree char *zeros = malloc((1 << 22) + 1);
	autofree char *error = NULL;
	autojson json_t *file = NULL;
	int err = 0;

	assert_non_null(zeros);
	memset(zeros, 'A', 1 << 22);
	zeros[1 << 22] = '\0';
	file = json_pack("{s:i, s:i, s:s}", "file", 0, "length", 3 << 20, "base64", zeros);
	for (unsigned int i = 0; i < 32 && !err; i++)
		err = plan_take_file(&inbox, file, &error);
	assert_int_equal(err, -EINVAL);
	plan_inbox_clear(&inbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_those_sent_along),
		cmocka_unit_test(scenarios_name_files_that_were_sent),
		cmocka_unit_test(steps_are_divided),
		cmocka_unit_test(ceilings_hold_for_all_that_is_asked),
		cmocka_unit_test(files_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
