// SPDX-License-Identifier: MIT
/* Builds and renders the bytes of requests. */
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"

int message_settle(struct message *message)
{
	message->length = message->template.max;
	if (message->body.count)
		message->length += MESSAGE_LENGTH_SIZE + message->body.max;
	if (message->template.varies || message->body.varies)
		return 0;
	message->fixed = malloc(message->length + 1); /* a payload may be empty */
	if (!message->fixed)
		return -ENOMEM;
	template_render(&message->template, &(struct template_turn){0}, message->fixed);
	return 0;
}

int message_build(const struct request *request, struct message *ret_message, char **ret_error)
{
	bool literal = request->no_template || request->payload_literal;
	struct message *message = ret_message;
	int err;

	message->template.variables = &request->variables;
	message->numbers = request->numbers;
	err = template_add(&message->template, "--payload",
			   literal ? TEMPLATE_LITERAL : TEMPLATE_BYTES, request->payload,
			   request->payload_length, &request->rows, ret_error);
	if (!err)
		err = message_settle(message);
	if (err)
		message_clear(message);
	return err;
}

void message_clear(struct message *message)
{
	template_clear(&message->template);
	template_clear(&message->body);
	free(message->fixed);
	message->fixed = NULL;
}

int message_room_open(struct message_room *room, size_t size, uint32_t first, uint32_t slots)
{
	*room = (struct message_room){
		.first = first,
		.random = clock_now_ns() * 0x9e3779b97f4a7c15ULL,
		.size = size,
	};
	if (size)
		room->bytes = calloc(slots, size);
	return size && !room->bytes ? -ENOMEM : 0;
}

void message_room_close(struct message_room *room)
{
	free(room->bytes);
	*room = (struct message_room){0};
}

size_t message_room_max(const struct message *message, size_t size)
{
	size_t needed = message->fixed ? 0 : message->length + 1;

	return needed > size ? needed : size;
}

/* Render the body after the room for its length, then move it to the length's end. */
static size_t render_body(const struct message *message, const struct template_turn *turn,
			  char *buffer)
{
	char *body = buffer + MESSAGE_LENGTH_SIZE;
	size_t length = template_render(&message->body, turn, body);
	int digits = snprintf(buffer, MESSAGE_LENGTH_SIZE, "%zu\r\n\r\n", length);

	memmove(buffer + digits, body, length);
	return (size_t)digits + length;
}

/* Drivers take numbers in turn, so that {{counter}} and {{row}} advance as evenly as with one. */
static uint64_t number_of(const struct request_numbers *numbers, uint64_t index)
{
	return index * (numbers->drivers ? numbers->drivers : 1) + numbers->driver + 1;
}

char *message_render(struct message *message, struct message_room *room, uint32_t slot,
		     const struct template_value *values, size_t *ret_length)
{
	struct template_turn turn = {.random = &room->random};
	char *buffer = room->bytes + slot * room->size; /* not empty: see message_room_max() */

	turn.client = (uint64_t)room->first + slot + 1;
	turn.values = values;
	turn.number = number_of(&message->numbers, atomic_fetch_add_explicit(&message->number, 1,
									     memory_order_relaxed));
	*ret_length = template_render(&message->template, &turn, buffer);
	if (message->body.count)
		*ret_length += render_body(message, &turn, buffer + *ret_length);
	return buffer;
}
