// SPDX-License-Identifier: MIT
/* HTTP/1.x requests by llhttp; the query string holds the knobs. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol.h"

static const char ok_body[] = "ok\n";

/* llhttp's callbacks only get the parser; its `data` is the current request. */
static struct http_state *state_of(llhttp_t *parser)
{
	return (struct http_state *)((char *)parser - offsetof(struct http_state, parser));
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	struct http_state *http = state_of(parser);
	size_t room = sizeof(http->url) - http->url_length;

	/* A full buffer counts as an overflow, which on_headers_complete() reports. */
	memcpy(http->url + http->url_length, at, length < room ? length : room);
	http->url_length += length < room ? length : room;
	return 0;
}

static int add_to_word(llhttp_t *parser, const char *at, size_t length)
{
	struct http_state *http = state_of(parser);
	size_t room = sizeof(http->word) - http->word_length;

	memcpy(http->word + http->word_length, at, length < room ? length : room);
	http->word_length += length < room ? length : room;
	return 0;
}

static bool word_is(const struct http_state *http, const char *word)
{
	return http->word_length == strlen(word) &&
	       !strncasecmp(http->word, word, http->word_length);
}

static int on_header_field_complete(llhttp_t *parser)
{
	struct http_state *http = state_of(parser);

	if (http->expect == HTTP_EXPECT_NOTHING && word_is(http, "expect"))
		http->expect = HTTP_EXPECT_NAMED;
	http->word_length = 0;
	return 0;
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct http_state *http = state_of(parser);

	if (http->expect == HTTP_EXPECT_NAMED)
		http->expect =
			word_is(http, "100-continue") ? HTTP_EXPECT_CONTINUE : HTTP_EXPECT_NOTHING;
	http->word_length = 0;
	return 0;
}

static void read_query(struct http_state *http, struct request *request)
{
	const char *query = memchr(http->url, '?', http->url_length);

	if (http->url_length == sizeof(http->url))
		request_refuse(request, 414, "error: the target is longer than %zu bytes",
			       sizeof(http->url) - 1);
	else if (query)
		request_set_knobs(request, query + 1,
				  http->url_length - (size_t)(query + 1 - http->url),
				  KNOB_SCOPE_HTTP);
}

static int on_headers_complete(llhttp_t *parser)
{
	struct http_state *http = state_of(parser);
	struct request *request = parser->data;

	http->head_complete = true;
	/* The server supports no upgrade, so the request counts as one without it. */
	parser->upgrade = 0;
	request->head = parser->method == HTTP_HEAD;
	if (http->expect == HTTP_EXPECT_CONTINUE)
		http->want_continue = true;
	read_query(http, request);
	return 0;
}

static int on_message_complete(llhttp_t *parser)
{
	struct request *request = parser->data;

	request->last = !llhttp_should_keep_alive(parser);
	request->old = parser->http_major == 1 && parser->http_minor == 0;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = add_to_word,
	.on_header_value = add_to_word,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_message_complete = on_message_complete,
};

static void http_init(union protocol_state *state, struct request *request)
{
	llhttp_init(&state->http.parser, HTTP_REQUEST, &settings);
	state->http.parser.data = request;
}

static void http_begin(union protocol_state *state)
{
	struct http_state *http = &state->http;

	http->head_bytes = 0;
	http->head_complete = false;
	http->url_length = 0;
	http->word_length = 0;
	http->expect = HTTP_EXPECT_NOTHING;
	http->want_continue = false;
}

static int refuse(struct request *request, unsigned int status, const char *why)
{
	request_refuse(request, status, "error: %s", why);
	request->hopeless = true;
	return 1;
}

static int http_parse(union protocol_state *state, struct request *request, const char *data,
		      size_t length, struct protocol_need *ret_need)
{
	struct http_state *http = &state->http;
	llhttp_errno_t err = llhttp_execute(&http->parser, data, length);

	ret_need->consumed = length;
	if (err == HPE_PAUSED) {
		ret_need->consumed = (size_t)(llhttp_get_error_pos(&http->parser) - data);
		llhttp_resume(&http->parser);
		return 1;
	}
	if (err != HPE_OK)
		return refuse(request, 400, llhttp_get_error_reason(&http->parser));
	http->head_bytes += http->head_complete ? 0 : length;
	if (http->head_bytes > HTTP_MAX_HEAD)
		return refuse(request, 431, "the request's head is longer than 65536 bytes");
	if (http->want_continue) {
		http->want_continue = false;
		ret_need->interim = "HTTP/1.1 100 Continue\r\n\r\n";
	}
	return 0;
}

static const char *reason_of(const struct request *request)
{
	if (!request->bad)
		return "200 OK";
	if (request->status == 414)
		return "414 URI Too Long";
	return request->status == 431 ? "431 Request Header Fields Too Large" : "400 Bad Request";
}

static const char *connection_header(const struct request *request)
{
	if (request->last || request->hopeless || request->knobs.close)
		return "Connection: close\r\n";
	return request->old ? "Connection: keep-alive\r\n" : "";
}

/* Set the body of protocol_set_body(), or "ok". */
static void set_body(const struct request *request, struct response *response)
{
	protocol_set_body(request, response);
	if (!response->body && request->knobs.size == KNOB_SIZE_OF_PROTOCOL) {
		response->body = ok_body;
		response->body_length = strlen(ok_body);
	}
	if (request->bad) {
		response->tail = "\n";
		response->tail_length = 1;
	}
}

/* Choose chunks or a length; HTTP/1.0 has no chunks. */
static void set_framing(const struct request *request, struct response *response, char *ret_header,
			size_t size)
{
	if (!request->knobs.chunked || request->old) {
		snprintf(ret_header, size, "Content-Length: %zu",
			 response->body_length + response->tail_length);
		return;
	}
	snprintf(ret_header, size, "Transfer-Encoding: chunked");
	response->chunked = true;
	response->tail = "0\r\n\r\n";
	response->tail_length = strlen(response->tail);
}

static void http_dress(const struct request *request, struct response *response)
{
	char framing[48];

	set_body(request, response);
	set_framing(request, response, framing, sizeof(framing));
	response->head_length =
		(size_t)snprintf(response->head, sizeof(response->head),
				 "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n%s\r\n%s\r\n",
				 reason_of(request), framing, connection_header(request));
	if (!request->head)
		return;
	response->body_length = 0;
	response->tail_length = 0;
}

const struct protocol protocol_http = {
	.name = "http",
	.scope = KNOB_SCOPE_HTTP,
	.init = http_init,
	.begin = http_begin,
	.parse = http_parse,
	.dress = http_dress,
};
