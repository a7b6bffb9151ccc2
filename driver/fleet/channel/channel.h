/* SPDX-License-Identifier: MIT */
/*
 * Messages between a coordinator and its agents. Each is a JSON object on one line, below 1 MiB, so
 * any channel that keeps their order can carry them. Longer files and documents are sent in parts.
 *
 * To the agent: file, plan, step (of a sweep), ping, start, beat, deal, stop, resumed. The last is a beat of
 * another coordinator, which starts nothing. The end of the stream ends the run. If observers are to be
 * marked, an agent is ready again after its warm-up, and gets a second start.
 * To the coordinator: hello, refused, ready, pong, beat, document, error, failed (a request has
 * failed), silent (the coordinator is, so the load ends).
 */
#ifndef DRIVER_FLEET_CHANNEL_CHANNEL_H
#define DRIVER_FLEET_CHANNEL_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/autojson.h"
#include "nats/text.h"
#include "sojourn/cleanup.h"

/* Raise it when a message's meaning changes. Version and protocol of both ends must be equal. */
#define CHANNEL_PROTOCOL 5

/* Bytes of a file or document in one message. Escaping or encoding at most doubles them. */
#define CHANNEL_PART ((size_t)384 << 10)

/* Append received bytes. -ENOMEM; -EMSGSIZE: the line is longer than any message. */
int channel_lines_add(struct nats_input *lines, const char *bytes, size_t length);
/* Return the first whole line, which the caller frees. NULL: there is none yet, or no memory. */
char *channel_lines_take(struct nats_input *lines);

/* Parse a line. NULL: it is no JSON object with a text as its "type". */
json_t *channel_parse(const char *line);
const char *channel_type(const json_t *message);

/*
 * Return the line of @message with its newline, and free @message. NULL: no memory. The caller
 * frees the line.
 */
char *channel_line(json_t *message);

/*
 * Return a message with the next part of a document from *@at on, and advance *@at. NULL: no
 * memory. @final: the document is the run's result, otherwise an intermediate state.
 */
json_t *channel_document_part(const char *text, size_t *at, bool final);

/* Joins the parts of a document. A zeroed one is valid and empty. */
struct channel_document {
	char *text;
	size_t length;
};

/*
 * Return 1 if the document is complete, 0 if more parts follow. -EINVAL: the message is no part of
 * it; -ENOMEM.
 */
int channel_document_add(struct channel_document *document, const json_t *message);
void channel_document_clear(struct channel_document *document);

#endif
