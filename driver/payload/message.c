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

static int add_payload(const struct request *request, struct message *message, const char *text,
		       size_t length, char **ret_error)
{
	bool literal = request->no_template || request->payload_literal;

	return template_add(&message->template, "--payload",
			    literal ? TEMPLATE_LITERAL : TEMPLATE_BYTES, text, length,
			    &request->rows, ret_error);
}

/* Give each message of LDAP an ID that differs in every request. */
static int add_ldap(const struct request *request, struct message *message, char **ret_error)
{
	const struct ldap_messages *messages = message->ldap;
	int err = 0;

	for (size_t i = 0; !err && i < messages->count; i++) {
		const struct ldap_message *part = &messages->list[i];

		err = template_add(&message->template, "--payload", TEMPLATE_LITERAL, part->head,
				   part->head_length, NULL, ret_error);
		if (!err)
			err = template_add(&message->template, "--payload", TEMPLATE_BYTES,
					   LDAP_ID_FIELD, sizeof(LDAP_ID_FIELD) - 1, NULL,
					   ret_error);
		if (!err)
			err = add_payload(request, message, part->rest, part->rest_length,
					  ret_error);
	}
	return err;
}

/* Find the messages of LDAP. -ENODATA: the payload is sent as it is given. */
static int find_ldap(const struct request *request, struct message *message)
{
	if (request->no_template || !framing_is_ldap(&request->framing))
		return -ENODATA;
	message->ldap = malloc(sizeof(*message->ldap));
	if (!message->ldap)
		return -ENOMEM;
	return ldap_split(request->payload, request->payload_length, !request->payload_literal,
			  &request->rows, message->ldap);
}

int message_build(const struct request *request, struct message *ret_message, char **ret_error)
{
	struct message *message = ret_message;
	int err;

	message->template.variables = &request->variables;
	message->numbers = request->numbers;
	err = find_ldap(request, message);
	if (!err)
		err = add_ldap(request, message, ret_error);
	else if (err == -ENODATA)
		err = add_payload(request, message, request->payload, request->payload_length,
				  ret_error);
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
	free(message->ldap);
	message->fixed = NULL;
	message->ldap = NULL;
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

char *message_render(struct message *message, struct message_room *room, uint32_t slot,
		     const struct template_value *values, size_t *ret_length)
{
	const struct request_numbers *numbers = &message->numbers;
	uint64_t index = atomic_fetch_add_explicit(&message->number, 1, memory_order_relaxed);
	struct template_turn turn = {.random = &room->random};
	char *buffer = room->bytes + slot * room->size; /* not empty: see message_room_max() */

	turn.client = (uint64_t)room->first + slot + 1;
	turn.values = values;
	/* Drivers take numbers in turn, so that {{counter}} and {{row}} advance as evenly as with one. */
	turn.number = index * (numbers->drivers ? numbers->drivers : 1) + numbers->driver + 1;
	*ret_length = template_render(&message->template, &turn, buffer);
	if (message->body.count)
		*ret_length += render_body(message, &turn, buffer + *ret_length);
	return buffer;
}

void request_clear(struct request *request)
{
	free(request->headers);
	free(request->body);
	free(request->payload);
	template_rows_clear(&request->rows);
	expectation_clear(&request->expectation);
	*request = (struct request){0};
}
