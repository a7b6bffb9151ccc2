/* SPDX-License-Identifier: MIT */
/*
 * The bytes of requests: constant, or rendered for each request. Neighbours: engine/http/request.c
 * makes those of HTTP, template.c renders.
 */
#ifndef DRIVER_PAYLOAD_MESSAGE_H
#define DRIVER_PAYLOAD_MESSAGE_H

#include <stdatomic.h>

#include "ldap.h"
#include "request.h"
#include "template.h"

#define MESSAGE_LENGTH_SIZE 32U /* between head and body: "123\r\n\r\n" */

/* One kind of request, shared by all workers. It must not move: its templates point into it. */
struct message {
	struct template template;	       /* everything, or up to the body's length */
	struct template body;		       /* HTTP: a body of varying length */
	char body_length[MESSAGE_LENGTH_SIZE]; /* HTTP: length of a constant body */
	atomic_uint_fast64_t number;	       /* requests so far, of all workers; not if @fixed */
	struct request_numbers numbers;
	struct ldap_messages *ldap; /* whose IDs differ, or NULL */
	char *fixed;		    /* the bytes of a constant request, or NULL */
	size_t length;		    /* of @fixed, or the maximum */
};

/* Build the message of --payload. -EINVAL with @ret_error, -ENOMEM. */
int message_build(const struct request *request, struct message *ret_message, char **ret_error);
/* Finish a message whose templates are filled. -ENOMEM. */
int message_settle(struct message *message);
/* Free the parts; a zeroed @message is valid. */
void message_clear(struct message *message);

/* One worker's memory for rendering, a piece for each slot. A zeroed one is valid and empty. */
struct message_room {
	uint32_t first; /* slots of the workers before this one */
	uint64_t random;
	size_t size; /* of a piece */
	char *bytes; /* NULL: all requests are constant */
};

/* Make room for requests of up to @size bytes in each slot; 0: all are constant. -ENOMEM. */
int message_room_open(struct message_room *room, size_t size, uint32_t first, uint32_t slots);
void message_room_close(struct message_room *room);
/* Return the room that requests of @message need, but at least @size. */
size_t message_room_max(const struct message *message, size_t size);

/* As message_next(), of a message that is not fixed. */
char *message_render(struct message *message, struct message_room *room, uint32_t slot,
		     const struct template_value *values, size_t *ret_length);

/*
 * Return the next request and its length; it stays until the slot's next one. @values: of the
 * slot's variables, or NULL.
 */
static inline char *message_next(struct message *message, struct message_room *room, uint32_t slot,
				 const struct template_value *values, size_t *ret_length)
{
	if (!message->fixed)
		return message_render(message, room, slot, values, ret_length);
	*ret_length = message->length;
	return message->fixed;
}

#endif
