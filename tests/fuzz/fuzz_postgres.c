// SPDX-License-Identifier: MIT
/*
 * Any bytes as messages of PostgreSQL's protocol, through the kernel's own parser. The result must not depend on how they
 * are cut. Requests and replies begin and end in turn. The first byte gives the sender, whether the login is over, and
 * the length of the pieces.
 */
#include "commands.h"
#include "fuzz.h"

#include "../../bpf/protocol/postgres.h"

static struct command_side client;

static int request(struct command_side *s, __u8 byte)
{
	return postgres_request(s, byte);
}

static int reply(struct command_side *s, __u8 byte)
{
	return postgres_reply(s, &client, byte);
}

struct heard {
	uint64_t sum;
	bool open;
};

static void said(void *context, const struct command_side *s, int what)
{
	struct heard *heard = context;

	heard->sum = heard->sum * 31 + (uint64_t)what;
	if (what & COMMAND_BEGINS)
		require(!heard->open);
	heard->open |= what & COMMAND_BEGINS;
	if (what & (COMMAND_ENDS | COMMAND_DROPS)) {
		require(heard->open && !s->skip);
		heard->open = false;
	}
	for (size_t i = 0; what & (COMMAND_ENDS | COMMAND_RENAMES) && i < COMMAND_NAME; i++)
		heard->sum = heard->sum * 31 + s->name.text[i];
}

static struct heard in_pieces(commands_parser parse, bool old, const uint8_t *data, size_t size,
			      size_t piece)
{
	struct command_side s = {.stage = old ? POSTGRES_TYPE : POSTGRES_STARTS};
	struct heard heard = {0};

	client = (struct command_side){.have = 'S'};
	for (size_t i = 0; i < size; i += piece)
		if (!commands_feed(&s, parse, data + i, size - i < piece ? size - i : piece, said,
				   &heard))
			break;
	return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	commands_parser parse = size && data[0] & 1 ? request : reply;
	bool old = size && data[0] & 2;
	struct heard whole, cut;

	if (size < 2)
		return 0;
	whole = in_pieces(parse, old, data + 1, size - 1, size);
	cut = in_pieces(parse, old, data + 1, size - 1, (data[0] >> 2) + 1U);
	require(whole.sum == cut.sum && whole.open == cut.open);
	return 0;
}
