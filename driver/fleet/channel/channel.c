// SPDX-License-Identifier: MIT
/* Messages from lines and back; see channel.h. agent.c and member.c are the two ends. */
#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/text.h"

#define LINE_MAX_BYTES ((size_t)4 << 20)
#define DOCUMENT_MAX   ((size_t)64 << 20)

int channel_lines_add(struct nats_input *lines, const char *bytes, size_t length)
{
	int err = nats_input_add(lines, bytes, length);

	if (err)
		return err;
	return lines->length > LINE_MAX_BYTES && !memchr(lines->bytes, '\n', lines->length)
		       ? -EMSGSIZE
		       : 0;
}

char *channel_lines_take(struct nats_input *lines)
{
	const char *begin = lines->length ? lines->bytes + lines->begin : NULL;
	const char *end = begin ? memchr(begin, '\n', lines->length) : NULL;
	size_t length = end ? (size_t)(end - begin) : 0;
	char *line = end ? strndup(begin, length) : NULL;

	if (line)
		nats_input_advance(lines, length + 1);
	return line;
}

json_t *channel_parse(const char *line)
{
	autojson json_t *message = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	return message && channel_type(message) ? TAKE_PTR(message) : NULL;
}

const char *channel_type(const json_t *message)
{
	return json_string_value(json_object_get(message, "type"));
}

char *channel_line(json_t *message)
{
	autojson json_t *own = message;
	autofree char *text = own ? json_dumps(own, JSON_COMPACT) : NULL;

	return text ? text_format("%s\n", text) : NULL;
}

/* Never split a character: each part must be valid UTF-8. */
static size_t part_length(const char *text, size_t left)
{
	size_t length = CHANNEL_PART;

	if (left <= length)
		return left;
	while (length > 1 && (text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

json_t *channel_document_part(const char *text, size_t *at, bool final)
{
	size_t left = strlen(text + *at), length = part_length(text + *at, left);
	json_t *message = json_pack("{s:s, s:b, s:b, s:s%}", "type", "document", "final", final,
				    "last", length == left, "text", text + *at, length);

	*at += length;
	return message;
}

int channel_document_add(struct channel_document *document, const json_t *message)
{
	const json_t *part = json_object_get(message, "text");
	size_t length = json_string_length(part);
	char *grown;

	if (!json_is_string(part) || document->length + length > DOCUMENT_MAX)
		return -EINVAL;
	grown = realloc(document->text, document->length + length + 1);
	if (!grown)
		return -ENOMEM;
	memcpy(grown + document->length, json_string_value(part), length + 1);
	document->text = grown;
	document->length += length;
	return json_is_true(json_object_get(message, "last"));
}

void channel_document_clear(struct channel_document *document)
{
	free(document->text);
	*document = (struct channel_document){0};
}
