// SPDX-License-Identifier: MIT
/* lib/json/reader.c and lib/json/read.c: text that is too deep, too large, or cut off. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "sojourn/run.h"
#include "support/runs.h"

static char *repeat(const char *head, const char *piece, size_t count, size_t *ret_length)
{
	size_t start = strlen(head), size = strlen(piece);
	char *text = malloc(start + size * count + 1);

	assert_non_null(text);
	memcpy(text, head, start + 1);
	for (size_t i = 0; i < count; i++)
		memcpy(text + start + i * size, piece, size + 1);
	*ret_length = start + size * count;
	return text;
}

static void hostile_text_is_refused(void **state)
{
	static const struct {
		const char *head, *piece;
		size_t count;
		const char *error;
	} cases[] = {
		{"", "[", 100000, "maximum parsing depth reached"},
		{"", "{\"a\":", 100000, "maximum parsing depth reached"},
		{"[", "[],", 1 << 20, "objects and arrays"},
		{"", " ", (32 << 20) + 1, "longer than"},
		{SUPPORT_RUN_HEAD ",\"services_dropped\":", "9", 100000, "too big integer"},
		{SUPPORT_RUN_HEAD ",\"services\":[{}", ",{}", 1024, "expected"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = NULL, *error = NULL;
		size_t length;

		text = repeat(cases[i].head, cases[i].piece, cases[i].count, &length);
		support_refuse(text, length, &error);
		if (!strstr(error, cases[i].error))
			fail_msg("%s: %s", cases[i].error, error);
	}
}

static void too_many_elements_are_refused(void **state)
{
	autofree char *error = NULL, *text = NULL, *closed = NULL;
	size_t length;

	text = repeat(SUPPORT_RUN_HEAD ",\"services\":[{}", ",{}", 1024, &length);
	assert_true(asprintf(&closed, "%s]}", text) > 0);
	support_refuse(closed, strlen(closed), &error);
	assert_string_equal(error,
			    "services: is an array, must be an array of at most 1024 elements");
}

/* Every truncation of a document is refused, except if only its newline is missing. */
static void truncated_text_is_refused(void **state)
{
	autorun struct run *run = support_driver_run();
	autofree char *text = run_to_json(run);

	for (size_t length = 0; length + 1 < strlen(text); length++) {
		autofree char *error = NULL;

		support_refuse(text, length, &error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_text_is_refused),
		cmocka_unit_test(too_many_elements_are_refused),
		cmocka_unit_test(truncated_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
