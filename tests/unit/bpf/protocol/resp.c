// SPDX-License-Identifier: MIT
/*
 * bpf/protocol/resp.h, the kernel's own source: where commands and replies begin and end, and what they are called,
 * however their bytes are cut.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "commands.h"

#include "../../bpf/protocol/resp.h"

static int request(struct command_side *s, __u8 byte)
{
	return resp_request(s, byte);
}

static int reply(struct command_side *s, __u8 byte)
{
	return resp_reply(s, byte);
}

struct told {
	char text[512];
	commands_parser parse;
};

/* A word for each message: a command's name, "ok", "error" or "push"; "(" before those that have not ended. */
static void said(void *context, const struct command_side *s, int what)
{
	struct told *told = context;
	size_t length = strlen(told->text);
	char *at = told->text + length;
	size_t room = sizeof(told->text) - length;

	if (what & COMMAND_BEGINS) {
		snprintf(at, room, "(%s",
			 what & COMMAND_PUSHES	? "push "
			 : what & COMMAND_FAILS ? "error "
						: "");
		at += strlen(at);
	}
	room = sizeof(told->text) - (size_t)(at - told->text);
	if (what & COMMAND_WRONG)
		snprintf(at, room, "wrong");
	else if (what & COMMAND_DROPS)
		snprintf(at, room, "nothing) ");
	else if (what & COMMAND_ENDS)
		snprintf(at, room, "%.*s) ", COMMAND_NAME,
			 told->parse == request ? (const char *)s->name.text : "");
}

static void take(commands_parser parse, const char *bytes, size_t length, size_t piece,
		 struct told *ret_told)
{
	struct command_side s = {0};

	*ret_told = (struct told){.parse = parse};
	for (size_t i = 0; i < length; i += piece)
		if (!commands_feed(&s, parse, (const uint8_t *)bytes + i,
				   length - i < piece ? length - i : piece, said, ret_told))
			return;
}

/* The bytes say @expected, in pieces of any length. */
static void assert_said(commands_parser parse, const char *bytes, size_t length,
			const char *expected)
{
	for (size_t piece = 1; piece <= length; piece++) {
		struct told told;

		take(parse, bytes, length, piece, &told);
		assert_string_equal(told.text, expected);
	}
}

#define ASKS(bytes, expected)	 assert_said(request, bytes, sizeof(bytes) - 1, expected)
#define ANSWERS(bytes, expected) assert_said(reply, bytes, sizeof(bytes) - 1, expected)

static void commands_have_names(void **state)
{
	ASKS("*1\r\n$4\r\nPING\r\n", "(PING) ");
	ASKS("*2\r\n$3\r\nget\r\n$5\r\na\r\nbc\r\n", "(GET) ");
	ASKS("*3\r\n$3\r\nSet\r\n$0\r\n\r\n$3\r\n*1\r\r\n", "(SET) ");
	ASKS("*2\r\n$4\r\nECHO\r\n$14\r\n*1\r\n$4\r\nPING\r\n\r\n", "(ECHO) ");
	ASKS("*1\r\n$20\r\ngeoradiusbymember_ro\r\n", "(GEORADIUSBYMEMBER_RO) ");
	/* Names without a place, and names that are none. */
	ASKS("*1\r\n$24\r\nabcdefghijklmnopqrstuvwx\r\n", "() ");
	ASKS("*1\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", "() (PING) ");
	ASKS("*1\r\n$4\r\n\0\r\n\0\r\n*1\r\n$4\r\nPING\r\n", "() (PING) ");
}

static void commands_are_pipelined(void **state)
{
	ASKS("*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n*1\r\n$4\r\nEXEC\r\n",
	     "(MULTI) (INCR) (EXEC) ");
	ASKS("PING\r\nset a b\r\n*1\r\n$4\r\nQUIT\r\n", "(PING) (SET) (QUIT) ");
	ASKS("\r\n\n*1\r\n$4\r\nPING\r\nINFO \r\n", "(PING) (INFO) ");
	ASKS("*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", "(nothing) (nothing) (PING) ");
}

/* CLIENT REPLY is told apart: the server may answer nothing after it. */
static void client_has_two_names(void **state)
{
	ASKS("*3\r\n$6\r\nclient\r\n$5\r\nreply\r\n$3\r\nOFF\r\n", "(CLIENT|REPLY) ");
	ASKS("*2\r\n$6\r\nCLIENT\r\n$4\r\nLIST\r\n", "(CLIENT|LIST) ");
	ASKS("*2\r\n$6\r\nCLIENT\r\n$0\r\n\r\n", "(CLIENT|) ");
}

static void other_bytes_are_no_commands(void **state)
{
	ASKS("GET / HTTP/1.1\r\nHost: a\r\n", "(GET) (wrong");
	ASKS("\x16\x03\x01", "wrong");
	ASKS("*1\r\n+PING\r\n", "(wrong");
	ASKS("*a\r\n", "(wrong");
	ASKS("*1\r\n$-1\r\n", "(wrong");
	ASKS("*1\r\n$4\r\nPINGS\r\n", "(wrong");
	ASKS("*12345678901\r\n", "(wrong");
	ASKS("PI\x01NG\r\n", "(wrong");
}

static void replies_have_an_end(void **state)
{
	ANSWERS("+OK\r\n:1\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n", "() () () () () () ");
	ANSWERS("$12\r\n+OK\r\n-ERR \r\n\r\n+OK\r\n", "() () ");
	ANSWERS("*2\r\n*2\r\n:1\r\n*0\r\n$1\r\na\r\n:1\r\n", "() () ");
	/* Version 3 */
	ANSWERS("%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n_\r\n#t\r\n", "() () ");
	ANSWERS(",1.5\r\n(123\r\n=7\r\ntxt:abc\r\n*1\r\n%1\r\n+a\r\n*-1\r\n", "() () () () ");
	ANSWERS("|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n+OK\r\n", "() () ");
	ANSWERS("*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n+OK\r\n", "() () ");
}

static void errors_and_pushes_are_told_apart(void **state)
{
	ANSWERS("-ERR no\r\n+OK\r\n", "(error ) () ");
	ANSWERS("!5\r\nERR a\r\n", "(error ) ");
	/* An error within a reply, as in that to EXEC, is none of it. */
	ANSWERS("*2\r\n-ERR no\r\n:1\r\n", "() ");
	ANSWERS(">2\r\n+invalidate\r\n*1\r\n$1\r\na\r\n+OK\r\n", "(push ) () ");
	ANSWERS("HTTP/1.1 200 OK\r\n", "wrong");
	ANSWERS("$?\r\n", "(wrong");
	ANSWERS("$1\r\nab\r\n", "(wrong");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_have_names),
		cmocka_unit_test(commands_are_pipelined),
		cmocka_unit_test(client_has_two_names),
		cmocka_unit_test(other_bytes_are_no_commands),
		cmocka_unit_test(replies_have_an_end),
		cmocka_unit_test(errors_and_pushes_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
