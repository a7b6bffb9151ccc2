// SPDX-License-Identifier: MIT
/* Where messages of LDAP are in a payload, and what is none. */
#include "driver/test.h"

#include <errno.h>
#include <string.h>

#include "payload/ldap.h"
#include "sojourn/cleanup.h"

#define BIND "\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00"

static int split(const char *text, size_t length, struct ldap_messages *ret_messages)
{
	return ldap_split(text, length, true, NULL, ret_messages);
}

#define SPLIT(text, messages) split(text, sizeof(text) - 1, messages)

static void test_messages(void **state)
{
	struct ldap_messages messages;

	assert_int_equal(SPLIT(BIND "\x30\x81\x06\x02\x02\x01\x00\x42\x00", &messages), 0);
	assert_int_equal(messages.count, 2);
	assert_int_equal(messages.list[0].head_length, 4);
	assert_memory_equal(messages.list[0].head, "\x30\x0f\x02\x04", 4);
	assert_int_equal(messages.list[0].rest_length, 9);
	assert_memory_equal(messages.list[0].rest, "\x60\x07\x02\x01\x03\x04\x00\x80\x00", 9);
	assert_memory_equal(messages.list[1].head, "\x30\x08\x02\x04", 4);
	assert_int_equal(messages.list[1].rest_length, 2);
}

/* The length gets a byte more where it has to. */
static void test_lengths(void **state)
{
	static const struct {
		size_t length;
		const char *head;
		size_t size;
	} cases[] = {{124, "\x30\x7f\x02\x04", 4},
		     {125, "\x30\x81\x80\x02\x04", 5},
		     {252, "\x30\x81\xff\x02\x04", 5},
		     {253, "\x30\x82\x01\x00\x02\x04", 6},
		     {65533, "\x30\x83\x01\x00\x00\x02\x04", 7}};
	static const char begin[] = {0x30, (char)0x84, 0, 0, 0, 0, 2, 1, 5};
	static char text[70000];
	struct ldap_messages messages;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t length = cases[i].length;

		memcpy(text, begin, sizeof(begin));
		for (int k = 0; k < 4; k++)
			text[2 + k] = (char)(length >> 8 * (3 - k));
		memset(text + 9, 'x', length - 3);
		assert_int_equal(split(text, 6 + length, &messages), 0);
		assert_int_equal(messages.list[0].head_length, cases[i].size);
		assert_memory_equal(messages.list[0].head, cases[i].head, cases[i].size);
		assert_int_equal(messages.list[0].rest_length, length - 3);
	}
}

static void test_fields(void **state)
{
	struct ldap_messages messages;

	assert_int_equal(SPLIT("\x30\x0a\x02\x01\x01\x60{{counter-be:4}}ab" BIND, &messages), 0);
	assert_int_equal(messages.count, 2);
	assert_int_equal(messages.list[0].rest_length, 1 + 16 + 2);
	/* Without fields these are its bytes. */
	assert_int_equal(ldap_split("\x30\x08\x02\x01\x01{{abc", 10, false, NULL, &messages), 0);
}

static void test_others(void **state)
{
	static const char *const texts[] = {"",
					    "x",
					    "\x30",
					    "\x30\x05\x02\x01\x01\x42",
					    "\x30\x05\x02\x01\x01\x42\x41\x41",
					    "\x31\x05\x02\x01\x01\x42\x41",
					    "\x30\x80\x02\x01\x01\x42\x41",
					    "\x30\x05\x04\x01\x01\x42\x41",
					    "\x30\x08\x02\x05\x01\x01\x01\x01\x01\x42",
					    "\x30\x05\x02\x01\x01\x50\x41",
					    "\x30\x09\x02\x04{{counter-be:4}}\x42\x41\x41",
					    "\x30\x05\x02\x01\x01{{counter-be:4}}",
					    "\x30\x06\x02\x01\x01{{nothing}}"};
	struct ldap_messages messages;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(split(texts[i], strlen(texts[i]), &messages), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
