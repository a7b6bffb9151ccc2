/* SPDX-License-Identifier: MIT */
/* A row in the table of framings, and the functions of all rows. Private to framing*.c. */
#ifndef DRIVER_PAYLOAD_FRAMING_FRAME_H
#define DRIVER_PAYLOAD_FRAMING_FRAME_H

#include "framing.h"

struct frame_input {
	const uint8_t *data;
	size_t length;
	size_t used; /* bytes that are through */
};

/*
 * Reads on until the frame ends or the input does. MORE only when all of the input is used. May be
 * called with any state that it left itself.
 */
typedef enum framing_verdict frame_feed(const struct framing *framing, struct framing_state *state,
					struct framing_sent sent, struct frame_input *input);

struct framing_kind {
	const char *name;
	/* @text: behind the colon; NULL: there is none. */
	int (*parse)(const char *text, struct framing *framing, char **ret_error);
	frame_feed *feed;
};

frame_feed frame_fixed, frame_delimiter, frame_length, frame_ber, frame_ldap, frame_resp,
	frame_echo, frame_close, frame_dns;

/* Takes up to @state->left bytes; COMPLETE when none is left. */
enum framing_verdict frame_skip(struct framing_state *state, struct frame_input *input);

#endif
