/* SPDX-License-Identifier: MIT */
/* Which request a datagram answers: the option --match, and keys to compare. */
#ifndef DRIVER_PAYLOAD_MATCH_H
#define DRIVER_PAYLOAD_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum match_kind {
	MATCH_ORDER, /* the one in flight, without comparing */
	MATCH_ID,    /* a number in the request, which the server repeats */
	MATCH_ECHO,  /* the whole request */
};

struct match {
	enum match_kind kind;
	/* ID: */
	uint8_t width; /* 1, 2, 4 or 8 bytes */
	bool little_endian;
	uint32_t offset; /* of the number in the request */
	uint32_t reply_offset;
};

/*
 * Parse "order", "echo" or "id:2,be,offset=0,reply-offset=0"; the reply-offset defaults to the
 * offset. -EINVAL with @ret_error that names --match; -ENOMEM.
 */
int match_parse(const char *text, struct match *ret_match, char **ret_error);

/* Return how many identifiers there are; 0: 2^64. */
uint64_t match_ids(const struct match *match);

/* Write the identifier @number, cut to its width, into a long enough request. */
void match_write(const struct match *match, uint64_t number, char *request);

/* The key of @data with its number at @offset: for the two below, unless by order. */
bool match_key_at(const struct match *match, uint32_t offset, const char *data, size_t length,
		  uint64_t *ret_key);

/* Return the key that a request and its replies share; false: @length is too short. */
static inline bool match_request_key(const struct match *match, const char *request, size_t length,
				     uint64_t *ret_key)
{
	*ret_key = 0; /* in order, all have the same */
	return match->kind == MATCH_ORDER ||
	       match_key_at(match, match->offset, request, length, ret_key);
}
static inline bool match_reply_key(const struct match *match, const char *reply, size_t length,
				   uint64_t *ret_key)
{
	*ret_key = 0;
	return match->kind == MATCH_ORDER ||
	       match_key_at(match, match->reply_offset, reply, length, ret_key);
}

#endif
