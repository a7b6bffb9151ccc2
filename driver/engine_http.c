// SPDX-License-Identifier: MIT
/*
 * http://: HTTP/1.1 on libuv. A request costs one write and one read; the wait is shared by all
 * connections of a loop. The receive buffer is the loop's, time limits are checked by sweeping.
 * Neighbours: http_request.c makes the bytes, http_response.c judges what comes back.
 */
#include "engine_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http_request.h"
#include "http_response.h"
#include "limits.h"
#include "options.h"
#include "sojourn/clock.h"
#include "target.h"

#define BUFFER_SIZE (64U << 10)
#define PORT_TRIES  64U

struct http_shared {
	struct sockaddr_storage address;
	char *request;
	size_t request_length;
	bool head;
	bool new_connections;
	uint64_t timeout_ns;
	uint32_t port_range;	   /* see limits_port_range() */
	struct source_set sources; /* borrowed from the options */
};

enum connection_state {
	CONNECTION_CLOSED,     /* no handle */
	CONNECTION_CONNECTING, /* a request waits for it */
	CONNECTION_IDLE,
	CONNECTION_BUSY, /* a request is under way */
	CONNECTION_CLOSING,
};

struct connection {
	struct http *http;
	enum connection_state state;
	bool wanted;	   /* CLOSING: the next request waits for a new connection */
	bool writing;	   /* the request did not fit into the socket at once */
	uint64_t begin_ns; /* of connecting, or of the request: what the time limit counts from */
	struct engine_result result;
	struct http_response response;
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_write_t write;
};

struct http {
	const struct engine_host *host;
	const struct http_shared *shared;
	struct source_cursor sources;
	struct http_memo memo;
	char buffer[BUFFER_SIZE];
	struct connection connections[];
};

struct error_row {
	int code; /* libuv's */
	enum run_error error;
};

static const struct error_row connect_errors[] = {
	{UV_ECONNREFUSED, RUN_ERROR_REFUSED},
	{UV_EADDRNOTAVAIL, RUN_ERROR_ADDRESS_UNAVAILABLE},
	{UV_EADDRINUSE, RUN_ERROR_ADDRESS_UNAVAILABLE},
	{UV_EMFILE, RUN_ERROR_TOO_MANY_FILES},
	{UV_ENFILE, RUN_ERROR_TOO_MANY_FILES},
	{UV_ETIMEDOUT, RUN_ERROR_CONNECT_TIMEOUT},
};

static enum run_error connect_error(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(connect_errors); i++)
		if (connect_errors[i].code == code)
			return connect_errors[i].error;
	return RUN_ERROR_CONNECT_OTHER;
}

/* ETIMEDOUT: the kernel gave up retransmitting. Any other failure takes the connection with it. */
static enum run_error transfer_error(int code)
{
	return code == UV_ETIMEDOUT ? RUN_ERROR_TIMEOUT : RUN_ERROR_RESET;
}

static void connection_start(struct connection *connection);

static void on_close(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	connection->state = CONNECTION_CLOSED;
	if (!connection->wanted)
		return;
	connection->wanted = false;
	connection_start(connection);
}

static void connection_close(struct connection *connection)
{
	if (connection->state == CONNECTION_CLOSED || connection->state == CONNECTION_CLOSING)
		return;
	connection->state = CONNECTION_CLOSING;
	uv_close((uv_handle_t *)&connection->tcp, on_close);
}

static bool is_reusable(const struct connection *connection, enum run_error error)
{
	return error == ENGINE_NO_ERROR && connection->response.keep_alive &&
	       !connection->writing && !connection->http->shared->new_connections;
}

/* Answers the slot's start(): reports the result and goes on as the worker says. */
static void connection_finish(struct connection *connection, enum run_error error)
{
	const struct engine_host *host = connection->http->host;
	uint32_t slot = (uint32_t)(connection - connection->http->connections);

	connection->result.end_ns = clock_now_ns();
	connection->result.error = error;
	connection->result.status = connection->response.status;
	connection->result.connect_failed = connection->state != CONNECTION_BUSY;
	if (is_reusable(connection, error))
		connection->state = CONNECTION_IDLE;
	else
		connection_close(connection);
	if (host->done(host->user, slot, &connection->result) == ENGINE_AGAIN)
		connection_start(connection);
}

static void on_write(uv_write_t *write, int status)
{
	struct connection *connection = write->handle->data;

	connection->writing = false;
	if (status && connection->state == CONNECTION_BUSY)
		connection_finish(connection, transfer_error(status));
}

/* The slow path: the part of the request from @written on waits for room in the socket. */
static void connection_write_rest(struct connection *connection, size_t written)
{
	const struct http_shared *shared = connection->http->shared;
	size_t rest = shared->request_length - written;
	uv_buf_t buffer = uv_buf_init(shared->request + written, (unsigned int)rest);
	int err;

	err = uv_write(&connection->write, (uv_stream_t *)&connection->tcp, &buffer, 1, on_write);
	if (err) {
		connection_finish(connection, transfer_error(err));
		return;
	}
	connection->writing = true;
	connection->result.bytes_out = shared->request_length;
}

static void connection_send(struct connection *connection)
{
	const struct http_shared *shared = connection->http->shared;
	uv_buf_t buffer = uv_buf_init(shared->request, (unsigned int)shared->request_length);
	int written;

	http_response_begin(&connection->response, shared->head);
	connection->state = CONNECTION_BUSY;
	connection->begin_ns = clock_now_ns();
	connection->result = (struct engine_result){.start_ns = connection->begin_ns};
	written = uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
	connection->result.bytes_out = written > 0 ? (uint64_t)written : 0;
	if ((size_t)written == shared->request_length)
		return;
	if (written >= 0 || written == UV_EAGAIN)
		connection_write_rest(connection, connection->result.bytes_out);
	else
		connection_finish(connection, transfer_error(written));
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
	struct connection *connection = handle->data;

	(void)suggested;
	*ret_buffer = uv_buf_init(connection->http->buffer, BUFFER_SIZE);
}

static void connection_receive(struct connection *connection, const char *data, size_t length)
{
	enum http_verdict verdict;

	verdict = http_response_feed(&connection->response, &connection->http->memo, data, length);
	connection->result.bytes_in += length;
	if (verdict == HTTP_COMPLETE)
		connection_finish(connection, ENGINE_NO_ERROR);
	else if (verdict != HTTP_MORE)
		connection_finish(connection, RUN_ERROR_MALFORMED);
}

static void connection_end(struct connection *connection, int code)
{
	if (code != UV_EOF)
		connection_finish(connection, transfer_error(code));
	else if (http_response_end(&connection->response) == HTTP_COMPLETE)
		connection_finish(connection, ENGINE_NO_ERROR);
	else
		connection_finish(connection, RUN_ERROR_CLOSED_EARLY);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct connection *connection = stream->data;

	if (!length)
		return;
	if (connection->state != CONNECTION_BUSY)
		connection_close(
			connection); /* the server ended it, or sent what nobody asked for */
	else if (length > 0)
		connection_receive(connection, buffer->base, (size_t)length);
	else
		connection_end(connection, (int)length);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct connection *connection = connect->handle->data;
	const struct engine_host *host = connection->http->host;
	uint32_t slot = (uint32_t)(connection - connection->http->connections);

	if (connection->state != CONNECTION_CONNECTING)
		return;
	if (status) {
		connection_finish(connection, connect_error(status));
		return;
	}
	host->connected(host->user, slot, clock_now_ns() - connection->begin_ns);
	connection_send(connection);
}

/* Ports of our own choice may be another's: connect() tells, and the next one is tried. */
static int connect_from(struct connection *connection)
{
	const struct http_shared *shared = connection->http->shared;
	struct source_cursor *cursor = &connection->http->sources;
	uv_os_fd_t fd;
	int err = uv_fileno((uv_handle_t *)&connection->tcp, &fd);

	if (!err)
		err = source_bind(&shared->sources, cursor, fd);
	for (unsigned int tries = 0; !err; tries++) {
		err = uv_tcp_connect(&connection->connect, &connection->tcp,
				     (const struct sockaddr *)&shared->address, on_connect);
		if (err != UV_EADDRNOTAVAIL || tries == PORT_TRIES ||
		    !source_chooses_ports(&shared->sources, cursor))
			return err;
		err = source_replace(&shared->sources, cursor, fd);
	}
	return err;
}

static int connection_open(struct connection *connection)
{
	const struct http_shared *shared = connection->http->shared;
	int err = uv_tcp_init_ex(connection->http->host->loop, &connection->tcp,
				 shared->address.ss_family);

	if (err)
		return err; /* and there is no handle to close */
	connection->tcp.data = connection;
	connection->state = CONNECTION_CONNECTING;
	uv_tcp_nodelay(&connection->tcp, 1);
	err = connect_from(connection);
	/* Reading from now on, not from on_connect(), spares two epoll_ctl() per connection. */
	return err ? err : uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read);
}

static void connection_connect(struct connection *connection)
{
	int err;

	connection->result = (struct engine_result){0};
	connection->begin_ns = clock_now_ns();
	err = connection_open(connection);
	if (err)
		connection_finish(connection, connect_error(err));
}

static void connection_start(struct connection *connection)
{
	if (connection->state == CONNECTION_IDLE)
		connection_send(connection);
	else if (connection->state == CONNECTION_CLOSED)
		connection_connect(connection);
	else
		connection->wanted = true;
}

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
	err = source_check(&options->sources, target->address.ss_family, ret_error);
	if (!err)
		err = http_request_build(options, target, &shared->request,
					 &shared->request_length);
	if (err) {
		free(shared);
		return err;
	}
	shared->address = target->address;
	shared->head = !strcmp(options->method, "HEAD");
	shared->new_connections = options->new_connections;
	shared->timeout_ns = options->timeout_ns;
	shared->port_range = limits_port_range();
	shared->sources = options->sources;
	*ret_shared = shared;
	return 0;
}

static int http_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	size_t size = sizeof(struct http) + host->slots * sizeof(struct connection);
	struct http *http = calloc(1, size);

	if (!http)
		return -ENOMEM;
	http->host = host;
	http->shared = shared;
	source_begin(&http->sources, http->shared->port_range,
		     clock_now_ns() * 0x9e3779b97f4a7c15ULL);
	for (uint32_t i = 0; i < host->slots; i++)
		http->connections[i].http = http;
	*ret_state = http;
	return 0;
}

static void http_start(void *state, uint32_t slot)
{
	struct http *http = state;

	connection_start(&http->connections[slot]);
}

static void connection_expire(struct connection *connection, uint64_t now_ns, uint64_t timeout_ns)
{
	if (connection->state != CONNECTION_CONNECTING && connection->state != CONNECTION_BUSY)
		return;
	if (now_ns < connection->begin_ns + timeout_ns)
		return;
	connection_finish(connection, connection->state == CONNECTION_BUSY
					      ? RUN_ERROR_TIMEOUT
					      : RUN_ERROR_CONNECT_TIMEOUT);
}

static void http_expire(void *state, uint64_t now_ns)
{
	struct http *http = state;

	for (uint32_t i = 0; i < http->host->slots; i++)
		connection_expire(&http->connections[i], now_ns, http->shared->timeout_ns);
}

static void http_close(void *state)
{
	struct http *http = state;

	for (uint32_t i = 0; i < http->host->slots; i++) {
		http->connections[i].wanted = false;
		connection_close(&http->connections[i]);
	}
}

const struct engine engine_http = {
	.scheme = "http",
	.form = "http://HOST[:PORT][/PATH]",
	.addressed = true,
	.prepare = http_prepare,
	.release = http_release,
	.open = http_open,
	.start = http_start,
	.expire = http_expire,
	.close = http_close,
	.free = free,
};
