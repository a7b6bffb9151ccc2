// SPDX-License-Identifier: MIT
/* Suggestions for mistyped words, and words without one. */
#include "unit.h"

#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/suggest.h"

static const char *const names[] = {"connections", "connect-rate", "rate",    "requests",
				    "json",	   "port",	   "observe", "report"};

static const char *suggest(const char *typed)
{
	struct suggestion suggestion = {0};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		suggest_try(&suggestion, typed, strlen(typed), names[i]);
	return suggestion.best ? suggestion.best : "";
}

static void test_suggest(void **state)
{
	static const struct {
		const char *typed, *expected;
	} rows[] = {
		{"conections", "connections"},
		{"conenctions", "connections"},
		{"connectionss", "connections"},
		{"request", "requests"},
		{"jsno", "json"},
		{"prot", "port"},
		{"obsrve", "observe"},
		{"reprot", "report"},
		/* Two of four letters differ: "data" is not a mistyped "rate". */
		{"data", ""},
		{"xyz", ""},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(suggest(rows[i].typed), rows[i].expected);
}

/* Only the given characters count: a value follows. */
static void test_length(void **state)
{
	struct suggestion suggestion = {0};

	suggest_try(&suggestion, "jsn=out", 3, "json");
	assert_string_equal(suggestion.best, "json");
	suggest_try(&suggestion, "jsn=out", 3, "jso");
	assert_string_equal(suggestion.best, "json");
}

static void test_too_long(void **state)
{
	static const char longest[] = "a-word-that-is-longer-than-every-option-of-ours";
	struct suggestion suggestion = {0};

	suggest_try(&suggestion, longest, strlen(longest), longest);
	assert_null(suggestion.best);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suggest),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
