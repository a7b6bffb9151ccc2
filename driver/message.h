/* SPDX-License-Identifier: MIT */
/* The bytes of plain requests: --payload, the same each time or rendered. */
#ifndef DRIVER_MESSAGE_H
#define DRIVER_MESSAGE_H

#include <stdatomic.h>

#include "options.h"

struct message {
	struct template template;
	atomic_uint_fast64_t number; /* of requests so far, of all workers */
	char *fixed;		     /* its bytes, if they never vary; else NULL */
	size_t length;		     /* of them, or the most that there can be */
};

/* -EINVAL with a sentence in @ret_error, -ENOMEM. A zeroed @message is fine for message_clear(). */
int message_build(const struct options *options, struct message *ret_message, char **ret_error);
void message_clear(struct message *message);

/* The next request: its own @buffer of message.length, or the fixed bytes; and its length. */
char *message_next(struct message *message, uint64_t *random, char *buffer, size_t *ret_length);

#endif
