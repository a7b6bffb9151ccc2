/* SPDX-License-Identifier: MIT */
/*
 * The text protocol of a NATS server: its operations out of received bytes. No I/O. The server
 * sends INFO, MSG, PING, PONG, +OK and -ERR, each a line; after a MSG comes its payload.
 */
#ifndef DRIVER_NATS_TEXT_H
#define DRIVER_NATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum nats_verb {
	NATS_INFO,
	NATS_MSG,
	NATS_PING,
	NATS_PONG,
	NATS_OK,
	NATS_ERR,
};

/* An operation. Its texts are valid until the next call, and do not end with a zero. */
struct nats_operation {
	enum nats_verb verb;
	const char *text; /* MSG: the subject; INFO: JSON; ERR: the reason */
	size_t text_length;
	const char *payload; /* of MSG */
	size_t payload_length;
};

/* Received bytes, also those of a fleet's channel. A zeroed one is valid and empty. */
struct nats_input {
	char *bytes;
	size_t begin, length, capacity; /* bytes before @begin are of taken operations */
};

/* Append received bytes. 0 or -ENOMEM. */
int nats_input_add(struct nats_input *input, const char *bytes, size_t length);
/*
 * Return 1 with the first whole operation; 0: more bytes are needed. -EBADMSG: no NATS server sends
 * these bytes.
 */
int nats_input_take(struct nats_input *input, struct nats_operation *ret_operation);
void nats_input_clear(struct nats_input *input);

/* Drop the first @length bytes. */
void nats_input_advance(struct nats_input *input, size_t length);
/* Return whether @text is a subject: of printable characters, without blanks. */
bool nats_is_subject(const char *text);

#endif
