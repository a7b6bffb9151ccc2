// SPDX-License-Identifier: MIT
/* One HTTP/1.x response, checked byte by byte as it arrives, by llhttp. */
#include "response.h"

#include <string.h>

static struct http_response *of(llhttp_t *parser)
{
	return (struct http_response *)parser; /* its first member */
}

static bool is_interim(const llhttp_t *parser)
{
	return parser->status_code / 100 == 1 && parser->status_code != 101;
}

/* Return llhttp's codes: 0 a body may follow, 1 none does, -1 an error. */
static int on_headers_complete(llhttp_t *parser)
{
	struct http_response *response = of(parser);

	if (parser->http_major != 1 || parser->status_code < 100)
		return -1;
	if (!is_interim(parser)) {
		response->in_body = true;
		response->status = parser->status_code;
	}
	/* A 204 or 304 may have a Content-Length and no body; llhttp does not know that. */
	return response->head || parser->status_code / 100 == 1 || parser->status_code == 204 ||
	       parser->status_code == 304;
}

static int on_body(llhttp_t *parser, const char *data, size_t length)
{
	struct http_response *response = of(parser);

	if (response->expectation)
		expectation_feed(response->expectation, &response->search, data, length);
	if (response->captures)
		capture_body(response->captures, response->store, data, length);
	return HPE_OK;
}

/* Collect the header in the store's body, which is empty until the header ends. */
static int on_header_part(llhttp_t *parser, const char *data, size_t length)
{
	struct http_response *response = of(parser);

	if (!response->in_body)
		capture_append(response->store, data, length);
	return HPE_OK;
}

static int on_header_name(llhttp_t *parser)
{
	of(parser)->name_length = of(parser)->store->body_length;
	return HPE_OK;
}

static int on_header(llhttp_t *parser)
{
	struct http_response *response = of(parser);
	struct capture_store *store = response->store;
	size_t name = response->name_length;

	if (response->in_body)
		return HPE_OK;
	/* A header without name and value was not collected. */
	if (!store->overflow && store->body)
		capture_header(response->captures, store, store->body, name, store->body + name,
			       store->body_length - name);
	store->body_length = 0;
	return HPE_OK;
}

static int on_message_complete(llhttp_t *parser)
{
	struct http_response *response = of(parser);

	if (is_interim(parser))
		return HPE_OK;
	response->complete = true;
	response->keep_alive = llhttp_should_keep_alive(parser) && parser->status_code != 101;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

static const llhttp_settings_t capturing = {
	.on_header_field = on_header_part,
	.on_header_field_complete = on_header_name,
	.on_header_value = on_header_part,
	.on_header_value_complete = on_header,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

void http_response_capture(struct http_response *response, const struct capture_list *captures,
			   struct capture_store *store)
{
	capture_begin(store);
	response->captures = captures;
	response->store = store;
}

enum verdict http_response_judge(const struct http_response *response)
{
	enum verdict verdict =
		expectation_judge(response->expectation, &response->search, response->status);
	bool captured = !response->captures || capture_end(response->captures, response->store);

	return verdict == VERDICT_GOOD && !captured ? VERDICT_UNEXPECTED : verdict;
}

void http_response_tell(const struct http_response *response, char *text, size_t size)
{
	size_t before = strlen(text);

	expectation_tell(response->expectation, &response->search, response->status, text, size);
	if (response->captures && strlen(text) == before)
		capture_tell(response->captures, response->store, text, size);
}

void http_response_begin(struct http_response *response, bool head)
{
	memset((char *)response + sizeof(response->parser), 0,
	       sizeof(*response) - sizeof(response->parser));
	response->head = head;
}

static enum connection_verdict malformed(struct http_response *response, const char *wrong,
					 size_t unread)
{
	response->wrong = wrong;
	response->unread = unread;
	return CONNECTION_MALFORMED;
}

/* Bytes after the end belong to no request: client and server disagree about lengths. */
static enum connection_verdict judge_end(struct http_response *response, const char *data,
					 size_t length)
{
	const char *end = llhttp_get_error_pos(&response->parser);

	if (end == data + length)
		return CONNECTION_COMPLETE;
	return malformed(response, "after the end of the response", (size_t)(data + length - end));
}

/* llhttp reports our own objections as errors of a callback. */
static const char *reason_of(const struct http_response *response, llhttp_errno_t code)
{
	const char *reason = llhttp_get_error_reason(&response->parser);

	if (code == HPE_CB_HEADERS_COMPLETE)
		return "the end of a header that is not HTTP/1, or has a status below 100";
	return reason && *reason ? reason : llhttp_errno_name(code);
}

static enum connection_verdict parse(struct http_response *response, const char *data,
				     size_t length)
{
	llhttp_errno_t code = llhttp_execute(&response->parser, data, length);
	const char *end = llhttp_get_error_pos(&response->parser);

	if (response->complete)
		return judge_end(response, data, length);
	if (code != HPE_OK)
		return malformed(response, reason_of(response, code),
				 end ? (size_t)(data + length - end) : 0);
	if (!response->in_body) {
		response->header_bytes += (uint32_t)length;
		if (response->header_bytes > HTTP_HEADER_MAX)
			return malformed(response, "still the header, of more than 64 KiB", 0);
	}
	return CONNECTION_MORE;
}

static enum connection_verdict feed_first(struct http_response *response, struct http_memo *memo,
					  const char *data, size_t length)
{
	const bool headers = response->captures && response->captures->headers;
	enum connection_verdict verdict;

	if (!response->captures && length == memo->length && !memcmp(data, memo->bytes, length)) {
		response->complete = true;
		response->keep_alive = true;
		response->status = memo->status;
		response->search = memo->search;
		return CONNECTION_COMPLETE;
	}
	llhttp_init(&response->parser, HTTP_RESPONSE, headers ? &capturing : &settings);
	verdict = parse(response, data, length);
	if (verdict == CONNECTION_COMPLETE && !response->captures && response->keep_alive &&
	    length <= HTTP_MEMO_MAX) {
		memo->status = response->status;
		memo->search = response->search;
		memo->length = length;
		memcpy(memo->bytes, data, length);
	}
	return verdict;
}

enum connection_verdict http_response_feed(struct http_response *response, struct http_memo *memo,
					   const char *data, size_t length)
{
	if (response->complete)
		return malformed(response, "after the end of the response", length);
	if (response->begun)
		return parse(response, data, length);
	response->begun = true;
	return feed_first(response, memo, data, length);
}

enum connection_verdict http_response_end(struct http_response *response)
{
	if (!response->begun || response->complete) /* a memo may have matched without the parser */
		return response->complete ? CONNECTION_COMPLETE : CONNECTION_TRUNCATED;
	/* Ignore its result: an interim response alone is no error to it. */
	llhttp_finish(&response->parser);
	return response->complete ? CONNECTION_COMPLETE : CONNECTION_TRUNCATED;
}
