// SPDX-License-Identifier: MIT
/* The explanation of a first failure: names of codes, bytes as received, cut to size. */
#include "driver/test.h"

#include <errno.h>
#include <string.h>

#include "payload/detail.h"
#include "transport/link.h"

static void test_codes(void **state)
{
	char text[96] = "";

	detail_add_code(text, sizeof(text), -EMFILE);
	assert_string_equal(text, "too many open files (EMFILE)");
	text[0] = '\0';
	detail_add_code(text, sizeof(text), -ENFILE);
	assert_string_equal(text, "file table overflow (ENFILE)");
}

static void test_bytes(void **state)
{
	char text[96] = "";

	detail_add_bytes(text, sizeof(text), "a\r\n\0\xff'", 6);
	assert_string_equal(text, "'a\\r\\n\\x00\\xff''");
	text[0] = '\0';
	detail_add_bytes(text, sizeof(text), "123456789012345678901234567890", 24);
	assert_string_equal(text, "'123456789012345678901234'");
	text[0] = '\0';
	detail_add_bytes(text, sizeof(text), "123456789012345678901234567890", 25);
	assert_string_equal(text, "'123456789012345678901234…'");
}

/* No character is cut in half, at any size, and nothing follows. */
static void test_cut(void **state)
{
	for (size_t size = 1; size < 12; size++) {
		char text[16];

		memset(text, 0x55, sizeof(text));
		text[0] = '\0';
		detail_add(text, size, "%s", "äöü€");
		assert_true(strlen(text) < size);
		assert_memory_equal(text, "äöü€", strlen(text));
		assert_int_not_equal((unsigned char)"äöü€"[strlen(text)] & 0xc0, 0x80);
		assert_int_equal(text[size], 0x55);
	}
}

static void test_received(void **state)
{
	char text[96] = "";

	detail_add_received(text, sizeof(text), 0);
	detail_add(text, sizeof(text), "|");
	detail_add_received(text, sizeof(text), 1);
	assert_string_equal(text,
			    "nothing of the response had come|1 byte of the response had come");
}

/* A kind is the name of one code in docs/run-document.md, and of no other. */
static void test_kinds(void **state)
{
	static const struct {
		int code;
		enum run_error connect, transfer;
	} rows[] = {
		{-ECONNREFUSED, RUN_ERROR_REFUSED, RUN_ERROR_TRANSFER_OTHER},
		{-ENOENT, RUN_ERROR_REFUSED, RUN_ERROR_TRANSFER_OTHER},
		{-EADDRNOTAVAIL, RUN_ERROR_ADDRESS_UNAVAILABLE, RUN_ERROR_TRANSFER_OTHER},
		{-EMFILE, RUN_ERROR_TOO_MANY_FILES, RUN_ERROR_TRANSFER_OTHER},
		{-ENFILE, RUN_ERROR_TOO_MANY_FILES, RUN_ERROR_TRANSFER_OTHER},
		{-ETIMEDOUT, RUN_ERROR_CONNECT_TIMEOUT, RUN_ERROR_TIMEOUT},
		{-ECONNRESET, RUN_ERROR_CONNECT_OTHER, RUN_ERROR_RESET},
		{-EPIPE, RUN_ERROR_CONNECT_OTHER, RUN_ERROR_RESET},
		{-EHOSTUNREACH, RUN_ERROR_CONNECT_OTHER, RUN_ERROR_TRANSFER_OTHER},
		{-ECONNABORTED, RUN_ERROR_CONNECT_OTHER, RUN_ERROR_TRANSFER_OTHER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct link link = {0};

		assert_int_equal(link_connect_failure(&link, rows[i].code), rows[i].connect);
		assert_int_equal(link.code, rows[i].code);
		assert_int_equal(link_transfer_failure(&link, rows[i].code), rows[i].transfer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes), cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_cut),   cmocka_unit_test(test_received),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
