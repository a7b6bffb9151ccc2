/* SPDX-License-Identifier: MIT */
/*
 * Messages between a coordinator and its agents: objects of JSON, one on a line, each below 1 MiB, so that any
 * channel that keeps their order can carry them. What is longer goes in parts.
 *
 * To the agent:       file, plan, ping, start, beat, deal, stop; the end of the stream is the end of the run.
 * To the coordinator: hello, refused, ready, pong, beat, document, failed (a request did), error.
 */
#ifndef DRIVER_FLEET_CHANNEL_H
#define DRIVER_FLEET_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"

/* Raised when a message changes its meaning; version and protocol must both be the same. */
#define CHANNEL_PROTOCOL 2

/* Bytes of a file or document in one message; escaped or encoded they are up to twice as many. */
#define CHANNEL_PART ((size_t)384 << 10)

DEFINE_CLEANUP(json_t *, json_decref)
#define autojson CLEANUP(cleanup_json_decref)

/* Bytes that come in become lines. A zeroed one is valid and empty. */
struct channel_lines {
	char *bytes;
	size_t begin, length, capacity; /* before @begin lines have been taken */
};

/* -ENOMEM; -EMSGSIZE: the line is longer than any message. */
int channel_lines_add(struct channel_lines *lines, const char *bytes, size_t length);
/* The first whole line, which the caller frees; NULL: there is none yet, or no memory. */
char *channel_lines_take(struct channel_lines *lines);
void channel_lines_clear(struct channel_lines *lines);

/* NULL: the line is no message; its "type" is a text. */
json_t *channel_parse(const char *line);
const char *channel_type(const json_t *message);

/* The line of @message, which is used up, with its end; NULL without memory. The caller frees it. */
char *channel_line(json_t *message);

/*
 * The part of a document that begins at *@at, which is moved on, as far as the text's end. NULL without memory.
 * @final: it is the run's result, else how it stands.
 */
json_t *channel_document_part(const char *text, size_t *at, bool final);

/* Puts parts together again. A zeroed one is valid and empty. */
struct channel_document {
	char *text;
	size_t length;
};

/* 1: it is whole; 0: not yet; -EINVAL: this is no part of it; -ENOMEM. */
int channel_document_add(struct channel_document *document, const json_t *message);
void channel_document_clear(struct channel_document *document);

#endif
