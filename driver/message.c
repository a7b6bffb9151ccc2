// SPDX-License-Identifier: MIT
/* The bytes of plain requests. */
#include "message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int render_fixed(struct message *message)
{
	message->fixed = malloc(message->length + 1); /* a payload may be empty */
	if (!message->fixed)
		return -ENOMEM;
	template_render(&message->template, &(struct template_turn){0}, message->fixed);
	return 0;
}

int message_build(const struct options *options, struct message *ret_message, char **ret_error)
{
	bool literal = options->no_template || options->payload_literal;
	struct message *message = ret_message;
	int err;

	err = template_add(&message->template, "--payload",
			   literal ? TEMPLATE_LITERAL : TEMPLATE_BYTES, options->payload,
			   options->payload_length, &options->rows, ret_error);
	message->length = message->template.max;
	if (!err && !message->template.varies)
		err = render_fixed(message);
	if (err)
		message_clear(message);
	return err;
}

void message_clear(struct message *message)
{
	template_clear(&message->template);
	free(message->fixed);
	message->fixed = NULL;
}

char *message_next(struct message *message, uint64_t *random, char *buffer, size_t *ret_length)
{
	struct template_turn turn = {.random = random};

	if (message->fixed) {
		*ret_length = message->length;
		return message->fixed;
	}
	turn.number = atomic_fetch_add_explicit(&message->number, 1, memory_order_relaxed) + 1;
	*ret_length = template_render(&message->template, &turn, buffer);
	return buffer;
}
