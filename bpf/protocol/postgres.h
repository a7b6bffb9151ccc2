/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * PostgreSQL's protocol, version 3. A request is a login, a query ('Q'), or the messages of the extended protocol up
 * to Sync. The server answers each with messages up to ReadyForQuery. Notices, parameters and notifications may come at
 * any time, and answer nothing. Neighbour: command.h.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_POSTGRES_H
#define BPF_PROTOCOL_POSTGRES_H

#include "command.h"

enum postgres_stage {
	POSTGRES_STARTS, /* a message without a type: its length. Of a server: an answer of one byte */
	POSTGRES_CODE, /* of such a message */
	POSTGRES_TYPE,
	POSTGRES_LENGTH,
	POSTGRES_LAST, /* the last byte of a message */
};

/* Of struct command_side.copying, a client's. Until the data are over the server ignores Sync. */
enum postgres_copying {
	POSTGRES_NO_COPY,
	POSTGRES_COPY,		/* by a simple query */
	POSTGRES_COPY_EXTENDED, /* a Sync came before the data */
	POSTGRES_COPIED,	/* likewise, and the data are over: another Sync follows */
};

#define POSTGRES_CANCEL	 80877102U
#define POSTGRES_TLS	 80877103U
#define POSTGRES_GSS	 80877104U
#define POSTGRES_VERSION 3U /* in the code's upper half */

/* The longest first message, and the longest of all. */
#define POSTGRES_START_LONGEST 10000U
#define POSTGRES_LONGEST       0x40000000U

/* Types of messages without one. */
#define POSTGRES_LOGIN	   1
#define POSTGRES_CANCELLED 2

/* Take a byte of a number. Return whether it was the last one. */
static inline __attribute__((always_inline)) int postgres_number(struct command_side *s, __u8 byte)
{
	s->number = s->number << 8 | byte;
	return ++s->digits == 4;
}

static inline __attribute__((always_inline)) void postgres_next(struct command_side *s, __u8 stage)
{
	s->stage = stage;
	s->number = 0;
	s->digits = 0;
}

#define POSTGRES_NAME(s, text_)                                             \
	do {                                                                \
		(s)->name = (struct command_name){};                        \
		__builtin_memcpy((s)->name.text, text_, sizeof(text_) - 1); \
	} while (0)

/* ---- requests ---- */

/* A message has ended. */
static inline __attribute__((always_inline)) int postgres_request_ends(struct command_side *s)
{
	postgres_next(s, POSTGRES_TYPE);
	switch (s->type) {
	case 'Q':
	case 'F':
	case POSTGRES_LOGIN:
	case 'S':
		if (s->ignored)
			return 0;
		s->left = 0;
		s->have = s->type;
		return COMMAND_ENDS;
	case POSTGRES_CANCELLED:
		return COMMAND_DROPS;
	case 'X':
		return COMMAND_LEAVE_TAKEN;
	default:
		return 0;
	}
}

/* @count bytes of the message follow. */
static inline __attribute__((always_inline)) void postgres_rest(struct command_side *s, __u32 count)
{
	postgres_next(s, POSTGRES_LAST);
	s->skip = count - 1;
}

/* The first message asks for encryption, ends another connection's query, or is the login. */
static inline __attribute__((always_inline)) int postgres_code(struct command_side *s)
{
	__u32 code = s->number, rest = s->rest;

	if ((code == POSTGRES_TLS || code == POSTGRES_GSS) && !rest) {
		postgres_next(s, POSTGRES_STARTS);
		return 0;
	}
	s->type = code == POSTGRES_CANCEL ? POSTGRES_CANCELLED : POSTGRES_LOGIN;
	if (!rest || (code != POSTGRES_CANCEL && code >> 16 != POSTGRES_VERSION))
		return COMMAND_WRONG;
	postgres_rest(s, rest);
	return 0;
}

static inline __attribute__((always_inline)) int postgres_starts(struct command_side *s, __u8 byte)
{
	int said = s->named ? 0 : COMMAND_BEGINS;

	if (said)
		POSTGRES_NAME(s, "login");
	s->named = 1;
	if (!postgres_number(s, byte))
		return said;
	if (s->number < 8 || s->number > POSTGRES_START_LONGEST)
		return COMMAND_WRONG;
	s->rest = s->number - 8;
	postgres_next(s, POSTGRES_CODE);
	return said;
}

/* Sync is ignored while data are copied. It follows them if the query was of the extended protocol. */
static inline __attribute__((always_inline)) int postgres_ignores(struct command_side *s)
{
	int ignored = s->copying == POSTGRES_COPY_EXTENDED || s->copying == POSTGRES_COPIED;

	if (s->copying == POSTGRES_COPIED)
		s->copying = POSTGRES_NO_COPY;
	return ignored;
}

static inline __attribute__((always_inline)) int postgres_asks(struct command_side *s, __u8 type)
{
	int said = s->left ? 0 : COMMAND_BEGINS;

	s->ignored = 0;
	switch (type) {
	case 'Q': /* a query */
	case 'F': /* a call of a function */
		s->left = 1;
		POSTGRES_NAME(s, "simple");
		return said;
	case 'S':
		s->ignored = postgres_ignores(s);
		if (s->ignored)
			return 0;
		/* fall through */
	case 'P':
	case 'B':
	case 'D':
	case 'E':
	case 'C':
	case 'H':
		s->left = 1;
		POSTGRES_NAME(s, "extended");
		return said;
	case 'c': /* the data are over, or broken off */
	case 'f':
		s->copying =
			s->copying == POSTGRES_COPY_EXTENDED ? POSTGRES_COPIED : POSTGRES_NO_COPY;
		return 0;
	case 'd':
	case 'p':
	case 'X':
		return 0;
	default:
		return COMMAND_WRONG;
	}
}

/*
 * Take a byte of a message's length, in which its own 4 bytes count. Return 1 if the message ends with it, 0 before or if
 * more bytes follow, COMMAND_WRONG if no message has this length.
 */
static inline __attribute__((always_inline)) int postgres_length(struct command_side *s, __u8 byte)
{
	if (!postgres_number(s, byte))
		return 0;
	if (s->number < 4 || s->number > POSTGRES_LONGEST)
		return COMMAND_WRONG;
	if (s->number == 4)
		return 1;
	postgres_rest(s, s->number - 4);
	return 0;
}

/* Take the next byte of a client. Return enum command_said. */
static inline __attribute__((always_inline)) int postgres_request(struct command_side *s, __u8 byte)
{
	int said;

	switch (s->stage) {
	case POSTGRES_STARTS:
		return postgres_starts(s, byte);
	case POSTGRES_CODE:
		return postgres_number(s, byte) ? postgres_code(s) : 0;
	case POSTGRES_TYPE:
		s->type = byte;
		postgres_next(s, POSTGRES_LENGTH);
		return postgres_asks(s, byte);
	case POSTGRES_LENGTH:
		said = postgres_length(s, byte);
		return said == 1 ? postgres_request_ends(s) : said;
	default: /* POSTGRES_LAST */
		return postgres_request_ends(s);
	}
}

/* ---- replies ---- */

static inline __attribute__((always_inline)) int postgres_reply_ends(struct command_side *s)
{
	postgres_next(s, POSTGRES_TYPE);
	if (s->type != 'Z' || !s->left)
		return 0;
	s->left = 0;
	return COMMAND_ENDS;
}

static inline __attribute__((always_inline)) int postgres_is_type(__u8 type)
{
	static const __u8 types[] = "RSKZTDCI123ntsENAGHWdcVv";

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (__u32 i = 0; i < sizeof(types) - 1; i++)
		if (types[i] == type)
			return 1;
	return 0;
}

/* A message of the server begins. @in: its client's side. */
static inline __attribute__((always_inline)) int
postgres_answers(struct command_side *s, struct command_side *in, __u8 type)
{
	int said = 0;

	if (!postgres_is_type(type))
		return COMMAND_WRONG;
	s->type = type;
	postgres_next(s, POSTGRES_LENGTH);
	if (!s->left && type != 'N' && type != 'S' && type != 'A') {
		s->left = 1;
		said = COMMAND_BEGINS;
		if (type == 'G' || type == 'H' || type == 'W') {
			POSTGRES_NAME(s, "copy");
			said |= COMMAND_RENAMES;
		}
	}
	if (type == 'G')
		in->copying = in->have == 'S' ? POSTGRES_COPY_EXTENDED : POSTGRES_COPY;
	return type == 'E' ? said | COMMAND_FAILS : said;
}

/* Take the next byte of a server. Return enum command_said. */
static inline __attribute__((always_inline)) int postgres_reply(struct command_side *s,
								struct command_side *in, __u8 byte)
{
	int said;

	switch (s->stage) {
	case POSTGRES_STARTS:
		/* Answers to a request for encryption. */
		if (byte == 'N' || byte == 'S' || byte == 'G')
			return 0;
		return postgres_answers(s, in, byte);
	case POSTGRES_TYPE:
		return postgres_answers(s, in, byte);
	case POSTGRES_LENGTH:
		said = postgres_length(s, byte);
		return said == 1 ? postgres_reply_ends(s) : said;
	default: /* POSTGRES_LAST */
		return postgres_reply_ends(s);
	}
}

#endif
