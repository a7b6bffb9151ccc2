/* SPDX-License-Identifier: MIT */
/*
 * Where a response ends, in protocols that the driver does not speak: a table of framings, pure
 * functions over the received bytes. Neighbour: engine/stream/stream.c.
 */
#ifndef DRIVER_PAYLOAD_FRAMING_FRAMING_H
#define DRIVER_PAYLOAD_FRAMING_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMING_DELIMITER_MAX 64U
#define FRAMING_HEAD_SIZE     24U

/* A frame that claims to be longer than 1 TiB counts as garbage. */
#define FRAMING_LENGTH_MAX (UINT64_C(1) << 40)

struct framing_kind;

struct framing {
	const struct framing_kind *kind; /* NULL: none chosen */
	uint32_t replies;		 /* frames per response; 0 counts as 1 */

	/* FIXED: size of the frame. */
	uint64_t size;

	/* DELIMITER: the last bytes of a frame. */
	uint8_t delimiter[FRAMING_DELIMITER_MAX];
	uint8_t delimiter_length;
	uint8_t restart[FRAMING_DELIMITER_MAX]; /* [i]: how many bytes still match if i + 1 did */

	/*
	 * LENGTH: a number of @width bytes at @offset. That many bytes, plus @adjust, follow the
	 * number.
	 */
	uint32_t offset;
	uint8_t width;
	bool little_endian;
	int64_t adjust;
};

enum framing_verdict {
	FRAMING_MORE,
	FRAMING_COMPLETE,
	FRAMING_REJECTED, /* complete, but reports an error (resp, ldap, dns) */
	FRAMING_MALFORMED,
};

/* The state of a response so far. */
struct framing_state {
	uint32_t replies; /* complete frames */
	bool rejected;	  /* one of them reports an error */

	/* Malformed: bytes of the last piece after the fault, or after the end. */
	uint64_t unread;
	bool surplus;

	/* The current frame: */
	uint64_t received;
	uint64_t left;	   /* bytes, if known */
	uint64_t value;	   /* number being read */
	uint64_t elements; /* RESP: replies still to come */
	uint8_t phase;
	uint8_t matched; /* DELIMITER: bytes; RESP: the last byte, if it is of "-1" or the CR */
	uint8_t type;	 /* RESP: type of the element */
	bool nested;	 /* RESP: the element is part of another */
	uint8_t head_length;
	uint8_t head[FRAMING_HEAD_SIZE]; /* LDAP: first bytes of the message */
};

/* The request, for the framing `echo`. */
struct framing_sent {
	const char *bytes;
	size_t length;
};

/*
 * Parse "fixed:64", "delimiter:\r\n", "length:4,be,offset=0,adjust=0", "ber", "ldap", "resp",
 * "dns", "echo" or "close". -EINVAL with @ret_error that names --framing; -ENOMEM.
 */
int framing_parse(const char *text, struct framing *ret_framing, char **ret_error);

/* Return whether a response lasts until the peer closes. */
bool framing_lasts_until_close(const struct framing *framing);
/* Return whether the framing judges whole datagrams and cannot be used on a stream. */
bool framing_is_whole_datagram(const struct framing *framing);
/* Return whether the response repeats the request. */
bool framing_is_echo(const struct framing *framing);
/* Return whether messages have an ID that should differ (ldap.h). */
bool framing_is_ldap(const struct framing *framing);

/* Append why the response, of @received bytes so far, is malformed to @text. */
void framing_tell(const struct framing *framing, const struct framing_state *state,
		  uint64_t received, char *text, size_t size);

/* Feed received bytes. Zero @state before each response. Bytes after its end make it malformed. */
enum framing_verdict framing_feed(const struct framing *framing, struct framing_state *state,
				  struct framing_sent sent, const char *data, size_t length);

#endif
