/* SPDX-License-Identifier: MIT */
/* A row of the table of framings, and the functions of all rows. Private to this folder. */
#ifndef DRIVER_PAYLOAD_FRAMING_FRAME_H
#define DRIVER_PAYLOAD_FRAMING_FRAME_H

#include "framing.h"

struct frame_input {
	const uint8_t *data;
	size_t length;
	size_t used; /* bytes already read */
};

/*
 * Read until the frame or the input ends; MORE only when all input is used. Accepts any state that
 * it left.
 */
typedef enum framing_verdict frame_feed(const struct framing *framing, struct framing_state *state,
					struct framing_sent sent, struct frame_input *input);

struct framing_kind {
	const char *name;
	/* @text: after the colon; NULL: no colon. */
	int (*parse)(const char *text, struct framing *framing, char **ret_error);
	frame_feed *feed;
};

frame_feed frame_fixed, frame_delimiter, frame_length, frame_ber, frame_ldap, frame_resp,
	frame_echo, frame_close, frame_dns;

/* Take up to @state->left bytes; COMPLETE when none are left. */
enum framing_verdict frame_skip(struct framing_state *state, struct frame_input *input);

#endif
