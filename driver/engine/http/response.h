/* SPDX-License-Identifier: MIT */
/* One HTTP/1.x response, checked byte by byte as it comes in; llhttp does the work. No I/O here. */
#ifndef DRIVER_ENGINE_HTTP_RESPONSE_H
#define DRIVER_ENGINE_HTTP_RESPONSE_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "payload/capture.h"
#include "payload/expectation.h"

/* Interim responses included: a server that sends more than this is taken for broken. */
#define HTTP_HEADER_MAX (64U << 10)

/* Longer responses are parsed each time. */
#define HTTP_MEMO_MAX 4096U

enum http_verdict {
	HTTP_MORE,	/* as far as it goes, it is a response */
	HTTP_COMPLETE,	/* its last byte was the last one fed */
	HTTP_MALFORMED, /* not HTTP/1.x, a header too large, or bytes after the end */
	HTTP_TRUNCATED, /* the connection ended before the response did */
};

struct http_response {
	llhttp_t parser;       /* the first member; valid only once something is parsed */
	uint32_t header_bytes; /* upper bound; stops growing with the final header's end */
	bool begun;	       /* something was fed */
	bool head;	       /* the answer to HEAD, which has no body */
	bool in_body;	       /* the final response's header is through */
	bool complete;
	bool keep_alive; /* of a complete response: the connection may be used again */
	uint16_t status; /* of the final response */
	const struct expectation *expectation; /* of the body; NULL: none. Set after the begin */
	struct expectation_search search;
	const struct capture_list *captures; /* NULL: none */
	struct capture_store *store;
	const char
		*wrong; /* of a malformed one: what, and how much of the last piece comes after */
	size_t unread;
	size_t name_length; /* of the header under way, at the begin of store->body */
};

/*
 * A complete response that came in one piece. Servers tend to repeat themselves, but for the Date once
 * a second: the same bytes get the same verdict without being parsed again. All responses that share
 * a memo must answer the same request and expectation. Zeroed, it is valid and empty.
 */
struct http_memo {
	size_t length; /* 0: empty */
	uint16_t status;
	struct expectation_search search;
	char bytes[HTTP_MEMO_MAX];
};

/* Must be called before each response; @head: the request was a HEAD. */
void http_response_begin(struct http_response *response, bool head);

/* Something is taken from the response that begins: no memo is used. */
void http_response_capture(struct http_response *response, const struct capture_list *captures,
			   struct capture_store *store);

/* What a complete response is worth; ends the captures. */
enum verdict http_response_judge(const struct http_response *response);

/* Appends why a complete one is not good to @text. */
void http_response_tell(const struct http_response *response, char *text, size_t size);

enum http_verdict http_response_feed(struct http_response *response, struct http_memo *memo,
				     const char *data, size_t length);

/* The connection ended: HTTP_COMPLETE (a body that lasts until then) or HTTP_TRUNCATED. */
enum http_verdict http_response_end(struct http_response *response);

#endif
