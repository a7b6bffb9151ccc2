// SPDX-License-Identifier: MIT
/*
 * Any bytes as commands or replies of RESP, through the kernel's own parser. The result must not depend on how they
 * are cut. Messages that a recursive parser reads must end where it says. The first byte gives the sender and the length
 * of the pieces.
 */
#include "commands.h"
#include "fuzz.h"

#include "../../bpf/protocol/resp.h"

#define DEEPEST 64

static int request(struct command_side *s, __u8 byte)
{
	return resp_request(s, byte);
}

static int reply(struct command_side *s, __u8 byte)
{
	return resp_reply(s, byte);
}

struct heard {
	uint64_t sum;
	uint64_t begun, ended;
	bool open;
};

static void said(void *context, const struct command_side *s, int what)
{
	struct heard *heard = context;

	heard->sum = heard->sum * 31 + (uint64_t)what;
	if (what & COMMAND_BEGINS) {
		require(!heard->open);
		heard->open = true;
		heard->begun++;
	}
	if (what & (COMMAND_ENDS | COMMAND_DROPS)) {
		require(heard->open && !s->left && !s->skip);
		heard->open = false;
		heard->ended++;
	}
	for (size_t i = 0; what & COMMAND_ENDS && i < COMMAND_NAME; i++)
		heard->sum = heard->sum * 31 + s->name.text[i];
}

static struct heard in_pieces(commands_parser parse, const uint8_t *data, size_t size, size_t piece)
{
	struct command_side s = {0};
	struct heard heard = {0};

	for (size_t i = 0; i < size; i += piece)
		if (!commands_feed(&s, parse, data + i, size - i < piece ? size - i : piece, said,
				   &heard))
			break;
	return heard;
}

/* ---- a parser of another kind ---- */

struct text {
	const uint8_t *at, *end;
};

/* Read a line without its end; *ret_number is its number, -1 if it has none. Return whether there is one. */
static bool read_line(struct text *t, int64_t *ret_number)
{
	const uint8_t *from = t->at;
	int64_t number = 0;
	bool digits = false;

	while (t->at < t->end && *t->at != '\r' && *t->at != '\n') {
		if (number >= 0 && *t->at >= '0' && *t->at <= '9' && t->at - from < 9) {
			number = 10 * number + *t->at - '0';
			digits = true;
		} else {
			number = -1;
		}
		t->at++;
	}
	if (t->end - t->at < 2 || t->at[0] != '\r' || t->at[1] != '\n')
		return false;
	t->at += 2;
	*ret_number = digits ? number : -1;
	return true;
}

static bool read_string(struct text *t, int64_t length)
{
	if (length < 0 || t->end - t->at < length + 2 || t->at[length] != '\r' ||
	    t->at[length + 1] != '\n')
		return false;
	t->at += length + 2;
	return true;
}

/* Read a value with all that is in it. False: there is none, or it is one of those that this parser does not know. */
static bool read_value(struct text *t, int depth)
{
	int64_t number;
	uint8_t type;

	if (t->at == t->end || !depth)
		return false;
	type = *t->at++;
	if (!read_line(t, &number))
		return false;
	if (strchr("+-:_,#(", type) && type)
		return true;
	if (type == '$' || type == '!' || type == '=')
		return read_string(t, number);
	if (!type || !strchr("*~>%", type) || number < 0)
		return false;
	for (int64_t i = 0; i < (type == '%' ? 2 * number : number); i++)
		if (!read_value(t, depth - 1))
			return false;
	return true;
}

static bool read_command(struct text *t)
{
	int64_t words, length;

	if (t->at == t->end || *t->at++ != '*' || !read_line(t, &words) || words < 1)
		return false;
	for (int64_t i = 0; i < words; i++)
		if (t->at == t->end || *t->at++ != '$' || !read_line(t, &length) ||
		    !read_string(t, length))
			return false;
	return true;
}

/* As many messages as the other parser reads have ended by then, and no other one has begun. */
static void compare(const uint8_t *data, size_t size, bool by_client)
{
	struct text t = {data, data + size};
	uint64_t count = 0;
	struct heard heard;
	const uint8_t *end;

	do {
		end = t.at;
	} while ((by_client ? read_command(&t) : read_value(&t, DEEPEST)) && ++count);
	if (!count)
		return;
	heard = in_pieces(by_client ? request : reply, data, (size_t)(end - data), size);
	require(heard.begun == count && heard.ended == count && !heard.open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool by_client = size && data[0] & 1;
	commands_parser parse = by_client ? request : reply;
	struct heard whole, cut;

	if (size < 2)
		return 0;
	whole = in_pieces(parse, data + 1, size - 1, size);
	cut = in_pieces(parse, data + 1, size - 1, (data[0] >> 1) + 1U);
	require(whole.sum == cut.sum && whole.open == cut.open);
	compare(data + 1, size - 1, by_client);
	return 0;
}
