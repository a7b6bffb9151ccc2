// SPDX-License-Identifier: MIT
/* Operations of a NATS server: whole however they come, and what no server sends. */
#include "driver/test.h"

#include <errno.h>
#include <string.h>

#include "nats/text.h"
#include "sojourn/cleanup.h"

static void operations_are_whole_however_they_come(void **state)
{
	static const char bytes[] = "INFO {\"max_payload\":1048576}\r\n+OK\r\nPING\r\n"
				    "MSG a.b 1 5\r\nPO\r\nG\r\nmsg\tc  2 reply 0\r\n\r\n"
				    "-ERR 'Authorization Violation'\r\nPONG\r\n";
	static const struct {
		enum nats_verb verb;
		const char *text, *payload;
	} expected[] = {
		{NATS_INFO, "{\"max_payload\":1048576}", ""},
		{NATS_OK, "", ""},
		{NATS_PING, "", ""},
		{NATS_MSG, "a.b", "PO\r\nG"},
		{NATS_MSG, "c", ""},
		{NATS_ERR, "'Authorization Violation'", ""},
		{NATS_PONG, "", ""},
	};

	for (size_t step = 1; step < sizeof(bytes); step++) {
		struct nats_input input = {0};
		struct nats_operation operation;
		size_t taken = 0;

		for (size_t at = 0; at < sizeof(bytes) - 1; at += step) {
			size_t left = sizeof(bytes) - 1 - at;

			assert_int_equal(
				nats_input_add(&input, bytes + at, left < step ? left : step), 0);
			while (nats_input_take(&input, &operation) == 1) {
				assert_true(taken < ARRAY_SIZE(expected));
				assert_int_equal(operation.verb, expected[taken].verb);
				assert_int_equal(operation.text_length,
						 strlen(expected[taken].text));
				assert_memory_equal(operation.text, expected[taken].text,
						    operation.text_length);
				assert_int_equal(operation.payload_length,
						 strlen(expected[taken].payload));
				if (operation.payload_length)
					assert_memory_equal(operation.payload,
							    expected[taken].payload,
							    operation.payload_length);
				taken++;
			}
		}
		assert_int_equal(taken, ARRAY_SIZE(expected));
		nats_input_clear(&input);
	}
}

static void what_no_server_sends_is_refused(void **state)
{
	static const char *const wrong[] = {
		"\r\n",
		"HTTP/1.1 400 Bad Request\r\n",
		"MSG a 1\r\n",
		"MSG a 1 b 1 1\r\n",
		"MSG a 1 -1\r\n",
		"MSG a 1 1x\r\n",
		"MSG a 1 99999999999999999999\r\n",
		"MSG a 1 67108865\r\n",
		"MSG a 1 1\r\nabc",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct nats_input input = {0};
		struct nats_operation operation;

		assert_int_equal(nats_input_add(&input, wrong[i], strlen(wrong[i])), 0);
		assert_int_equal(nats_input_take(&input, &operation), -EBADMSG);
		nats_input_clear(&input);
	}
}

static void a_line_without_end_is_refused(void **state)
{
	struct nats_input input = {0};
	struct nats_operation operation;
	char bytes[4096];
	int taken = 0;

	memset(bytes, 'x', sizeof(bytes));
	for (unsigned int i = 0; i < 100 && !taken; i++) {
		assert_int_equal(nats_input_add(&input, bytes, sizeof(bytes)), 0);
		taken = nats_input_take(&input, &operation);
	}
	assert_int_equal(taken, -EBADMSG);
	nats_input_clear(&input);
}

static void subjects_have_no_blanks(void **state)
{
	assert_true(nats_is_subject("sojourn.to.*"));
	assert_false(nats_is_subject(""));
	assert_false(nats_is_subject("a b"));
	assert_false(nats_is_subject("a\r\nPUB b 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_are_whole_however_they_come),
		cmocka_unit_test(what_no_server_sends_is_refused),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(subjects_have_no_blanks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
