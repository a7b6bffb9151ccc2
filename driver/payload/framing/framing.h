/* SPDX-License-Identifier: MIT */
/*
 * Where a response ends, in protocols that the driver does not speak: a table of framings, as pure
 * functions over the bytes received. Neighbour: engine/stream/stream.c.
 */
#ifndef DRIVER_PAYLOAD_FRAMING_FRAMING_H
#define DRIVER_PAYLOAD_FRAMING_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMING_DELIMITER_MAX 64U
#define FRAMING_HEAD_SIZE     24U

/* A frame that claims to be longer is taken for garbage: 1 TiB. */
#define FRAMING_LENGTH_MAX (UINT64_C(1) << 40)

struct framing_kind;

struct framing {
	const struct framing_kind *kind; /* NULL: none was chosen */
	uint32_t replies;		 /* frames that make a response; 0 counts as 1 */

	/* FIXED: of the frame. */
	uint64_t size;

	/* DELIMITER: ends the frame and belongs to it. */
	uint8_t delimiter[FRAMING_DELIMITER_MAX];
	uint8_t delimiter_length;
	uint8_t restart[FRAMING_DELIMITER_MAX]; /* by matched bytes: how many still match */

	/* LENGTH: a number of @width bytes at @offset; the frame ends @adjust bytes after as many. */
	uint32_t offset;
	uint8_t width;
	bool little_endian;
	int64_t adjust;
};

enum framing_verdict {
	FRAMING_MORE,
	FRAMING_COMPLETE,
	FRAMING_REJECTED, /* complete, and what it says is an error (resp, ldap, dns) */
	FRAMING_MALFORMED,
};

/* What is known of a response so far. */
struct framing_state {
	uint32_t replies; /* frames that are complete */
	bool rejected;	  /* one of them says so */

	/* Of a malformed one: how much of the last piece comes after what shows it, or after the end. */
	uint64_t unread;
	bool surplus;

	/* Of the frame under way: */
	uint64_t received;
	uint64_t left;	   /* bytes, where that is known */
	uint64_t value;	   /* a number that is being read */
	uint64_t elements; /* RESP: replies that are still to come */
	uint8_t phase;
	uint8_t matched; /* DELIMITER: bytes; RESP: the line's end has begun */
	uint8_t type;	 /* RESP: of the element */
	bool nested;	 /* RESP: it is part of another */
	uint8_t head_length;
	uint8_t head[FRAMING_HEAD_SIZE]; /* LDAP: the message's first bytes */
};

/* What was sent, for the framing `echo`. */
struct framing_sent {
	const char *bytes;
	size_t length;
};

/*
 * Takes "fixed:64", "delimiter:\r\n", "length:4,be,offset=0,adjust=0", "ber", "ldap", "resp", "dns", "echo"
 * or "close" apart. -EINVAL with a sentence in @ret_error that names --framing; -ENOMEM.
 */
int framing_parse(const char *text, struct framing *ret_framing, char **ret_error);

/* Whether a response lasts until the peer closes. */
bool framing_lasts_until_close(const struct framing *framing);
/* Whether it judges a datagram, and finds no end on a stream. */
bool framing_is_whole_datagram(const struct framing *framing);
/* Whether the response is what was sent. */
bool framing_is_echo(const struct framing *framing);

/* Appends why the response, of which @received bytes have come, is malformed to @text. */
void framing_tell(const struct framing *framing, const struct framing_state *state,
		  uint64_t received, char *text, size_t size);

/* @state is zeroed before a response. Bytes behind its end make it malformed. */
enum framing_verdict framing_feed(const struct framing *framing, struct framing_state *state,
				  struct framing_sent sent, const char *data, size_t length);

#endif
