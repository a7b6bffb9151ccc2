// SPDX-License-Identifier: MIT
/*
 * http://: HTTP/1.1. Neighbours: connection.c carries the bytes, http_request.c makes them,
 * http_response.c judges what comes back.
 */
#include "engine_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "http_request.h"
#include "http_response.h"
#include "options.h"
#include "target.h"

struct http_shared {
	struct connection_plan plan;
	char *request;
	size_t request_length;
	bool head;
	const struct expectation *expectation; /* borrowed from the options */
};

/* One worker's. */
struct http {
	const struct http_shared *shared;
	struct http_memo memo;
};

struct http_connection {
	struct connection base;
	struct http_response response;
};

static void http_begin(struct connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;
	const struct http_shared *shared = ((struct http *)base->all->user)->shared;

	http_response_begin(&connection->response, shared->head);
	connection->response.expectation = shared->expectation;
	base->request = uv_buf_init(shared->request, (unsigned int)shared->request_length);
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
		connection->base.result.verdict = expectation_judge(
			response->expectation, &response->search, response->status);
	return verdicts[verdict];
}

static enum connection_verdict http_receive(struct connection *base, const char *data,
					    size_t length)
{
	struct http_connection *connection = (struct http_connection *)base;
	struct http *http = base->all->user;

	return judge(connection,
		     http_response_feed(&connection->response, &http->memo, data, length));
}

static enum connection_verdict http_end(struct connection *base)
{
	struct http_connection *connection = (struct http_connection *)base;

	return judge(connection, http_response_end(&connection->response));
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct http_connection),
	.begin = http_begin,
	.receive = http_receive,
	.end = http_end,
};

static void http_release(void *state)
{
	struct http_shared *shared = state;

	if (shared)
		free(shared->request);
	free(shared);
}

static int http_prepare(const struct options *options, const struct target *target,
			void **ret_shared, char **ret_error)
{
	struct http_shared *shared = calloc(1, sizeof(*shared));
	int err;

	if (!shared)
		return -ENOMEM;
	err = connection_plan(options, target, &shared->plan, ret_error);
	if (!err)
		err = http_request_build(options, target, &shared->request,
					 &shared->request_length);
	if (err) {
		free(shared);
		return err;
	}
	shared->expectation = &options->expectation;
	shared->head = !strcmp(options->method, "HEAD");
	*ret_shared = shared;
	return 0;
}

static void http_free(void *state)
{
	struct connections *connections = state;

	if (connections)
		free(connections->user);
	free(connections);
}

static int http_open(const struct engine_host *host, const void *state, void **ret_state)
{
	const struct http_shared *shared = state;
	struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return -ENOMEM;
	http->shared = shared;
	*ret_state = connections_new(host, &shared->plan, &protocol, http);
	if (*ret_state)
		return 0;
	free(http);
	return -ENOMEM;
}

const struct engine engine_http = {
	.scheme = "http",
	.form = "http://HOST[:PORT][/PATH]",
	.addressed = true,
	.sampled = true,
	.prepare = http_prepare,
	.release = http_release,
	.open = http_open,
	.start = connections_start,
	.expire = connections_expire,
	.close = connections_close,
	.free = http_free,
};
