// SPDX-License-Identifier: MIT
/*
 * http:// and https://: HTTP/1.1. Neighbours: connection.c carries the bytes, http_request.c makes them,
 * http_response.c judges what comes back.
 */
#include "engine_http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "detail.h"
#include "http_request.h"
#include "http_response.h"
#include "message.h"
#include "options.h"
#include "target.h"

/* One kind of request, and what becomes of its responses. */
struct http_kind {
	struct message message;
	bool head;
	const struct expectation *expectation; /* borrowed from the options */
	const struct capture_list *captures;   /* likewise; NULL: nothing is captured */
};

struct http_shared {
	struct link_plan plan;
	struct http_kind **kinds; /* the messages' addresses stay */
	uint32_t kind_count;
};

/* One worker's. */
struct http {
	struct http_shared *shared;
	struct message_room room;
	struct http_memo memos[]; /* by kind */
};

struct http_connection {
	struct connection base;
	uint32_t kind;
	struct http_response response;
};

static void http_begin(struct connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;
	struct engine_client *clients = connection_host(base)->clients;
	struct http *http = connection_user(base);
	struct http_kind *kind;
	size_t length;

	connection->kind = clients ? clients[base->slot].kind : 0;
	kind = http->shared->kinds[connection->kind];
	http_response_begin(&connection->response, kind->head);
	connection->response.expectation = kind->expectation;
	if (clients && kind->captures)
		http_response_capture(&connection->response, kind->captures,
				      &clients[base->slot].store);
	base->request.base = message_next(&kind->message, &http->room, base->slot, &length);
	base->request.len = length;
}

static const enum connection_verdict verdicts[] = {
	[HTTP_MORE] = CONNECTION_MORE,
	[HTTP_COMPLETE] = CONNECTION_COMPLETE,
	[HTTP_MALFORMED] = CONNECTION_MALFORMED,
	[HTTP_TRUNCATED] = CONNECTION_TRUNCATED,
};

/* Hands on what the response says of its connection. */
static enum connection_verdict judge(struct http_connection *connection, enum http_verdict verdict)
{
	const struct http_response *response = &connection->response;

	connection->base.keep_alive = response->keep_alive;
	connection->base.result.status = response->status;
	if (verdict == HTTP_COMPLETE)
		connection->base.result.verdict = http_response_judge(response);
	return verdicts[verdict];
}

static enum connection_verdict http_receive(struct connection *base, const char *data,
					    size_t length)
{
	struct http_connection *connection = (struct http_connection *)base;
	struct http *http = connection_user(base);

	return judge(connection, http_response_feed(&connection->response,
						    &http->memos[connection->kind], data, length));
}

static enum connection_verdict http_end(struct connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;

	return judge(connection, http_response_end(&connection->response));
}

static void http_tell(struct connection *base, enum run_error error, char *text, size_t size)
{
	const struct http_response *response = &((struct http_connection *)base)->response;
	uint64_t received = base->result.bytes_in;

	if (error != RUN_ERROR_MALFORMED) {
		http_response_tell(response, text, size);
		return;
	}
	detail_add(text, size, "byte %" PRIu64 ": %s", received - response->unread,
		   response->wrong);
	connection_tell_begin(base, text, size);
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct http_connection),
	.begin = http_begin,
	.receive = http_receive,
	.end = http_end,
	.tell = http_tell,
};

static void free_kind(struct http_kind *kind)
{
	message_clear(&kind->message);
	free(kind);
}

static void http_release(void *state)
{
	struct http_shared *shared = state;

	if (!shared)
		return;
	link_plan_clear(&shared->plan);
	for (uint32_t i = 0; i < shared->kind_count; i++)
		free_kind(shared->kinds[i]);
	free(shared->kinds);
	free(shared);
}

static int http_check(const struct options *options, const struct target *target, char **ret_error)
{
	struct message message = {0};
	int err = http_request_build(options, target, &message, ret_error);

	if (!err)
		message_clear(&message);
	return err;
}

static int http_add(void *state, const struct options *options, const struct target *target,
		    char **ret_error)
{
	struct http_shared *shared = state;
	struct http_kind *kind = calloc(1, sizeof(*kind)), **kinds;
	int err = kind ? http_request_build(options, target, &kind->message, ret_error) : -ENOMEM;

	if (err) {
		free(kind);
		return err;
	}
	kinds = reallocarray(shared->kinds, shared->kind_count + 1, sizeof(struct http_kind *));
	if (!kinds) {
		free_kind(kind);
		return -ENOMEM;
	}
	kind->expectation = &options->expectation;
	kind->captures = options->captures && options->captures->count ? options->captures : NULL;
	kind->head = !strcmp(options->method, "HEAD");
	shared->kinds = kinds;
	kinds[shared->kind_count++] = kind;
	return 0;
}

/* @alpn: what to agree on in TLS; NULL: none. */
static int prepare(const struct options *options, const struct target *target, const char *alpn,
		   void **ret_shared, char **ret_error)
{
	struct http_shared *shared = calloc(1, sizeof(*shared));
	int err;

	if (!shared)
		return -ENOMEM;
	err = link_plan_fill(options, target, alpn, &shared->plan, ret_error);
	if (!err)
		err = http_add(shared, options, target, ret_error);
	if (err)
		http_release(shared);
	else
		*ret_shared = shared;
	return err;
}

static int http_prepare(const struct options *options, const struct target *target,
			void **ret_shared, char **ret_error)
{
	return prepare(options, target, NULL, ret_shared, ret_error);
}

static int https_prepare(const struct options *options, const struct target *target,
			 void **ret_shared, char **ret_error)
{
	return prepare(options, target, "http/1.1", ret_shared, ret_error);
}

static void http_free_worker(struct http *http)
{
	if (http)
		message_room_close(&http->room);
	free(http);
}

static void http_free(void *state)
{
	struct connections *connections = state;

	if (connections)
		http_free_worker(connections->user);
	connections_free(connections);
}

static int http_open(const struct engine_host *host, const void *state, void **ret_state)
{
	struct http_shared *shared = (struct http_shared *)state; /* it numbers the requests */
	struct http *http = calloc(1, sizeof(*http) + shared->kind_count * sizeof(http->memos[0]));
	struct connections *connections = NULL;
	size_t size = 0;

	if (!http)
		return -ENOMEM;
	http->shared = shared;
	for (uint32_t i = 0; i < shared->kind_count; i++)
		size = message_room_max(&shared->kinds[i]->message, size);
	if (!message_room_open(&http->room, size, host))
		connections = connections_new(host, &shared->plan, &protocol, http);
	if (!connections) {
		http_free_worker(http);
		return -ENOMEM;
	}
	*ret_state = connections;
	return 0;
}

#define HTTP                                                                                    \
	.addressed = true, .captures = true, .check = http_check, .release = http_release,      \
	.add = http_add, .open = http_open, .start = connections_start,                         \
	.retire = connections_retire, .expire = connections_expire, .close = connections_close, \
	.free = http_free

const struct engine engine_http = {
	.scheme = "http",
	.default_port = 80,
	.form = "http://HOST[:PORT][/PATH]",
	.sampled = true,
	.prepare = http_prepare,
	HTTP,
};

const struct engine engine_https = {
	.scheme = "https",
	.default_port = 443,
	.form = "https://HOST[:PORT][/PATH]",
	.tls = true,
	.unsampled = "over TLS the observer sees records and the handshake, not requests",
	.prepare = https_prepare,
	HTTP,
};
