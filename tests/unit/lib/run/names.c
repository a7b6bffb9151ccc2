// SPDX-License-Identifier: MIT
/* lib/run/names.c: every name exists, is usable as a member of the document, and is unique. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

static void check_names(const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_non_null(names[i]);
		assert_int_equal(strspn(names[i], "abcdefghijklmnopqrstuvwxyz_"), strlen(names[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

static void check_help(const char *const *help, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_non_null(help[i]);
		assert_true(strlen(help[i]) > 10 && !strchr(help[i], '\n'));
	}
}

static void tables_are_complete(void **state)
{
	check_names(run_stage_names, STAGE_COUNT);
	check_names(run_close_names, RUN_CLOSE_COUNT);
	check_names(run_loss_names, RUN_LOSS_COUNT);
	check_names(run_error_names, RUN_ERROR_COUNT);
	check_help(run_loss_help, RUN_LOSS_COUNT);
	check_help(run_error_help, RUN_ERROR_COUNT);
}

/* The pages run where lib/ does not, so they have a copy of these words. */
static void pages_have_the_same_words(void **state)
{
	autofclose FILE *file = fopen(UNIT_DIR "/../../web/values.js", "r");
	static char text[64 * 1024];
	char line[256];

	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	for (enum run_uncut i = 0; i < RUN_UNCUT_COUNT; i++) {
		snprintf(line, sizeof(line), "\t%s: \"%s\",\n", run_uncut_names[i],
			 run_uncut_help[i]);
		if (!strstr(text, line))
			fail_msg("web/values.js lacks %s", line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_complete),
		cmocka_unit_test(pages_have_the_same_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
