// SPDX-License-Identifier: MIT
/*
 * http:// and https://: HTTP/1.1. Neighbours: engine/connection.c carries the bytes, request.c
 * makes requests, response.c judges responses.
 */
#include "engine/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/connection.h"
#include "payload/detail.h"
#include "request.h"
#include "response.h"
#include "payload/message.h"
#include "payload/request.h"
#include "engine/target.h"
#include "sojourn/cleanup.h"

struct http_connection {
	struct connection base;
	struct http_response response;
};

static void http_begin(struct connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;

	connection_begin(base);
	http_response_begin(&connection->response, base->kind->head);
	connection->response.expectation = &base->kind->request->expectation;
	if (base->kind->captures && connection_host(base)->clients)
		http_response_capture(&connection->response, base->kind->captures,
				      connection_store(base));
}

static enum connection_verdict judge(struct http_connection *connection,
				     enum connection_verdict verdict)
{
	const struct http_response *response = &connection->response;

	connection->base.keep_alive = response->keep_alive && !connection->base.kind->closes;
	connection->base.result.status = response->status;
	if (verdict == CONNECTION_COMPLETE)
		connection->base.result.verdict = http_response_judge(response);
	return verdict;
}

static enum connection_verdict http_receive(struct connection *base, const char *data,
					    size_t length)
{
	struct http_connection *connection = (struct http_connection *)base;

	return judge(connection,
		     http_response_feed(&connection->response, base->memo, data, length));
}

static enum connection_verdict http_end(struct connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;

	return judge(connection, http_response_end(&connection->response));
}

/* Some TLS servers (nginx, Go, Apache) answer plain HTTP with status 400 and such words. */
static bool asks_for_tls(const struct connection *base)
{
	static const char *const words[] = {
		"plain HTTP request was sent to HTTPS port",
		"HTTP request to an HTTPS server",
		"plain HTTP to an SSL-enabled server port",
	};
	const struct connection_piece *piece = &base->piece;

	if (base->result.status != 400 || base->link.tls)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(piece->data, piece->length, words[i], strlen(words[i])))
			return true;
	return false;
}

static void http_tell(struct connection *base, enum run_error error, char *text, size_t size)
{
	const struct http_response *response = &((struct http_connection *)base)->response;
	uint64_t received = base->result.bytes_in;
	const char *scheme = connection_other_scheme(base);

	if (error != RUN_ERROR_MALFORMED) {
		http_response_tell(response, text, size);
		if (asks_for_tls(base))
			detail_add(text, size, ": the server wants TLS: use https://");
		return;
	}
	if (scheme) {
		detail_add(text, size, "the server spoke %s: use %s://",
			   strcmp(scheme, "h2c") ? "TLS" : "HTTP/2", scheme);
		return;
	}
	detail_add(text, size, "byte %" PRIu64 ": %s", received - response->unread,
		   response->wrong);
	connection_tell_begin(base, text, size);
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct http_connection),
	.memo_size = sizeof(struct http_memo),
	.begin = http_begin,
	.receive = http_receive,
	.end = http_end,
	.tell = http_tell,
};

static int http_check(const struct request *request, const struct link_settings *link,
		      const struct target *target, char **ret_error)
{
	struct message message = {0};
	int err = http_request_build(request, target, &message, ret_error);

	(void)link;
	if (!err)
		message_clear(&message);
	return err;
}

static int http_add(void *shared, const struct request *request, const struct target *target,
		    char **ret_error)
{
	struct connection_kind *kind = connections_add(shared, request);

	if (!kind)
		return -ENOMEM;
	kind->head = !strcmp(request->method, "HEAD");
	kind->closes = http_request_closes(request);
	return http_request_build(request, target, &kind->message, ret_error);
}

static int http_prepare(const struct request *request, const struct link_settings *link,
			const struct target *target, void **ret_shared, char **ret_error)
{
	const char *alpn = engine_has(target->engine, ENGINE_TLS) ? "http/1.1" : NULL;

	return connections_prepare(request, link, target, alpn, http_add, ret_shared, ret_error);
}

static int http_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	return connections_open(host, shared, &protocol, ret_state);
}

#define HTTP                                                                                    \
	.check = http_check, .prepare = http_prepare, .release = connections_release,           \
	.add = http_add, .open = http_open, .start = connections_start,                         \
	.retire = connections_retire, .expire = connections_expire, .close = connections_close, \
	.free = connections_free

const struct engine engine_http = {
	.scheme = "http",
	.default_port = 80,
	.form = "http://HOST[:PORT][/PATH]",
	.bits = ENGINE_ADDRESSED | ENGINE_CAPTURES,
	HTTP,
};

const struct engine engine_https = {
	.scheme = "https",
	.default_port = 443,
	.form = "https://HOST[:PORT][/PATH]",
	.bits = ENGINE_ADDRESSED | ENGINE_CAPTURES | ENGINE_TLS,
	.unsampled = "over TLS the observer sees records and the handshake, not requests",
	HTTP,
};
