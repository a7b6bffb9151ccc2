// SPDX-License-Identifier: MIT
/* The table of protocols, and the two short ones: lines and length-prefixed frames. */
#include "protocol.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"

#define MAX_LINE     65536
#define MAX_FRAME    (1U << 20)
#define FRAME_PREFIX 4

static const struct protocol *const protocols[] = {
	&protocol_http,
	&protocol_line,
	&protocol_frame,
};

const struct protocol *protocol_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (!strcmp(protocols[i]->name, name))
			return protocols[i];
	return NULL;
}

void protocol_set_body(const struct request *request, struct response *response)
{
	response->chunked = false;
	response->pieces = request->bad ? 1 : request->knobs.pieces;
	response->tail_length = 0;
	if (request->bad) {
		response->body = request->complaint.text;
		response->body_length = strlen(request->complaint.text);
	} else if (request->knobs.size != KNOB_SIZE_OF_PROTOCOL) {
		response->body = NULL;
		response->body_length = request->knobs.size;
	} else {
		response->body = request->payload;
		response->body_length = request->payload_length;
	}
}

static void line_init(union protocol_state *state, struct request *request)
{
	(void)request;
	state->scanned = 0;
}

static void line_begin(union protocol_state *state)
{
	state->scanned = 0;
}

static int line_parse(union protocol_state *state, struct request *request, const char *data,
		      size_t length, struct protocol_need *ret_need)
{
	const char *end = memchr(data + state->scanned, '\n', length - state->scanned);
	size_t line = end ? (size_t)(end - data) : length;

	if (line > MAX_LINE) {
		request_refuse(request, 0, "error: the line is longer than %d bytes", MAX_LINE);
		request->hopeless = true;
		ret_need->consumed = length;
		return 1;
	}
	if (!end) {
		state->scanned = length;
		ret_need->room = MAX_LINE + 1 < 2 * length ? MAX_LINE + 1 : 2 * length;
		return 0;
	}
	ret_need->consumed = line + 1;
	if (line && data[line - 1] == '\r')
		line--;
	request_set_payload(request, data, line, KNOB_SCOPE_STREAM);
	return 1;
}

static void line_dress(const struct request *request, struct response *response)
{
	response->head_length = 0;
	protocol_set_body(request, response);
	response->tail = "\n";
	response->tail_length = 1;
}

const struct protocol protocol_line = {
	.name = "line",
	.scope = KNOB_SCOPE_STREAM,
	.init = line_init,
	.begin = line_begin,
	.parse = line_parse,
	.dress = line_dress,
};

static int frame_parse(union protocol_state *state, struct request *request, const char *data,
		       size_t length, struct protocol_need *ret_need)
{
	uint32_t size;

	(void)state;
	if (length < FRAME_PREFIX)
		return 0;
	memcpy(&size, data, sizeof(size));
	size = ntohl(size);
	if (size > MAX_FRAME) {
		request_refuse(request, 0, "error: the frame is longer than %u bytes", MAX_FRAME);
		request->hopeless = true;
		ret_need->consumed = length;
		return 1;
	}
	ret_need->room = FRAME_PREFIX + (size_t)size;
	if (length < ret_need->room)
		return 0;
	ret_need->consumed = ret_need->room;
	request_set_payload(request, data + FRAME_PREFIX, size, KNOB_SCOPE_STREAM);
	return 1;
}

static void frame_dress(const struct request *request, struct response *response)
{
	uint32_t size;

	protocol_set_body(request, response);
	size = htonl((uint32_t)response->body_length);
	memcpy(response->head, &size, sizeof(size));
	response->head_length = sizeof(size);
}

const struct protocol protocol_frame = {
	.name = "frame",
	.scope = KNOB_SCOPE_STREAM,
	.init = line_init,
	.begin = line_begin,
	.parse = frame_parse,
	.dress = frame_dress,
};
