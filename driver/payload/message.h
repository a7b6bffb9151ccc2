/* SPDX-License-Identifier: MIT */
/*
 * The bytes of requests: the same each time, or rendered anew. Neighbours: engine/http/request.c makes those
 * of HTTP, template.c renders.
 */
#ifndef DRIVER_PAYLOAD_MESSAGE_H
#define DRIVER_PAYLOAD_MESSAGE_H

#include <stdatomic.h>

#include "request.h"
#include "template.h"

#define MESSAGE_LENGTH_SIZE 32U /* what stands between head and body: "123\r\n\r\n" */

/* One kind of request; shared by all workers. Its address stays: the templates point into it. */
struct message {
	struct template template;	       /* all of it, or up to the body's length */
	struct template body;		       /* HTTP, where its length must be told and differs */
	char body_length[MESSAGE_LENGTH_SIZE]; /* HTTP, where it does not */
	atomic_uint_fast64_t number; /* of requests so far, of all workers; unless fixed */
	struct request_numbers numbers;
	char *fixed;   /* its bytes, if they never vary; else NULL */
	size_t length; /* of them, or the most that there can be */
};

/* Of --payload. -EINVAL with a sentence in @ret_error, -ENOMEM. */
int message_build(const struct request *request, struct message *ret_message, char **ret_error);
/* What those who fill the templates call last. -ENOMEM. */
int message_settle(struct message *message);
/* A zeroed @message is fine. */
void message_clear(struct message *message);

/* One worker's: where it renders, a piece for each slot. A zeroed one is valid and empty. */
struct message_room {
	uint32_t first; /* how many clients the workers before this one have, in all drivers */
	uint64_t random;
	size_t size; /* of a piece */
	char *bytes; /* NULL: no request varies */
};

/* For requests of up to @size bytes in each of @slots slots, 0: none varies. @first: see above. -ENOMEM. */
int message_room_open(struct message_room *room, size_t size, uint32_t first, uint32_t slots);
void message_room_close(struct message_room *room);
/* What a room needs for @message, and for what else needs @size. */
size_t message_room_max(const struct message *message, size_t size);

/*
 * The next request and its length; it stays until the slot's next one. @values: of the slot's variables; NULL:
 * there are none.
 */
char *message_next(struct message *message, struct message_room *room, uint32_t slot,
		   const struct template_value *values, size_t *ret_length);

#endif
