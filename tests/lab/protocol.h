/* SPDX-License-Identifier: MIT */
/*
 * The protocols over TCP: how each finds requests in bytes, and builds responses.
 */
#ifndef LAB_PROTOCOL_H
#define LAB_PROTOCOL_H

#include <llhttp.h>

#include "request.h"
#include "response.h"

#define HTTP_MAX_QUERY 4096
#define HTTP_MAX_HEAD  65536

enum http_expect {
	HTTP_EXPECT_NOTHING,
	HTTP_EXPECT_NAMED, /* the header's name was read, its value not yet */
	HTTP_EXPECT_CONTINUE,
};

struct http_state {
	llhttp_t parser;
	size_t head_bytes; /* read until the end of the headers */
	bool head_complete;
	size_t url_length;
	char url[HTTP_MAX_QUERY];
	char word[16]; /* the current header name or value, as far as it fits */
	size_t word_length;
	enum http_expect expect;
	bool want_continue; /* "100 Continue" is due */
};

/* A protocol's state of a connection between two reads. */
union protocol_state {
	struct http_state http;
	size_t scanned; /* line: bytes in which no newline was found */
};

/* The needs of the parser before it can continue. */
struct protocol_need {
	size_t consumed; /* bytes that may be dropped; a request's payload still points to them */
	size_t room;	 /* bytes that the input must be able to hold; 0: any */
	const char *interim; /* to be sent before the client continues; NULL: nothing */
};

struct protocol {
	const char *name;
	enum knob_scope scope;
	void (*init)(union protocol_state *state, struct request *request);
	/* Prepare for another request: after init and after each response. */
	void (*begin)(union protocol_state *state);
	/* Return 1: @request is complete (good or bad); 0: more bytes are needed, see @ret_need. */
	int (*parse)(union protocol_state *state, struct request *request, const char *data,
		     size_t length, struct protocol_need *ret_need);
	void (*dress)(const struct request *request, struct response *response);
};

/* Return NULL for an unknown name, including "udp". */
const struct protocol *protocol_find(const char *name);

extern const struct protocol protocol_http;
extern const struct protocol protocol_line;
extern const struct protocol protocol_frame;

/* Set the knobs' body, else the complaint, else the payload. */
void protocol_set_body(const struct request *request, struct response *response);

#endif
