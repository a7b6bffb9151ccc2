/* SPDX-License-Identifier: MIT */
/* Which request a datagram answers: the option --match, and the keys that it compares. */
#ifndef DRIVER_PAYLOAD_MATCH_H
#define DRIVER_PAYLOAD_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum match_kind {
	MATCH_ORDER, /* the one under way: nothing is compared */
	MATCH_ID,    /* a number that the driver writes into the request, and the server repeats */
	MATCH_ECHO,  /* the whole request */
};

struct match {
	enum match_kind kind;
	/* ID: */
	uint8_t width; /* 1, 2, 4 or 8 bytes */
	bool little_endian;
	uint32_t offset; /* in the request */
	uint32_t reply_offset;
};

/*
 * Takes "order", "echo" or "id:2,be,offset=0,reply-offset=0" apart; without a reply-offset it is the
 * offset. -EINVAL with a sentence in @ret_error that names --match; -ENOMEM.
 */
int match_parse(const char *text, struct match *ret_match, char **ret_error);

/* How many identifiers there are; 0: 2^64. */
uint64_t match_ids(const struct match *match);

/* Writes the identifier @number, cut to its width, into a request that is long enough. */
void match_write(const struct match *match, uint64_t number, char *request);

/* What a request and its replies have in common; false if @length is too short for it. */
bool match_request_key(const struct match *match, const char *request, size_t length,
		       uint64_t *ret_key);
bool match_reply_key(const struct match *match, const char *reply, size_t length,
		     uint64_t *ret_key);

#endif
