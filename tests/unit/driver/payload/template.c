// SPDX-License-Identifier: MIT
/* The values of a template's fields, and refused templates. */
#include "payload/template.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "driver/test.h"

static const char rows_text[] = "anna,1\r\nbob,2\n\ncarla";

static void read_rows(struct template_rows *ret_rows)
{
	assert_int_equal(template_rows_take(strdup(rows_text), strlen(rows_text), ret_rows), 0);
}

static int parse(const char *text, enum template_form form, const struct template_rows *rows,
		 struct template *ret_template)
{
	autofree char *error = NULL;
	int err;

	*ret_template = (struct template){0};
	err = template_add(ret_template, "--test", form, text, strlen(text), rows, &error);
	if (err == -EINVAL)
		assert_ptr_equal(strstr(error, "--test: "), error);
	return err;
}

static char *rendered(struct template *template, uint64_t number, char *buffer, size_t size)
{
	uint64_t random = number;
	struct template_turn turn = {.number = number, .random = &random};
	size_t length;

	assert_true(template->max < size);
	length = template_render(template, &turn, buffer);
	assert_true(length <= template->max);
	buffer[length] = '\0';
	template_clear(template);
	return buffer;
}

struct example {
	const char *text;
	uint64_t number;
	const char *result;
};

static const struct example examples[] = {
	{"plain", 7, "plain"},
	{"", 7, ""},
	{"{\"a\":{\"b\":1}}", 7, "{\"a\":{\"b\":1}}"},
	{"{{counter}}", 7, "7"},
	{"a{{counter:4}}b{{counter}}", 7, "a0007b7"},
	{"{{counter:2}}", 12345, "12345"},
	{"{{counter}}", UINT64_MAX, "18446744073709551615"},
	{"{{counter-be:4}}", 0x41424344, "ABCD"},
	{"{{counter-le:2}}", 0x4142, "BA"},
	{"{{random:5-5}}", 1, "5"},
	{"{{row}}", 1, "anna,1"},
	{"{{row}}", 2, "bob,2"},
	{"{{row}}", 3, ""},
	{"{{row}}", 4, "carla"},
	{"{{row}}", 5, "anna,1"},
	{"<{{row:1}}|{{row:2}}|{{row:3}}>", 1, "<anna|1|>"},
	{"<{{row:1}}|{{row:2}}>", 4, "<carla|>"},
};

static void test_examples(void **unused)
{
	struct template_rows rows;
	char buffer[256];

	(void)unused;
	read_rows(&rows);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct template template;

		assert_int_equal(parse(examples[i].text, TEMPLATE_BYTES, &rows, &template), 0);
		assert_string_equal(rendered(&template, examples[i].number, buffer, sizeof(buffer)),
				    examples[i].result);
	}
	template_rows_clear(&rows);
}

static void assert_matches(const char *text, const char *pattern)
{
	struct template template;
	char buffer[512];
	regex_t regex;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	for (uint64_t number = 1; number <= 1000; number++) {
		assert_int_equal(parse(text, TEMPLATE_BYTES, NULL, &template), 0);
		rendered(&template, number, buffer, sizeof(buffer));
		if (regexec(&regex, buffer, 0, NULL, 0))
			fail_msg("%s gave '%s'", text, buffer);
	}
	regfree(&regex);
}

static void test_patterns(void **unused)
{
	(void)unused;
	assert_matches("{{uuid}}",
		       "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$");
	assert_matches("{{random:98-101}}", "^(98|99|100|101)$");
	assert_matches("{{random-hex:33}}", "^[0-9a-f]{33}$");
	assert_matches("{{timestamp}}", "^1[0-9]{9}$");
	assert_matches("{{timestamp-ms}}", "^1[0-9]{12}$");
	assert_matches("{{timestamp-ns}}", "^1[0-9]{18}$");
}

/* Every value of a range occurs, about as often as the others. */
static void test_random_is_even(void **unused)
{
	uint64_t random = 1, counts[10] = {0};
	struct template_turn turn = {.number = 1, .random = &random};
	struct template template;
	char digit[32];

	(void)unused;
	assert_int_equal(parse("{{random:0-9}}", TEMPLATE_BYTES, NULL, &template), 0);
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(template_render(&template, &turn, digit), 1);
		counts[digit[0] - '0']++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		assert_in_range(counts[i], 9500, 10500); /* 5 standard deviations */
	template_clear(&template);
}

static void test_forms(void **unused)
{
	struct template_rows rows;
	struct template template;
	char buffer[256];

	(void)unused;
	assert_int_equal(template_rows_take(strdup("a b/\xc3\xa4?"), 7, &rows), 0);
	assert_int_equal(parse("/x y?{{row}}", TEMPLATE_URL, &rows, &template), 0);
	assert_string_equal(rendered(&template, 1, buffer, sizeof(buffer)),
			    "/x y?a%20b%2F%C3%A4%3F");
	assert_int_equal(parse("{{counter}}{{", TEMPLATE_LITERAL, NULL, &template), 0);
	assert_false(template.varies);
	assert_string_equal(rendered(&template, 1, buffer, sizeof(buffer)), "{{counter}}{{");
	template_rows_clear(&rows);
	assert_int_equal(template_rows_take(strdup(""), 0, &rows), -EINVAL);
}

static void test_what_varies(void **unused)
{
	struct template template;

	(void)unused;
	assert_int_equal(parse("{{random:1-2}}", TEMPLATE_BYTES, NULL, &template), 0);
	assert_true(template.varies && !template.unique);
	template_clear(&template);
	assert_int_equal(parse("{{uuid}}", TEMPLATE_BYTES, NULL, &template), 0);
	assert_true(template.varies && template.unique);
	template_clear(&template);
}

static void test_errors(void **unused)
{
	static const char *const wrong[] = {
		"{{",
		"{{}}",
		"{{count}}",
		"{{counter",
		"{{counter:0}}",
		"{{counter:21}}",
		"{{counter-be:3}}",
		"{{counter-be}}",
		"{{random}}",
		"{{random:5}}",
		"{{random:5-4}}",
		"{{random:-5}}",
		"{{uuid:1}}",
		"{{row}}",
		"{{random-hex:0}}",
		"{{random-bytes:70000}}",
	};
	struct template template;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse(wrong[i], TEMPLATE_BYTES, NULL, &template) != -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
		template_clear(&template);
	}
	assert_int_equal(parse("{{random-bytes:2}}", TEMPLATE_LINE, NULL, &template), -EINVAL);
	template_clear(&template);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),       cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_random_is_even), cmocka_unit_test(test_forms),
		cmocka_unit_test(test_what_varies),    cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
