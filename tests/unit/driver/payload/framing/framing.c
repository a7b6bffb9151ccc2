// SPDX-License-Identifier: MIT
/* Every framing on whole responses, in pieces, too short, too long and garbage. */
#include "payload/framing/framing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "driver/test.h"

#define BYTES(text) text, sizeof(text) - 1
#define SENT	    "ping!"

static struct framing parsed(const char *text)
{
	struct framing framing;
	char *error = NULL;

	assert_int_equal(framing_parse(text, &framing, &error), 0);
	return framing;
}

static const struct framing_sent sent = {SENT, sizeof(SENT) - 1};

static enum framing_verdict whole(const struct framing *framing, const char *data, size_t length)
{
	struct framing_state state = {0};

	return framing_feed(framing, &state, sent, data, length);
}

static enum framing_verdict bytewise(const struct framing *framing, const char *data, size_t length)
{
	enum framing_verdict verdict = FRAMING_MORE;
	struct framing_state state = {0};

	for (size_t i = 0; i < length && verdict == FRAMING_MORE; i++)
		verdict = framing_feed(framing, &state, sent, data + i, 1);
	return verdict;
}

struct example {
	const char *framing;
	const char *bytes;
	size_t length;
	enum framing_verdict verdict;
};

/* clang-format off */
static const struct example examples[] = {
	{"fixed:4", BYTES("abcd"), FRAMING_COMPLETE},
	{"fixed:4", BYTES("abc"), FRAMING_MORE},
	{"delimiter:\\r\\n", BYTES("PONG\r\n"), FRAMING_COMPLETE},
	{"delimiter:\\r\\n", BYTES("PONG\r\r\n"), FRAMING_COMPLETE},
	{"delimiter:\\r\\n", BYTES("PO\nNG\r"), FRAMING_MORE},
	{"delimiter:\\x00", BYTES("a\0"), FRAMING_COMPLETE},
	/* The match that fails at its third byte contains the start of the next one. */
	{"delimiter:aab", BYTES("aaab"), FRAMING_COMPLETE},
	{"delimiter:abab.", BYTES("abaabababab."), FRAMING_COMPLETE},
	{"length:1", BYTES("\3abc"), FRAMING_COMPLETE},
	{"length:1", BYTES("\0"), FRAMING_COMPLETE},
	{"length:2,be", BYTES("\0\3abc"), FRAMING_COMPLETE},
	{"length:2,le", BYTES("\3\0abc"), FRAMING_COMPLETE},
	{"length:4,be", BYTES("\0\0\0\2ab"), FRAMING_COMPLETE},
	{"length:4", BYTES("\0\0\0\2a"), FRAMING_MORE},
	{"length:8,le", BYTES("\1\0\0\0\0\0\0\0a"), FRAMING_COMPLETE},
	{"length:2,be,offset=3", BYTES("xyz\0\1a"), FRAMING_COMPLETE},
	{"length:2,be,adjust=-2", BYTES("\0\3a"), FRAMING_COMPLETE}, /* the length counts itself */
	{"length:2,be,adjust=-2", BYTES("\0\2"), FRAMING_COMPLETE},
	{"length:2,be,adjust=-2", BYTES("\0\1"), FRAMING_MALFORMED},
	{"length:2,be,offset=1,adjust=1", BYTES("x\0\1ab"), FRAMING_COMPLETE},
	{"length:8,be", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff"), FRAMING_MALFORMED},
	{"ber", BYTES("\x04\0"), FRAMING_COMPLETE},
	{"ber", BYTES("\x30\3abc"), FRAMING_COMPLETE},
	{"ber", BYTES("\x30\x82\0\2ab"), FRAMING_COMPLETE},
	{"ber", BYTES("\x1f\x81\x01\1a"), FRAMING_COMPLETE}, /* a tag of several bytes */
	{"ber", BYTES("\x30\x80"), FRAMING_MALFORMED},
	{"ber", BYTES("\x30\x89"), FRAMING_MALFORMED},
	{"ber", BYTES("\x30\x88\xff\xff\xff\xff\xff\xff\xff\xff"), FRAMING_MALFORMED},
	/* A bind: success, invalidCredentials; its message ID has two bytes. */
	{"ldap", BYTES("\x30\x0c\2\1\1\x61\7\x0a\1\0\4\0\4\0"), FRAMING_COMPLETE},
	{"ldap", BYTES("\x30\x0d\2\2\1\1\x61\7\x0a\1\x31\4\0\4\0"), FRAMING_REJECTED},
	/* A search: an entry, a reference, the result. */
	{"ldap", BYTES("\x30\5\2\1\2\x64\0"), FRAMING_MORE},
	{"ldap", BYTES("\x30\5\2\1\2\x64\0" "\x30\5\2\1\2\x73\0"
		       "\x30\x0c\2\1\2\x65\7\x0a\1\0\4\0\4\0"), FRAMING_COMPLETE},
	{"ldap", BYTES("\x30\x0c\2\1\1\x6f\7\x0a\1\6\4\0\4\0"), FRAMING_COMPLETE}, /* compareTrue */
	{"ldap", BYTES("HTTP/1.1"), FRAMING_MALFORMED},
	{"ldap", BYTES("\x30\0"), FRAMING_MALFORMED},
	{"ldap", BYTES("\x30\3\2\1\1"), FRAMING_MALFORMED},
	{"ldap", BYTES("\x30\5\2\1\1\x61\0"), FRAMING_MALFORMED},
	{"resp", BYTES("+PONG\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("-ERR no\r\n"), FRAMING_REJECTED},
	{"resp", BYTES(":-12\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("$3\r\na\r\n\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("$0\r\n\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("$-1\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("*-1\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("*0\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("*2\r\n*1\r\n:1\r\n-in it\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("*2\r\n:1\r\n"), FRAMING_MORE},
	{"resp", BYTES("%1\r\n+a\r\n+b\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES(">1\r\n+aside\r\n+PONG\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("|1\r\n+a\r\n+b\r\n_\r\n"), FRAMING_COMPLETE},
	{"resp", BYTES("!3\r\nERR\r\n"), FRAMING_REJECTED},
	{"resp", BYTES("$3\r\nabcd\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("$3\r\nabc\n\r"), FRAMING_MALFORMED},
	{"resp", BYTES("$\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("$-\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("$-2\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("$-11\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("$3x\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("*99999999999\r\n"), FRAMING_MALFORMED},
	{"resp", BYTES("+PONG\n"), FRAMING_MALFORMED},
	{"resp", BYTES("PONG\r\n"), FRAMING_MALFORMED},
	{"echo", BYTES(SENT), FRAMING_COMPLETE},
	{"echo", BYTES("pin"), FRAMING_MORE},
	{"echo", BYTES("pong!"), FRAMING_MALFORMED},
	{"close", BYTES("anything"), FRAMING_MORE},
};
/* clang-format on */

static void test_examples(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct example *e = &examples[i];
		struct framing framing = parsed(e->framing);

		if (whole(&framing, e->bytes, e->length) != e->verdict ||
		    bytewise(&framing, e->bytes, e->length) != e->verdict)
			fail_msg("example %zu, %s: %d in one piece, %d byte by byte, not %d", i,
				 e->framing, whole(&framing, e->bytes, e->length),
				 bytewise(&framing, e->bytes, e->length), e->verdict);
	}
}

/* Bytes after a complete response belong to no request. */
static void test_too_long(void **unused)
{
	char longer[64];

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct example *e = &examples[i];
		struct framing framing = parsed(e->framing);

		if (e->verdict != FRAMING_COMPLETE && e->verdict != FRAMING_REJECTED)
			continue;
		assert_in_range(e->length, 1, sizeof(longer) - 1);
		memcpy(longer, e->bytes, e->length);
		longer[e->length] = 'x';
		if (whole(&framing, longer, e->length + 1) != FRAMING_MALFORMED)
			fail_msg("example %zu, %s: a byte more", i, e->framing);
	}
}

static void test_replies(void **unused)
{
	struct framing framing = parsed("resp");

	(void)unused;
	framing.replies = 3;
	assert_int_equal(whole(&framing, BYTES("+OK\r\n+OK\r\n")), FRAMING_MORE);
	assert_int_equal(whole(&framing, BYTES("+OK\r\n+OK\r\n:1\r\n")), FRAMING_COMPLETE);
	assert_int_equal(bytewise(&framing, BYTES("+OK\r\n-NO\r\n:1\r\n")), FRAMING_REJECTED);
	assert_int_equal(whole(&framing, BYTES("+OK\r\n+OK\r\n:1\r\n+OK\r\n")), FRAMING_MALFORMED);
}

static void test_errors(void **unused)
{
	static const char *const wrong[] = {
		"",
		"fixe:4",
		"fixed",
		"fixed:0",
		"fixed:-1",
		"fixed:x",
		"delimiter",
		"delimiter:",
		"delimiter:\\q",
		"delimiter:\\x1",
		"length",
		"length:3",
		"length:4,xe",
		"length:4,offset=5000",
		"length:4,adjust=x",
		"length:4,,",
		"length:4,offset=-1",
		"ber:1",
		"resp:2",
		"echo:",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		autofree char *error = NULL;
		struct framing framing;

		if (framing_parse(wrong[i], &framing, &error) != -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
		assert_non_null(strstr(error, "--framing: "));
	}
}

/* Expect this reason for malformed data, in pieces of any size; the last piece counts. */
static void tell(const char *framing_text, const char *data, size_t length, const char *expected)
{
	const struct framing framing = parsed(framing_text);

	for (size_t piece = 1; piece <= length; piece++) {
		enum framing_verdict verdict = FRAMING_MORE;
		struct framing_state state = {0};
		char told[128] = "";
		size_t done = 0;

		while (verdict == FRAMING_MORE && done < length) {
			size_t next = length - done < piece ? length - done : piece;

			verdict = framing_feed(&framing, &state, sent, data + done, next);
			done += next;
		}
		assert_int_equal(verdict, FRAMING_MALFORMED);
		framing_tell(&framing, &state, done, told, sizeof(told));
		assert_string_equal(told, expected);
	}
}

static void test_told(void **unused)
{
	static const char resp[] = "*1\r\n$2\r\nabc\r\n";
	struct framing_state state = {0};
	struct framing framing;
	char echo[] = SENT, told[128] = "";

	(void)unused;
	tell("resp", resp, sizeof(resp) - 1, "by byte 10 it is not what --framing=resp allows");
	tell("ldap", "xyz", 3, "by byte 0 it is not what --framing=ldap allows");
	tell("length:2,adjust=-9", "\0\1ab", 4, "by byte 1 it is not what --framing=length allows");
	echo[2] ^= 1;
	tell("echo", echo, sizeof(echo) - 1, "by byte 2 it is not what --framing=echo allows");
	framing = parsed("fixed:5");
	assert_int_equal(framing_feed(&framing, &state, sent, "1234567", 7), FRAMING_MALFORMED);
	framing_tell(&framing, &state, 7, told, sizeof(told));
	assert_string_equal(told, "2 bytes after its end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples), cmocka_unit_test(test_told),
		cmocka_unit_test(test_too_long), cmocka_unit_test(test_replies),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
