// SPDX-License-Identifier: MIT
/*
 * Streams on libuv. Sending or receiving costs one system call, even in TLS, where OpenSSL works in
 * memory. The receive buffer is the worker's. Neighbour: tls.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host_limits.h"
#include "link.h"
#include "sojourn/address.h"
#include "sojourn/clock.h"

#define PORT_TRIES 64U
#define TLS_PIECE  (64U << 10) /* plaintext encrypted ahead of the socket */

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

/* ETIMEDOUT: the kernel gave up retransmitting. Any failure ends the connection. */
static const struct error_row transfer_errors[] = {
	{UV_ECONNRESET, RUN_ERROR_RESET},
	{UV_EPIPE, RUN_ERROR_RESET},
	{UV_ETIMEDOUT, RUN_ERROR_TIMEOUT},
};

static enum run_error find_error(const struct error_row *rows, size_t count, int code,
				 enum run_error other)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].code == code)
			return rows[i].error;
	return other;
}

enum run_error link_connect_error(int code)
{
	return find_error(connect_errors, ARRAY_SIZE(connect_errors), code,
			  RUN_ERROR_CONNECT_OTHER);
}

enum run_error link_connect_failure(struct link *link, int code)
{
	link->code = code;
	return link_connect_error(code);
}

enum run_error link_transfer_failure(struct link *link, int code)
{
	link->code = code;
	return find_error(transfer_errors, ARRAY_SIZE(transfer_errors), code,
			  RUN_ERROR_TRANSFER_OTHER);
}

static void on_write(uv_write_t *write, int status);

/* The slow path: @rest waits for room in the socket and must stay until on_write(). */
static int write_rest(struct link *link, const char *rest, size_t length)
{
	uv_buf_t buffer = uv_buf_init((char *)rest, (unsigned int)length);
	int err = uv_write(&link->write, &link->stream, &buffer, 1, on_write);

	link->writing = !err;
	return err;
}

/*
 * Write as much as fits at once: *@ret_sent bytes. Like uv_try_write(), but the kernel's way from
 * send() to the socket is shorter than that from write().
 */
static int try_write(const struct link *link, const char *data, size_t length, size_t *ret_sent)
{
	ssize_t sent = send(link->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	*ret_sent = sent > 0 ? (size_t)sent : 0;
	return sent >= 0 || errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
}

/* Send what TLS wrote into the worker's buffer, which is free again afterwards. */
static int flush(struct link *link)
{
	struct tls_buffers *buffers = &link->all->tls;
	size_t length = buffers->out_length, sent;
	int err;

	buffers->out_length = 0;
	if (!length)
		return 0;
	if (link->writing)
		return -ENOBUFS; /* TLS has something to say while the server does not read */
	err = try_write(link, buffers->out, length, &sent);
	if (err || sent == length)
		return err;
	link->ciphertext = malloc(length - sent);
	if (!link->ciphertext)
		return -ENOMEM;
	memcpy(link->ciphertext, buffers->out + sent, length - sent);
	return write_rest(link, link->ciphertext, length - sent);
}

#define PLAIN_PIECE (256 * 1024)

static int send_unsent(struct link *link)
{
	int err = 0;

	/* Write in pieces, as a failed write does not report how much has left. */
	if (!link->tls && link->unsent_length) {
		link->piece_length =
			link->unsent_length < PLAIN_PIECE ? link->unsent_length : PLAIN_PIECE;
		return write_rest(link, link->unsent, link->piece_length);
	}
	while (!err && link->unsent_length && !link->writing) {
		size_t length = link->unsent_length < TLS_PIECE ? link->unsent_length : TLS_PIECE;

		if (tls_write(link->tls, link->unsent, length) != TLS_DONE)
			return -EPROTO;
		link->unsent += length;
		link->unsent_length -= length;
		err = flush(link);
	}
	return err;
}

int link_send(struct link *link, const char *data, size_t length)
{
	size_t sent;
	int err;

	if (!link->tls) {
		err = try_write(link, data, length, &sent);
		link->unsent = data + sent;
		link->unsent_length = length - sent;
		return err || sent == length ? err : send_unsent(link);
	}
	link->unsent = data;
	link->unsent_length = length;
	return send_unsent(link);
}

size_t link_unsent(const struct link *link)
{
	if (link->tls || !link->writing)
		return link->unsent_length;
	return link->unsent_length - link->piece_length +
	       uv_stream_get_write_queue_size(&link->stream);
}

static void on_write(uv_write_t *write, int status)
{
	struct link *link = write->handle->data;

	link->writing = false;
	free(TAKE_PTR(link->ciphertext));
	if (link->state != LINK_OPEN)
		return;
	if (!status) {
		link->unsent += link->piece_length;
		link->unsent_length -= link->piece_length;
		link->piece_length = 0;
		status = send_unsent(link);
	}
	if (status)
		link->all->events->ended(link, link_transfer_failure(link, status));
	else if (!link->writing && link->all->events->drained)
		link->all->events->drained(link);
}

static void fail(struct link *link, enum run_error error, const char *detail)
{
	link->detail = detail;
	if (link->state == LINK_OPEN)
		link->all->events->ended(link, error);
	else
		link->all->events->failed(link, error);
}

static void fail_in_tls(struct link *link)
{
	const char *detail;
	enum run_error error = tls_failure(link->tls, &detail);

	flush(link); /* send the alert */
	fail(link, error, detail);
}

static void link_opened(struct link *link)
{
	link->state = LINK_OPEN;
	link->all->events->opened(link);
}

static void handshake(struct link *link)
{
	enum tls_verdict verdict = tls_handshake(link->tls);
	int err;

	if (verdict == TLS_FAILED) {
		fail_in_tls(link);
		return;
	}
	err = flush(link);
	if (err) {
		fail(link, RUN_ERROR_TLS, "the connection broke during the handshake");
		return;
	}
	if (verdict != TLS_DONE)
		return;
	link->tls_ns = clock_now_ns() - link->begin_ns - link->connect_ns;
	link_opened(link);
}

/* Read until the owner closes, or all is read. */
static void read_tls(struct link *link)
{
	const char *plaintext = link->all->tls.plaintext;
	enum tls_verdict verdict = TLS_DONE;
	size_t length;
	int err;

	while (link->state == LINK_OPEN && verdict == TLS_DONE) {
		verdict = tls_read(link->tls, &length);
		if (verdict == TLS_FAILED)
			fail_in_tls(link);
		else if ((err = flush(link)))
			fail(link, link_transfer_failure(link, err), NULL);
		else if (verdict == TLS_ENDED)
			link->all->events->ended(link, RUN_NO_ERROR);
		else if (length)
			link->all->events->received(link, plaintext, length);
	}
}

static void receive(struct link *link, const char *data, size_t length)
{
	if (!link->tls) {
		link->all->events->received(link, data, length);
		return;
	}
	tls_feed(link->tls, data, length);
	if (link->state == LINK_SECURING)
		handshake(link);
	read_tls(link);
}

/* libuv may report UV_EOF for a RST, too, if data came before it: ask the socket. */
static int check_end(struct link *link, int code)
{
	socklen_t length = sizeof(int);
	int error = 0;

	if (code == UV_EOF)
		getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	return error ? -error : code;
}

/* Without an announced end of TLS, somebody else may have cut the stream: it is not complete. */
static void end(struct link *link, int code)
{
	bool open = link->state == LINK_OPEN;

	if (!open)
		fail(link, RUN_ERROR_TLS,
		     code == UV_EOF ? "the server closed during the handshake"
				    : "the server reset the connection during the handshake");
	else if (code != UV_EOF)
		fail(link, link_transfer_failure(link, code), NULL);
	else
		fail(link, link->tls ? RUN_ERROR_CLOSED_EARLY : RUN_NO_ERROR, NULL);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct link *link = stream->data;

	if (!length || (link->state != LINK_OPEN && link->state != LINK_SECURING))
		return;
	if (length > 0)
		receive(link, buffer->base, (size_t)length);
	else
		end(link, check_end(link, (int)length));
}

static void on_established(struct link *link)
{
	struct links *all = link->all;

	link->connect_ns = clock_now_ns() - link->begin_ns;
	if (!all->plan->tls) {
		link_opened(link);
		return;
	}
	link->state = LINK_SECURING;
	link->tls = tls_new(all->plan->tls, &all->tls);
	if (link->tls)
		handshake(link);
	else
		fail(link, RUN_ERROR_TLS, "no memory");
}

/* ---- opening ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
	struct link *link = handle->data;

	(void)suggested;
	*ret_buffer = (uv_buf_t){.base = link->all->buffer, .len = LINK_BUFFER_SIZE};
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct link *link = connect->handle->data;

	if (link->state != LINK_CONNECTING)
		return;
	if (status)
		link->all->events->failed(link, link_connect_failure(link, status));
	else
		on_established(link);
}

/* A port of our own choice may be taken: connect() then fails, and the next one is tried. */
static int connect_from(struct link *link)
{
	const struct link_plan *plan = link->all->plan;
	struct source_cursor *cursor = &link->all->sources;
	int err = source_bind(&plan->sources, cursor, link->fd);

	for (unsigned int tries = 0; !err; tries++) {
		policy_apply(&plan->policy, link->fd);
		err = uv_tcp_connect(&link->connect, &link->tcp,
				     (const struct sockaddr *)&plan->address, on_connect);
		if (err != UV_EADDRNOTAVAIL || tries == PORT_TRIES ||
		    !source_chooses_ports(&plan->sources, cursor))
			return err;
		err = source_replace(&plan->sources, cursor, link->fd);
	}
	return err;
}

static int open_tcp(struct link *link)
{
	int err = uv_tcp_init_ex(link->all->loop, &link->tcp, link->all->plan->address.ss_family);

	if (err)
		return err; /* there is no handle to close */
	link->handle.data = link;
	link->state = LINK_CONNECTING;
	err = uv_fileno(&link->handle, &link->fd);
	if (!err)
		err = connect_from(link);
	/* Reading from here on, not from on_connect(), saves two epoll_ctl() per connection. */
	return err ? err : uv_read_start(&link->stream, on_alloc, on_read);
}

/* Connect to a local socket, which ends at once: connected, failed, or queue full (EAGAIN). */
static int connect_local(const struct link_plan *plan)
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

static int open_local(struct link *link)
{
	int fd = connect_local(link->all->plan);
	int err;

	if (fd < 0)
		return fd;
	err = uv_pipe_init(link->all->loop, &link->pipe, 0);
	if (err) {
		close(fd);
		return err;
	}
	link->handle.data = link;
	link->state = LINK_CONNECTING;
	link->fd = fd;
	err = uv_pipe_open(&link->pipe, fd);
	if (err) {
		close(fd);
		return err;
	}
	err = uv_read_start(&link->stream, on_alloc, on_read);
	if (!err)
		on_established(link);
	return err;
}

int link_open(struct link *link)
{
	link->begin_ns = clock_now_ns();
	link->connect_ns = 0;
	link->tls_ns = 0;
	link->detail = NULL;
	link->code = 0;
	if (link->all->plan->address.ss_family == AF_UNIX)
		return open_local(link);
	return open_tcp(link);
}

/* ---- closing ---- */

static void on_close(uv_handle_t *handle)
{
	struct link *link = handle->data;

	tls_free(TAKE_PTR(link->tls));
	free(TAKE_PTR(link->ciphertext));
	link->writing = false;
	link->unsent_length = 0;
	link->state = LINK_CLOSED;
	link->all->events->closed(link);
}

bool link_flow(const struct link *link, struct flow *ret_flow, uint32_t *ret_hash)
{
	const struct link_plan *plan = link->all->plan;

	if (!plan->sampling || source_flow(link->fd, &plan->address, ret_flow))
		return false;
	*ret_hash = flow_hash(ret_flow);
	return true;
}

void link_close(struct link *link)
{
	bool reset = link->all->plan->policy.reset && link->handle.type == UV_TCP;

	if (link->state == LINK_CLOSED || link->state == LINK_CLOSING)
		return;
	/* Announce the end of TLS to the server, if that is possible at once. */
	if (!reset && link->state == LINK_OPEN && link->tls && !link->writing) {
		tls_bye(link->tls);
		flush(link);
	}
	link->state = LINK_CLOSING;
	if (reset && !uv_tcp_close_reset(&link->tcp, on_close))
		return;
	uv_close(&link->handle, on_close);
}

int links_init(struct links *all, uv_loop_t *loop, const struct link_plan *plan,
	       const struct link_events *events)
{
	*all = (struct links){.loop = loop, .plan = plan, .events = events};
	source_begin(&all->sources, plan->port_range, clock_now_ns() * 0x9e3779b97f4a7c15ULL);
	return plan->tls ? tls_buffers_init(&all->tls) : 0;
}

void links_divide(struct links *all, uint32_t first, uint32_t count, uint32_t of)
{
	all->sources.own_ports = source_divide(all->plan->port_range, first, count, of);
}

void links_clear(struct links *all)
{
	tls_buffers_clear(&all->tls);
}

int link_plan_fill(const struct link_settings *settings, const struct sockaddr_storage *address,
		   const char *host, const char *protocol, struct link_plan *ret_plan,
		   char **ret_error)
{
	struct link_plan plan = {
		.address = *address,
		.address_length = address_length(address),
		.policy = settings->policy,
		.timeout_ns = settings->timeout_ns,
		.sampling = settings->sampling && address->ss_family != AF_UNIX,
		.port_range = limits_port_range(),
		.sources = settings->sources,
	};
	int err = source_check(&settings->sources, address->ss_family, ret_error);

	source_settle(&plan.sources, plan.port_range);
	if (!err)
		err = policy_check(&settings->policy, ret_error);
	if (!err && protocol)
		err = tls_context_new(&settings->tls, host, protocol, &plan.tls, ret_error);
	if (!err)
		*ret_plan = plan;
	return err;
}

void link_plan_clear(struct link_plan *plan)
{
	tls_context_free(plan->tls);
	plan->tls = NULL;
}
