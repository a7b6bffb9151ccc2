/* SPDX-License-Identifier: MIT */
/*
 * A response being sent: a body, real or made up, cut into pieces that are written one by one. On
 * the wire a piece is a chunk header, a part of the body, and the end of the chunk. The head comes
 * before the first piece, the tail after the last one.
 */
#ifndef LAB_RESPONSE_H
#define LAB_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "truth.h"

#define RESPONSE_HEAD 256

struct response {
	/* Filled in by the protocol; response_init() sets up the rest. */
	char head[RESPONSE_HEAD];
	size_t head_length;
	const char *body; /* NULL: body_length bytes of 'x' */
	uint64_t body_length;
	const char *tail;
	size_t tail_length;
	bool chunked;
	uint64_t pieces;

	uint64_t piece;	     /* being written now */
	uint64_t piece_sent; /* bytes of the piece */
	uint64_t left;	     /* bytes until the end of the response, or its half */
};

enum response_progress {
	RESPONSE_MORE,	/* the socket took a part of the piece */
	RESPONSE_PIECE, /* a piece is complete, there are others */
	RESPONSE_DONE,	/* the last byte is written */
};

/* Set @response up to be sent completely, or (@half) to its half only. */
void response_init(struct response *response, bool half);

/*
 * Send the current piece's rest by one call. @to is NULL on a connected socket. Return the progress
 * or -errno; @ret_bytes: how many the socket took.
 */
int response_send(struct response *response, int fd, const union address *to, uint64_t *ret_bytes);

#endif
