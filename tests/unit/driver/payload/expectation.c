// SPDX-License-Identifier: MIT
/* Expectations of responses: statuses, and a text in a body cut anywhere. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "payload/expectation.h"
#include "sojourn/cleanup.h"

static void test_status(void **state)
{
	struct expectation_search search = {0};
	struct expectation expectation = {0};
	autofree char *error = NULL;

	assert_int_equal(expectation_judge(&expectation, &search, 200), VERDICT_GOOD);
	assert_int_equal(expectation_judge(&expectation, &search, 399), VERDICT_GOOD);
	assert_int_equal(expectation_judge(&expectation, &search, 400), VERDICT_BAD_STATUS);
	assert_int_equal(expectation_parse_status(&expectation, "204,404", &error), 0);
	assert_int_equal(expectation_judge(&expectation, &search, 200), VERDICT_UNEXPECTED);
	assert_int_equal(expectation_judge(&expectation, &search, 404), VERDICT_GOOD);
	assert_int_equal(expectation_judge(&expectation, &search, 204), VERDICT_GOOD);
	/* Statuses of repeated options add up; inherited ones are replaced. */
	assert_int_equal(expectation_parse_status(&expectation, "200", &error), 0);
	assert_int_equal(expectation_judge(&expectation, &search, 204), VERDICT_GOOD);
	assert_int_equal(expectation_judge(&expectation, &search, 200), VERDICT_GOOD);
	expectation.inherited = true;
	assert_int_equal(expectation_parse_status(&expectation, "201", &error), 0);
	assert_int_equal(expectation_parse_status(&expectation, "202", &error), 0);
	assert_int_equal(expectation_judge(&expectation, &search, 204), VERDICT_UNEXPECTED);
	assert_int_equal(expectation_judge(&expectation, &search, 201), VERDICT_GOOD);
	assert_int_equal(expectation_judge(&expectation, &search, 202), VERDICT_GOOD);
	expectation_clear(&expectation);
}

static void test_refusals(void **state)
{
	static const char *const wrong[] = {"", "200,", "2xx", "99", "600", "200;204"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct expectation expectation = {0};
		autofree char *error = NULL;

		assert_int_equal(expectation_parse_status(&expectation, wrong[i], &error), -EINVAL);
		assert_non_null(strstr(error, "--expect-status"));
		expectation_clear(&expectation);
	}
}

/* Whether the search agrees with strstr(), the body being fed in pieces of every size. */
static void compare(const char *text, const char *body)
{
	struct expectation expectation = {0};
	autofree char *error = NULL;
	size_t length = strlen(body);

	assert_int_equal(expectation_parse_body(&expectation, text, &error), 0);
	for (size_t piece = 1; piece <= length + 1; piece++) {
		struct expectation_search search = {0};

		for (size_t i = 0; i < length; i += piece)
			expectation_feed(&expectation, &search, body + i,
					 i + piece < length ? piece : length - i);
		assert_int_equal(expectation_judge(&expectation, &search, 200),
				 strstr(body, text) ? VERDICT_GOOD : VERDICT_UNEXPECTED);
	}
	expectation_clear(&expectation);
}

static void test_body(void **state)
{
	compare("ok", "ok");
	compare("ok", "book");
	compare("ok", "oook");
	compare("ok", "");
	compare("ok", "o k");
	compare("aabaaab", "aabaabaaab");
	compare("aabaaab", "aabaaaabaaab");
	compare("abab", "abaabab");
}

/* Texts and bodies of two letters: every partial match. */
static void test_random_bodies(void **state)
{
	unsigned int seed = 1;
	char text[8], body[40];

	for (int round = 0; round < 3000; round++) {
		size_t length = 1 + (size_t)rand_r(&seed) % 6;

		for (size_t i = 0; i < sizeof(body); i++)
			body[i] = "ab"[rand_r(&seed) >> 8 & 1];
		for (size_t i = 0; i < length; i++)
			text[i] = "ab"[rand_r(&seed) >> 8 & 1];
		text[length] = '\0';
		body[rand_r(&seed) % (int)sizeof(body)] = '\0';
		compare(text, body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_body),
		cmocka_unit_test(test_random_bodies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
