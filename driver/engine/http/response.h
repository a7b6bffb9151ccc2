/* SPDX-License-Identifier: MIT */
/* One HTTP/1.x response, checked byte by byte as it arrives, by llhttp. No I/O. */
#ifndef DRIVER_ENGINE_HTTP_RESPONSE_H
#define DRIVER_ENGINE_HTTP_RESPONSE_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/connection.h"
#include "payload/capture.h"
#include "payload/expectation.h"

/* Including interim responses: a server that sends more is broken. */
#define HTTP_HEADER_MAX (64U << 10)

/* Longer responses are parsed each time. */
#define HTTP_MEMO_MAX 4096U

struct http_response {
	llhttp_t parser;       /* the first member; valid once something is parsed */
	uint32_t header_bytes; /* upper bound; final once the final header has ended */
	bool begun;
	bool head;    /* the request was HEAD: no body */
	bool in_body; /* the final header has ended */
	bool complete;
	bool keep_alive; /* after a complete response: the connection may be used again */
	uint16_t status; /* of the final response */
	const struct expectation *expectation; /* of the body; NULL: none */
	struct expectation_search search;
	const struct capture_list *captures; /* NULL: none */
	struct capture_store *store;
	const char *wrong; /* malformed: what is wrong; @unread bytes of the last piece follow */
	size_t unread;
	size_t name_length; /* length of the header name at the start of store->body */
};

/*
 * A complete response that came in one piece. Servers repeat themselves, except for the Date once a
 * second: equal bytes get the same verdict without parsing. All responses with one memo answer the
 * same request and expectation. Zeroed, a memo is empty.
 */
struct http_memo {
	size_t length; /* 0: empty */
	uint16_t status;
	struct expectation_search search;
	char bytes[HTTP_MEMO_MAX];
};

/* Call before each response, and before setting its expectation; @head: the request was a HEAD. */
void http_response_begin(struct http_response *response, bool head);

/* Capture values from the response; it then uses no memo. */
void http_response_capture(struct http_response *response, const struct capture_list *captures,
			   struct capture_store *store);

/* Judge a complete response and end its captures. */
enum verdict http_response_judge(const struct http_response *response);

/* Append why a complete response is bad to @text. */
void http_response_tell(const struct http_response *response, char *text, size_t size);

/* Malformed: it is not HTTP/1.x, its header is too large, or bytes follow its end. */
enum connection_verdict http_response_feed(struct http_response *response, struct http_memo *memo,
					   const char *data, size_t length);

/* The connection ended: return CONNECTION_COMPLETE (the body lasts until close) or CONNECTION_TRUNCATED. */
enum connection_verdict http_response_end(struct http_response *response);

#endif
