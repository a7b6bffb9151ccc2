// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/postgres.h, the kernel's own source: where logins, queries and their replies begin and end, however
 * their bytes are cut.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "commands.h"

#include "../../bpf/protocol/postgres.h"

/* The client's side, which the server's looks at. */
static struct command_side client;

static int request(struct command_side *s, __u8 byte)
{
	return postgres_request(s, byte);
}

static int reply(struct command_side *s, __u8 byte)
{
	return postgres_reply(s, &client, byte);
}

struct told {
	char text[512];
	commands_parser parse;
};

static void add(struct told *told, const char *text)
{
	size_t length = strlen(told->text);

	snprintf(told->text + length, sizeof(told->text) - length, "%s", text);
}

/* A request is "(name) ", a reply "() ", and one that fails has "!" in it. */
static void said(void *context, const struct command_side *s, int what)
{
	struct told *told = context;

	if (what & COMMAND_BEGINS)
		add(told, "(");
	if (what & COMMAND_RENAMES)
		add(told, (const char *)s->name.text);
	if (what & COMMAND_FAILS)
		add(told, "!");
	if (what & COMMAND_WRONG)
		add(told, "wrong");
	if (what & COMMAND_LEAVE_TAKEN)
		add(told, "goodbye ");
	if (what & COMMAND_DROPS)
		add(told, "nothing) ");
	if (what & COMMAND_ENDS && told->parse == request)
		add(told, (const char *)s->name.text);
	if (what & COMMAND_ENDS)
		add(told, ") ");
}

/* Take the bytes in pieces of any length: they say @expected. */
static void assert_said(commands_parser parse, const struct command_side *from, const char *bytes,
			size_t length, const char *expected)
{
	for (size_t piece = 1; piece <= length; piece++) {
		struct told told = {.parse = parse};
		struct command_side s = *from;

		for (size_t i = 0; i < length; i += piece)
			if (!commands_feed(&s, parse, (const uint8_t *)bytes + i,
					   length - i < piece ? length - i : piece, said, &told))
				break;
		assert_string_equal(told.text, expected);
	}
}

static const struct command_side new_side;
static const struct command_side logged_in = {.stage = POSTGRES_TYPE};

#define STARTS(bytes, expected)	 assert_said(request, &new_side, bytes, sizeof(bytes) - 1, expected)
#define ASKS(bytes, expected)	 assert_said(request, &logged_in, bytes, sizeof(bytes) - 1, expected)
#define ANSWERS(bytes, expected) assert_said(reply, &new_side, bytes, sizeof(bytes) - 1, expected)

#define LOGIN  "\0\0\0\x11\0\3\0\0user\0me\0\0"
#define QUERY  "Q\0\0\0\x0dselect 1\0"
#define PARSE  "P\0\0\0\x08\0\0\0\0"
#define BIND   "B\0\0\0\x0c\0\0\0\0\0\0\0\0"
#define SYNC   "S\0\0\0\x04"
#define READY  "Z\0\0\0\x05I"
#define DONE   "C\0\0\0\x0dSELECT 1\0"
#define NOTICE "N\0\0\0\x05\0"

static void a_login_is_one_request(void **state)
{
	STARTS(LOGIN "p\0\0\0\x08"
		     "pass" QUERY,
	       "(login) (simple) ");
	STARTS("\0\0\0\x08\x04\xd2\x16\x2f" LOGIN, "(login) ");
	STARTS("\0\0\0\x08\x04\xd2\x16\x30"
	       "\0\0\0\x08\x04\xd2\x16\x2f" LOGIN,
	       "(login) ");
	STARTS("\0\0\0\x10\x04\xd2\x16\x2e"
	       "12345678",
	       "(nothing) ");
	ANSWERS("NR\0\0\0\x08\0\0\0\0"
		"S\0\0\0\x06"
		"a\0" READY,
		"() ");
	ANSWERS("R\0\0\0\x08\0\0\0\5"
		"E\0\0\0\x05\0",
		"(!");
}

static void other_bytes_are_wrong(void **state)
{
	STARTS("\x16\x03\x01\x02\0", "(wrong");
	STARTS("GET / HTTP/1.1", "(wrong");
	STARTS("\0\0\0\x09\0\2\0\0\0", "(wrong");
	ASKS("*1\r\n$4\r\nPING\r\n", "wrong");
	ASKS("Q\0\0\0\3", "(wrong");
	ANSWERS("HTTP/1.1 200 OK", "(copywrong");
	ANSWERS("+OK\r\n", "wrong");
}

static void queries_are_simple_or_extended(void **state)
{
	ASKS(QUERY QUERY "X\0\0\0\4", "(simple) (simple) goodbye ");
	ASKS(PARSE BIND "D\0\0\0\x06S\0"
			"E\0\0\0\x09\0\0\0\0\0" SYNC QUERY,
	     "(extended) (simple) ");
	/* A pipeline has as many requests as it has Syncs. */
	ASKS(PARSE BIND SYNC BIND SYNC SYNC, "(extended) (extended) (extended) ");
	ASKS(PARSE "H\0\0\0\4" BIND SYNC, "(extended) ");
}

static void replies_end_when_the_server_is_ready(void **state)
{
	ANSWERS("R\0\0\0\x08\0\0\0\0" READY DONE READY NOTICE DONE NOTICE READY, "() () () ");
	ANSWERS("R\0\0\0\x08\0\0\0\0" READY "E\0\0\0\x06Z\0" READY READY, "() (!) () ");
	/* Messages that the server may send at any time answer nothing. */
	ANSWERS("R\0\0\0\x08\0\0\0\0" READY NOTICE "S\0\0\0\x06"
		"a\0"
		"A\0\0\0\x0a\0\0\0\0a\0" DONE READY,
		"() () ");
	ANSWERS("R\0\0\0\x08\0\0\0\0" READY "H\0\0\0\x07\0\0\0"
		"d\0\0\0\x06Z\n"
		"c\0\0\0\4" DONE READY,
		"() (copy) ");
}

/* While data are copied Sync is ignored; after those of an extended query another one comes. */
static void copies_end_once(void **state)
{
	struct command_side simple = logged_in, extended = logged_in;

	simple.copying = POSTGRES_COPY;
	assert_said(request, &simple, "d\0\0\0\5Sc\0\0\0\4" QUERY, 6 + 5 + 14, "(simple) ");
	extended.copying = POSTGRES_COPY_EXTENDED;
	assert_said(request, &extended, SYNC "d\0\0\0\5Sf\0\0\0\5\0" SYNC SYNC, 5 + 6 + 6 + 10,
		    "(extended) ");
	client = (struct command_side){.have = 'S'};
	assert_said(reply, &logged_in, "1\0\0\0\4G\0\0\0\7\0\0\0", 13, "(");
	assert_int_equal(client.copying, POSTGRES_COPY_EXTENDED);
	client.have = 'Q';
	assert_said(reply, &logged_in, "G\0\0\0\7\0\0\0", 8, "(copy");
	assert_int_equal(client.copying, POSTGRES_COPY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_login_is_one_request),
		cmocka_unit_test(other_bytes_are_wrong),
		cmocka_unit_test(queries_are_simple_or_extended),
		cmocka_unit_test(replies_end_when_the_server_is_ready),
		cmocka_unit_test(copies_end_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
