/* SPDX-License-Identifier: MIT */
/*
 * Messages of LDAP in a payload (RFC 4511, 4.1.1), so that each request can have messageIDs of its own. Pure functions over the
 * payload's text, in which fields may stand. Neighbours: message.c, framing/ber.c.
 */
#ifndef DRIVER_PAYLOAD_LDAP_H
#define DRIVER_PAYLOAD_LDAP_H

#include <stdbool.h>
#include <stddef.h>

#include "template.h"

#define LDAP_MESSAGES 64U
#define LDAP_ID_FIELD "{{ldap-id}}" /* of message.c alone */
/* Bytes of the content of a messageID that differs: 0x01000000 to 0x7fffffff, which BER writes in no fewer (X.690, 8.3.2). */
#define LDAP_ID_SIZE  4U
#define LDAP_ID_FIRST 0x01000000U
#define LDAP_ID_COUNT 0x7f000000U

/* One message: @head up to the content of its messageID, then that, then @rest. */
struct ldap_message {
	char head[8]; /* with the length for an ID of LDAP_ID_SIZE */
	size_t head_length;
	const char *rest;
	size_t rest_length;
};

struct ldap_messages {
	struct ldap_message list[LDAP_MESSAGES];
	size_t count;
};

/*
 * Find the messages in @text. @fields: there may be some. @rows: of fields, or NULL.
 *
 * -ENODATA if the text is anything but messages, or has too many of them. The same if it has a field in an ID or length, or
 * a variable, or abandons an operation by its ID. -ENOMEM.
 */
int ldap_split(const char *text, size_t length, bool fields, const struct template_rows *rows,
	       struct ldap_messages *ret_messages);

#endif
