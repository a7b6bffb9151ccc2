// SPDX-License-Identifier: MIT
/* lib/base/log.c: the text on standard error. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sojourn/cleanup.h"
#include "sojourn/log.h"

/* Standard error goes to this file while a test runs. */
static FILE *captured;
static int saved_stderr = -1;

static int capture(void **state)
{
	captured = tmpfile();
	saved_stderr = dup(STDERR_FILENO);
	return captured && dup2(fileno(captured), STDERR_FILENO) >= 0 ? 0 : -1;
}

static int release(void **state)
{
	fflush(stderr);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	fclose(captured);
	return 0;
}

static void expect_output(const char *expected)
{
	char text[4096] = "";
	size_t length;

	fflush(stderr);
	assert_int_equal(fseek(captured, 0, SEEK_SET), 0);
	length = fread(text, 1, sizeof(text) - 1, captured);
	assert_int_equal(ferror(captured), 0);
	text[length] = '\0';
	assert_string_equal(text, expected);
}

static void every_message_is_one_line(void **state)
{
	log_open("sojourn-test", false);
	assert_false(log_is_verbose());
	log_error("cannot open %s", "x");
	log_warn("%d left", 3);
	log_debug("not shown");
	log_error("two\nlines");
	expect_output("sojourn-test: cannot open x\n"
		      "sojourn-test: warning: 3 left\n"
		      "sojourn-test: two lines\n");
}

static void debug_shows_when_verbose(void **state)
{
	log_open("sojourn-test", true);
	assert_true(log_is_verbose());
	log_debug("shown");
	expect_output("sojourn-test: debug: shown\n");
}

static void errno_is_explained_and_returned(void **state)
{
	log_open("sojourn-test", false);
	assert_int_equal(log_errno(-ENOENT, "cannot read %s", "f"), -ENOENT);
	expect_output("sojourn-test: cannot read f: No such file or directory\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_message_is_one_line, capture, release),
		cmocka_unit_test_setup_teardown(debug_shows_when_verbose, capture, release),
		cmocka_unit_test_setup_teardown(errno_is_explained_and_returned, capture, release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
