// SPDX-License-Identifier: MIT
/*
 * Connections on libuv. A request costs one write and one read; the wait is shared by all
 * connections of a loop. The receive buffer is the loop's, time limits are checked by sweeping.
 */
#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "limits.h"
#include "options.h"
#include "sample.h"
#include "sojourn/clock.h"
#include "target.h"

#define PORT_TRIES 64U

struct error_row {
	int code; /* libuv's */
	enum run_error error;
};

static const struct error_row connect_errors[] = {
	{UV_ECONNREFUSED, RUN_ERROR_REFUSED},
	{UV_ENOENT, RUN_ERROR_REFUSED}, /* AF_UNIX */
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
	if (connection->state == CONNECTION_BLOCKED)
		connection->state = CONNECTION_CLOSED;
	if (connection->state == CONNECTION_CLOSED || connection->state == CONNECTION_CLOSING)
		return;
	connection->state = CONNECTION_CLOSING;
	if (connection->all->plan->policy.reset && connection->handle.type == UV_TCP &&
	    !uv_tcp_close_reset(&connection->tcp, on_close))
		return;
	uv_close(&connection->handle, on_close);
}

static bool is_over(const struct connection *connection, uint64_t now_ns)
{
	return policy_is_over(&connection->all->plan->policy, connection->served,
			      connection->opened_ns, now_ns);
}

static bool is_reusable(const struct connection *connection, enum run_error error)
{
	return error == ENGINE_NO_ERROR && connection->keep_alive && !connection->writing &&
	       !is_over(connection, connection->result.end_ns);
}

/* Answers the slot's start(): reports the result and goes on as the worker says. */
static void connection_finish(struct connection *connection, enum run_error error)
{
	const struct engine_host *host = connection->all->host;

	connection->result.end_ns = clock_now_ns();
	connection->result.error = error;
	connection->result.connect_failed = connection->state != CONNECTION_BUSY;
	if (is_reusable(connection, error))
		connection->state = CONNECTION_IDLE;
	else
		connection_close(connection);
	if (host->done(host->user, connection->slot, &connection->result) == ENGINE_AGAIN)
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
	const uv_buf_t *request = &connection->request;
	uv_buf_t rest =
		uv_buf_init(request->base + written, (unsigned int)(request->len - written));
	int err = uv_write(&connection->write, &connection->stream, &rest, 1, on_write);

	if (err) {
		connection_finish(connection, transfer_error(err));
		return;
	}
	connection->writing = true;
	connection->result.bytes_out = request->len;
}

static void connection_send(struct connection *connection)
{
	int written;

	connection->keep_alive = false;
	connection->all->protocol->begin(connection);
	connection->state = CONNECTION_BUSY;
	connection->begin_ns = clock_now_ns();
	connection->result = (struct engine_result){
		.start_ns = connection->begin_ns,
		.flow = connection->has_flow ? &connection->flow : NULL,
		.flow_hash = connection->flow_hash,
		.index = (uint32_t)connection->served++,
	};
	written = uv_try_write(&connection->stream, &connection->request, 1);
	connection->result.bytes_out = written > 0 ? (uint64_t)written : 0;
	if ((size_t)written == connection->request.len)
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
	*ret_buffer = uv_buf_init(connection->all->buffer, CONNECTION_BUFFER_SIZE);
}

static void connection_receive(struct connection *connection, const char *data, size_t length)
{
	enum connection_verdict verdict;

	connection->result.bytes_in += length;
	verdict = connection->all->protocol->receive(connection, data, length);
	if (verdict == CONNECTION_COMPLETE)
		connection_finish(connection, ENGINE_NO_ERROR);
	else if (verdict != CONNECTION_MORE)
		connection_finish(connection, RUN_ERROR_MALFORMED);
}

static void connection_end(struct connection *connection, int code)
{
	if (code != UV_EOF)
		connection_finish(connection, transfer_error(code));
	else if (connection->all->protocol->end(connection) == CONNECTION_COMPLETE)
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

/* Once per connection: the kernel has chosen its port by now. */
static void connection_learn_flow(struct connection *connection)
{
	const struct connection_plan *plan = connection->all->plan;
	uv_os_fd_t fd;

	connection->has_flow = plan->sampling && !uv_fileno(&connection->handle, &fd) &&
			       !sample_flow(fd, &plan->address, &connection->flow);
	if (connection->has_flow)
		connection->flow_hash = flow_hash(&connection->flow);
}

static void connection_established(struct connection *connection)
{
	const struct engine_host *host = connection->all->host;

	connection->opened_ns = clock_now_ns();
	connection->served = 0;
	host->connected(host->user, connection->slot, connection->opened_ns - connection->begin_ns);
	connection_learn_flow(connection);
	connection_send(connection);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct connection *connection = connect->handle->data;

	if (connection->state != CONNECTION_CONNECTING)
		return;
	if (status)
		connection_finish(connection, connect_error(status));
	else
		connection_established(connection);
}

/* Ports of our own choice may be another's: connect() tells, and the next one is tried. */
static int connect_from(struct connection *connection)
{
	const struct connection_plan *plan = connection->all->plan;
	struct source_cursor *cursor = &connection->all->sources;
	uv_os_fd_t fd;
	int err = uv_fileno(&connection->handle, &fd);

	if (!err)
		err = source_bind(&plan->sources, cursor, fd);
	for (unsigned int tries = 0; !err; tries++) {
		policy_apply(&plan->policy, fd);
		err = uv_tcp_connect(&connection->connect, &connection->tcp,
				     (const struct sockaddr *)&plan->address, on_connect);
		if (err != UV_EADDRNOTAVAIL || tries == PORT_TRIES ||
		    !source_chooses_ports(&plan->sources, cursor))
			return err;
		err = source_replace(&plan->sources, cursor, fd);
	}
	return err;
}

static int open_tcp(struct connection *connection)
{
	int err = uv_tcp_init_ex(connection->all->host->loop, &connection->tcp,
				 connection->all->plan->address.ss_family);

	if (err)
		return err; /* and there is no handle to close */
	connection->handle.data = connection;
	connection->state = CONNECTION_CONNECTING;
	err = connect_from(connection);
	/* Reading from now on, not from on_connect(), spares two epoll_ctl() per connection. */
	return err ? err : uv_read_start(&connection->stream, on_alloc, on_read);
}

/* Connecting to a local socket does not take time: it is done, fails, or the queue is full (EAGAIN). */
static int connect_local(const struct connection_plan *plan)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	policy_apply(&plan->policy, fd);
	if (!connect(fd, (const struct sockaddr *)&plan->address, plan->address_length))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int open_local(struct connection *connection)
{
	int fd = connect_local(connection->all->plan);
	int err;

	if (fd < 0)
		return fd;
	err = uv_pipe_init(connection->all->host->loop, &connection->pipe, 0);
	if (err) {
		close(fd);
		return err;
	}
	connection->handle.data = connection;
	connection->state = CONNECTION_CONNECTING;
	err = uv_pipe_open(&connection->pipe, fd);
	if (err) {
		close(fd);
		return err;
	}
	return uv_read_start(&connection->stream, on_alloc, on_read);
}

static void connect_to_local(struct connection *connection)
{
	int err = open_local(connection);

	if (err == UV_EAGAIN)
		connection->state = CONNECTION_BLOCKED;
	else if (err)
		connection_finish(connection, connect_error(err));
	else
		connection_established(connection);
}

/* Answers the slot's start() with nothing done. */
static void connection_postpone(struct connection *connection)
{
	const struct engine_host *host = connection->all->host;

	connection->result.not_yet = true;
	host->done(host->user, connection->slot, &connection->result);
}

static void connection_connect(struct connection *connection)
{
	int err;

	connection->result = (struct engine_result){0};
	connection->begin_ns = clock_now_ns();
	if (!connection->all->host->may_connect(connection->all->host->user)) {
		connection_postpone(connection);
		return;
	}
	if (connection->all->plan->address.ss_family == AF_UNIX) {
		connect_to_local(connection);
		return;
	}
	err = open_tcp(connection);
	if (err)
		connection_finish(connection, connect_error(err));
}

static void connection_start(struct connection *connection)
{
	if (connection->state == CONNECTION_IDLE && is_over(connection, clock_now_ns()))
		connection_close(connection);
	if (connection->state == CONNECTION_IDLE)
		connection_send(connection);
	else if (connection->state == CONNECTION_CLOSED)
		connection_connect(connection);
	else
		connection->wanted = true;
}

static void connection_expire(struct connection *connection, uint64_t now_ns, uint64_t timeout_ns)
{
	if (connection->state == CONNECTION_IDLE && is_over(connection, now_ns))
		connection_close(connection);
	if (connection->state != CONNECTION_CONNECTING && connection->state != CONNECTION_BUSY &&
	    connection->state != CONNECTION_BLOCKED)
		return;
	if (now_ns >= connection->begin_ns + timeout_ns)
		connection_finish(connection, connection->state == CONNECTION_BUSY
						      ? RUN_ERROR_TIMEOUT
						      : RUN_ERROR_CONNECT_TIMEOUT);
	else if (connection->state == CONNECTION_BLOCKED)
		connect_to_local(connection);
}

struct connection *connections_at(struct connections *all, uint32_t slot)
{
	return (struct connection *)(all->slots + slot * all->protocol->size);
}

void connections_start(void *state, uint32_t slot)
{
	connection_start(connections_at(state, slot));
}

void connections_expire(void *state, uint64_t now_ns)
{
	struct connections *all = state;

	for (uint32_t i = 0; i < all->host->slots; i++)
		connection_expire(connections_at(all, i), now_ns, all->plan->timeout_ns);
}

void connections_close(void *state)
{
	struct connections *all = state;

	for (uint32_t i = 0; i < all->host->slots; i++) {
		connections_at(all, i)->wanted = false;
		connection_close(connections_at(all, i));
	}
}

struct connections *connections_new(const struct engine_host *host,
				    const struct connection_plan *plan,
				    const struct connection_protocol *protocol, void *user)
{
	struct connections *all = calloc(1, sizeof(*all) + host->slots * protocol->size);

	if (!all)
		return NULL;
	all->host = host;
	all->plan = plan;
	all->protocol = protocol;
	all->user = user;
	source_begin(&all->sources, plan->port_range, clock_now_ns() * 0x9e3779b97f4a7c15ULL);
	all->sources.own_ports =
		source_divide(plan->port_range, host->first_slot, host->slots, host->all_slots);
	for (uint32_t i = 0; i < host->slots; i++) {
		connections_at(all, i)->all = all;
		connections_at(all, i)->slot = i;
	}
	return all;
}

int connection_plan(const struct options *options, const struct target *target,
		    struct connection_plan *ret_plan, char **ret_error)
{
	int err = source_check(&options->sources, target->address.ss_family, ret_error);

	if (!err)
		err = policy_check(&options->policy, ret_error);
	if (err)
		return err;
	*ret_plan = (struct connection_plan){
		.address = target->address,
		.address_length = target->address_length,
		.policy = options->policy,
		.timeout_ns = options->timeout_ns,
		.sampling = options->samples != 0 && target->address.ss_family != AF_UNIX,
		.port_range = limits_port_range(),
		.sources = options->sources,
	};
	return 0;
}
