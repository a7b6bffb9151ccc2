/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * RESP, the protocol of Redis and Valkey, versions 2 and 3. A request is an array of strings, or a line of words
 * ("inline"). A reply is a value, perhaps with others in it. How many are still to come is all that is known of its
 * structure, so it may be nested to any depth. Neighbour: command.h.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_RESP_H
#define BPF_PROTOCOL_RESP_H

#include "command.h"

enum resp_stage {
	RESP_TYPE, /* of a value, or the first byte of a message */
	RESP_NUMBER,
	RESP_NAME,  /* a request's */
	RESP_WORD,  /* the same of an inline one */
	RESP_LINE,  /* the rest of a line */
	RESP_CLOSE, /* the end of the line after a string */
};

/* The longest number: that of 4 billion values. */
#define RESP_DIGITS 10

#define RESP_CLIENT 6 /* bytes of "CLIENT" */

/* CLIENT is named with its next word: after CLIENT REPLY some requests have no reply. */
enum resp_named {
	RESP_NAMELESS,
	RESP_NAMED,
	RESP_NAMED_CLIENT,
};

static inline __attribute__((always_inline)) void resp_next(struct command_side *s, __u8 stage)
{
	s->stage = stage;
	s->number = 0;
	s->digits = 0;
	s->negative = 0;
}

/* Take a byte of a number. Return 1 at the end of its line, 0 before, COMMAND_WRONG if it is none. */
static inline __attribute__((always_inline)) int resp_number(struct command_side *s, __u8 byte)
{
	if (command_is_digit(byte) && s->digits < RESP_DIGITS) {
		s->number = 10 * s->number + byte - '0';
		s->digits++;
		return 0;
	}
	if (byte == '-' && !s->digits && !s->negative) {
		s->negative = 1;
		return 0;
	}
	if (byte == '\r' && s->digits)
		return 0;
	return byte == '\n' && s->digits ? 1 : COMMAND_WRONG;
}

/* A value is complete. Return COMMAND_ENDS if it was the last one of its message. */
static inline __attribute__((always_inline)) int resp_value_ends(struct command_side *s)
{
	resp_next(s, RESP_TYPE);
	if (s->left)
		s->left--;
	return s->left ? 0 : COMMAND_ENDS;
}

/* ---- requests ---- */

static inline __attribute__((always_inline)) int resp_request_begins(struct command_side *s,
								     __u8 byte)
{
	/* The server skips empty lines. */
	if (byte == '\r' || byte == '\n')
		return 0;
	__builtin_memset(&s->name, 0, sizeof(s->name));
	s->have = 0;
	s->named = RESP_NAMELESS;
	s->type = byte;
	resp_next(s, byte == '*' ? RESP_NUMBER : RESP_WORD);
	if (byte == '*')
		return COMMAND_BEGINS;
	if ((byte | 0x20) < 'a' || (byte | 0x20) > 'z')
		return COMMAND_WRONG;
	command_letter(s, byte);
	return COMMAND_BEGINS;
}

static inline __attribute__((always_inline)) int resp_is_client(const struct command_side *s)
{
	const __u8 *t = s->name.text;

	return s->have == RESP_CLIENT && t[0] == 'C' && t[1] == 'L' && t[2] == 'I' && t[3] == 'E' &&
	       t[4] == 'N' && t[5] == 'T';
}

/* The name, or the word after CLIENT, is complete. */
static inline __attribute__((always_inline)) void resp_named(struct command_side *s)
{
	s->named = !s->named && resp_is_client(s) ? RESP_NAMED_CLIENT : RESP_NAMED;
	command_name_ends(s);
}

/* A string of s->number bytes follows. The first one of a request is its name. */
static inline __attribute__((always_inline)) void resp_argument(struct command_side *s)
{
	__u32 length = s->number;

	if (s->named == RESP_NAMED_CLIENT)
		command_letter(s, '|');
	if (s->named != RESP_NAMED && length && length < COMMAND_NAME) {
		s->stage = RESP_NAME;
		return;
	}
	s->named = RESP_NAMED;
	s->skip = length;
	s->stage = RESP_CLOSE;
}

static inline __attribute__((always_inline)) int resp_request_number(struct command_side *s,
								     __u8 byte)
{
	int r = resp_number(s, byte);

	if (r != 1)
		return r;
	if (s->type == '*') {
		s->left = s->negative ? 0 : s->number;
		resp_next(s, RESP_TYPE);
		return s->left ? 0 : COMMAND_DROPS;
	}
	if (s->negative)
		return COMMAND_WRONG;
	resp_argument(s);
	return 0;
}

/* An inline request: its name ends with a space or the line. */
static inline __attribute__((always_inline)) int resp_word(struct command_side *s, __u8 byte)
{
	if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n')
		return command_letter(s, byte) && byte != ':' ? 0 : COMMAND_WRONG;
	command_name_ends(s);
	resp_next(s, byte == '\n' ? RESP_TYPE : RESP_LINE);
	return byte == '\n' ? COMMAND_ENDS : 0;
}

/* Take the next byte of a client. Return enum command_said. */
static inline __attribute__((always_inline)) int resp_request(struct command_side *s, __u8 byte)
{
	switch (s->stage) {
	case RESP_TYPE:
		if (!s->left)
			return resp_request_begins(s, byte);
		s->type = byte;
		resp_next(s, RESP_NUMBER);
		return byte == '$' ? 0 : COMMAND_WRONG;
	case RESP_NUMBER:
		return resp_request_number(s, byte);
	case RESP_NAME:
		if (!command_letter(s, byte))
			s->have = COMMAND_NAME;
		if (!--s->number) {
			resp_named(s);
			s->stage = RESP_CLOSE;
		}
		return 0;
	case RESP_WORD:
		return resp_word(s, byte);
	case RESP_LINE:
		if (byte != '\n')
			return 0;
		resp_next(s, RESP_TYPE);
		return COMMAND_ENDS;
	default: /* RESP_CLOSE */
		if (byte == '\r')
			return 0;
		return byte == '\n' ? resp_value_ends(s) : COMMAND_WRONG;
	}
}

/* ---- replies ---- */

static inline __attribute__((always_inline)) int resp_type(struct command_side *s, __u8 byte)
{
	int said = 0;

	s->type = byte;
	if (!s->left) {
		s->left = 1;
		said = COMMAND_BEGINS;
		if (byte == '>')
			said |= COMMAND_PUSHES;
		if (byte == '-' || byte == '!')
			said |= COMMAND_FAILS;
	}
	switch (byte) {
	case '$': /* strings */
	case '!':
	case '=':
	case '*': /* values with others in them */
	case '~':
	case '>':
	case '%':
	case '|':
		resp_next(s, RESP_NUMBER);
		return said;
	case '+':
	case '-':
	case ':':
	case '_':
	case ',':
	case '#':
	case '(':
		resp_next(s, RESP_LINE);
		return said;
	default:
		return COMMAND_WRONG;
	}
}

/* The number of a string's bytes, or of the values in a value, is complete. A negative one is no value at all. */
static inline __attribute__((always_inline)) int resp_numbered(struct command_side *s)
{
	__u64 values = s->negative ? 0 : s->number;

	if (s->type == '$' || s->type == '!' || s->type == '=') {
		if (s->negative)
			return resp_value_ends(s);
		s->skip = s->number;
		s->stage = RESP_CLOSE;
		return 0;
	}
	if (s->type == '%' || s->type == '|')
		values *= 2;
	s->left += values;
	/* Attributes come before the value that they belong to. */
	if (s->type == '|')
		s->left++;
	return resp_value_ends(s);
}

/* Take the next byte of a server. Return enum command_said. */
static inline __attribute__((always_inline)) int resp_reply(struct command_side *s, __u8 byte)
{
	int r;

	switch (s->stage) {
	case RESP_TYPE:
		return resp_type(s, byte);
	case RESP_NUMBER:
		r = resp_number(s, byte);
		return r == 1 ? resp_numbered(s) : r;
	case RESP_LINE:
		return byte == '\n' ? resp_value_ends(s) : 0;
	default: /* RESP_CLOSE */
		if (byte == '\r')
			return 0;
		return byte == '\n' ? resp_value_ends(s) : COMMAND_WRONG;
	}
}

#endif
