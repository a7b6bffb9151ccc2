// SPDX-License-Identifier: MIT
/* Messages as lines, and documents in parts: whole again however the channel cuts them. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/channel/channel.h"

#define DOCUMENT_SIZE (3 * CHANNEL_PART + 17)

/* Return a text of two-byte characters from an odd place on: each part ends within a character. */
static char *long_text(void)
{
	char *text = malloc(DOCUMENT_SIZE + 1);

	assert_non_null(text);
	text[0] = 'x';
	for (size_t i = 1; i + 1 < DOCUMENT_SIZE; i += 2)
		memcpy(text + i, "\xc2\xb5", 2);
	text[DOCUMENT_SIZE] = '\0';
	return text;
}

static void a_document_survives_in_parts(void **state)
{
	autofree char *text = long_text();
	struct channel_document document = {0};
	size_t at = 0, parts = 0;
	int whole = 0;

	while (!whole) {
		autofree char *line = channel_line(channel_document_part(text, &at, true));
		autojson json_t *message = channel_parse(line);

		assert_non_null(message);
		assert_true(strlen(line) < 1 << 20);
		assert_true(json_is_true(json_object_get(message, "final")));
		whole = channel_document_add(&document, message);
		parts++;
	}
	assert_int_equal(whole, 1);
	assert_int_equal(parts, 4);
	assert_string_equal(document.text, text);
	channel_document_clear(&document);
}

static void lines_are_whole_however_they_come(void **state)
{
	static const char text[] = "{\"type\":\"beat\"}\n\nMotd of the day\n{\"type\":\"ready\"}\n";
	static const char *const expected[] = {"beat", NULL, NULL, "ready"};

	for (size_t step = 1; step < sizeof(text); step++) {
		struct nats_input lines = {0};
		size_t taken = 0;

		for (size_t i = 0; i < sizeof(text) - 1; i += step) {
			size_t left = sizeof(text) - 1 - i;

			assert_int_equal(
				channel_lines_add(&lines, text + i, left < step ? left : step), 0);
			for (char *line; (line = channel_lines_take(&lines)); free(line)) {
				autojson json_t *message = channel_parse(line);

				assert_true(taken < 4);
				assert_int_equal(message != NULL, expected[taken] != NULL);
				if (message)
					assert_string_equal(channel_type(message), expected[taken]);
				taken++;
			}
		}
		assert_int_equal(taken, 4);
		nats_input_clear(&lines);
	}
}

static void a_line_without_end_is_refused(void **state)
{
	autofree char *bytes = calloc(1, 1 << 20);
	struct nats_input lines = {0};
	int err = 0;

	assert_non_null(bytes);
	memset(bytes, 'x', 1 << 20);
	for (unsigned int i = 0; i < 8 && !err; i++)
		err = channel_lines_add(&lines, bytes, 1 << 20);
	assert_int_equal(err, -EMSGSIZE);
	nats_input_clear(&lines);
}

static void what_is_no_message_is_none(void **state)
{
	static const char *const lines[] = {"", "[]", "{}", "{\"type\":1}", "{\"type\":\"a\"", "x"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_null(channel_parse(lines[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_survives_in_parts),
		cmocka_unit_test(lines_are_whole_however_they_come),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(what_is_no_message_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
