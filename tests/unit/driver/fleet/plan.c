// SPDX-License-Identifier: MIT
/* Of a plan, an agent takes the options of a run and the files that were sent along, and no others. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/ceilings.h"
#include "fleet/plan.h"
#include "sojourn/cleanup.h"

/* Take a plan as a coordinator sends it, with these arguments, after a file of one row. */
static int take(const char *arguments, const struct ceilings *ceilings, char **ret_error)
{
	struct plan_inbox inbox = {0};
	struct options options = {0};
	struct scenario *scenario = NULL;
	autojson json_t *file =
		json_pack("{s:i, s:i, s:s}", "file", 0, "length", 4, "base64", "cm93Cg==");
	autojson json_t *list = json_loads(arguments, 0, NULL);
	autojson json_t *plan = json_pack("{s:O, s:i, s:i, s:i, s:i}", "arguments", list, "member",
					  1, "members", 2, "samples", 0, "patience_ms", 5000);
	int err;

	assert_non_null(plan);
	assert_int_equal(plan_take_file(&inbox, file, ret_error), 0);
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

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *error = NULL;
		int err = take(cases[i].arguments, NULL, &error);

		if (err != (cases[i].taken ? 0 : -EINVAL) || !err != !error)
			fail_msg("%s: %d, %s", cases[i].arguments, err, error ? error : "");
	}
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

	(void)state;
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

	(void)state;
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
		cmocka_unit_test(ceilings_hold_for_all_that_is_asked),
		cmocka_unit_test(files_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
