/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The common part of the parsers of commands. A parser takes the bytes of one direction one by one, and says where a request
 * or a reply begins and ends. Replies come in the order of the requests. Neighbours: http1.h, resp.h, postgres.h,
 * tcp/commands.h.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_COMMAND_H
#define BPF_PROTOCOL_COMMAND_H

#include <linux/types.h>

#ifdef __bpf__
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#endif

#include "wire/command.h"

/* The meaning of a byte. */
enum command_said {
	COMMAND_BEGINS = 1 << 0, /* it is the first one of a request or a reply */
	COMMAND_ENDS = 1 << 1,	 /* it is the last one */
	COMMAND_FAILS = 1 << 2,	 /* the reply says that the request failed */
	COMMAND_PUSHES = 1 << 3, /* with COMMAND_BEGINS: perhaps it answers nothing */
	COMMAND_DROPS = 1 << 4,	 /* it ends a request that wants no reply */
	COMMAND_WRONG = 1 << 5,	 /* this is another protocol */
	COMMAND_RENAMES =
		1 << 6, /* with COMMAND_BEGINS: the reply gives the request another name */
	COMMAND_LEAVE_TAKEN = 1 << 7, /* the client says goodbye */
	COMMAND_UPGRADES = 1 << 8,    /* with COMMAND_ENDS: another protocol follows */
};

/* One direction of a connection. All zeros: no byte has come yet. */
struct command_side {
	__u64 left; /* values of the message under way that are not complete */
	__u64 body; /* of http1.h: bytes of the body after those to skip, or the latest ones of the first line */
	__u32 skip;   /* bytes that come next and say nothing */
	__u32 number; /* as far as its digits have come */
	__u8 stage;   /* of the parser */
	__u8 type;    /* of the value under way */
	__u8 digits;
	__u8 negative;
	__u8 have;    /* bytes of the name so far */
	__u8 named;   /* of http1.h: fields of a response are looked for that say what follows */
	__u8 copying; /* as below, of postgres.h */
	__u8 ignored;
	__u32 rest;
	struct command_name name; /* of the request under way; all zeros: it is too long */
};

static inline __attribute__((always_inline)) int command_is_digit(__u8 byte)
{
	return byte >= '0' && byte <= '9';
}

/* Take the next byte of the name, in capitals. Return 0 if no name has it. */
static inline __attribute__((always_inline)) int command_letter(struct command_side *s, __u8 byte)
{
	__u32 at = s->have;

	if (byte >= 'a' && byte <= 'z')
		byte -= 'a' - 'A';
	if (byte <= ' ' || byte >= 0x7f)
		return 0;
	if (at < COMMAND_NAME) {
#ifdef __bpf__
		barrier_var(at); /* or the verifier does not see its bound */
		if (at >= COMMAND_NAME)
			return 0;
#endif
		s->name.text[at] = byte;
		s->have = at + 1;
	}
	return 1;
}

/* A name that fills its place may be longer. */
static inline __attribute__((always_inline)) void command_name_ends(struct command_side *s)
{
	if (s->have >= COMMAND_NAME)
		__builtin_memset(&s->name, 0, sizeof(s->name));
}

#endif
