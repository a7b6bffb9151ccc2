// SPDX-License-Identifier: MIT
/* The part of a foreign text that may reach a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sojourn/cleanup.h"
#include "sojourn/text.h"

static const struct {
	const char *text, *printable;
} cases[] = {
	{"", ""},
	{"nginx", "nginx"},
	{"a\tb\r\nc\x7f", "a?b??c?"},
	{"\x1b[31mred", "?[31mred"},
	/* C1: U+009B starts a command as ESC [ does; as a lone byte it is no UTF-8. */
	{"\xc2\x9b"
	 "31m",
	 "?31m"},
	{"\x9b"
	 "31m",
	 "?31m"},
	{"\xc2\x85next", "?next"},
	/* Right-to-left override and isolates, zero-width space, byte order mark, tags. */
	{"\xe2\x80\xaegpj.exe", "?gpj.exe"},
	{"\xe2\x81\xa6x\xe2\x81\xa9", "?x?"},
	{"a\xe2\x80\x8b"
	 "b\xef\xbb\xbf",
	 "a?b?"},
	{"\xf3\xa0\x80\xa1", "?"},
	{"\xe2\x80\xa8line", "?line"},
	/* Overlong, surrogate, beyond the last, cut off, alone. */
	{"\xc0\x9b", "??"},
	{"\xed\xa0\x80", "???"},
	{"\xf4\x90\x80\x80", "????"},
	{"\xe2\x80", "??"},
	{"\xff\xfe", "??"},
	{"M\xc3\xbcller \xe2\x86\x92 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
	 "M\xc3\xbcller \xe2\x86\x92 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"},
};

static void test_printable(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];

		strcpy(text, cases[i].text);
		text_make_printable(text, '?');
		assert_string_equal(text, cases[i].printable);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_printable)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
