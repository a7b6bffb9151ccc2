// SPDX-License-Identifier: MIT
/* The steps of an exchange on a TCP connection, each around one system call of its own. */
#include "conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uring.h"

#define INPUT_START 4096
#define INPUT_MOST  65536 /* automatic growth ends here; protocols may ask for more */

/* Return the descriptor or -errno. */
static int call_accept(const struct server *server, int flags, union address *peer)
{
	socklen_t length = sizeof(*peer);
	int fd;

	switch ((enum accept_call)server->options->accept_call) {
	case ACCEPT_CALL_ACCEPT:
		fd = accept(server->fd, &peer->any, &length);
		return fd < 0 ? -errno : fd;
	case ACCEPT_CALL_URING:
	case ACCEPT_CALL_MULTISHOT:
		return uring_accept(server->fd,
				    server->options->accept_call == ACCEPT_CALL_MULTISHOT);
	default:
		fd = accept4(server->fd, &peer->any, &length, flags | SOCK_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
}

/* A multishot accept in io_uring does not report the peer. */
static void ask_for_peer(int fd, union address *peer)
{
	socklen_t length = sizeof(*peer);

	if (!peer->any.sa_family)
		getpeername(fd, &peer->any, &length);
}

int conn_accept(struct server *server, struct truth_writer *writer, int flags,
		struct accepted *ret_accepted)
{
	union address peer = {0};
	uint64_t begin_ns = truth_now_ns(writer);
	int fd = call_accept(server, flags, &peer);
	uint64_t end_ns = truth_now_ns(writer);
	const int on = 1;

	if (fd < 0)
		return fd;
	ask_for_peer(fd, &peer);
	/* Pieces must leave when they are written. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	counters_add(server->counters, COUNTER_ACCEPTED, 1);
	*ret_accepted = (struct accepted){fd, peer, begin_ns, end_ns};
	return 0;
}

bool conn_accept_is_exhausted(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM;
}

static void begin_exchange(struct conn *conn)
{
	struct exchange *exchange = &conn->exchange;

	memset(exchange, 0, sizeof(*exchange));
	exchange->connection = conn->number;
	exchange->index = conn->exchanges++;
	exchange->peer = conn->accepted.peer;
	exchange->accept_begin_ns = conn->accepted.begin_ns;
	exchange->accept_end_ns = conn->accepted.end_ns;
	exchange->readable_ns = conn->readable_ns;
	exchange->pipelined = !conn->fresh;
	conn->open = true;
	/* One of --one-in requests, not one of --one-in connections that may send one. */
	conn->request.knobs.service_ns =
		server_delay(conn->server, DELAY_SERVICE, conn->request.knobs.service_ns);
}

static void await_request(struct conn *conn)
{
	conn->open = false;
	conn->fresh = false;
	request_init(&conn->request, &conn->server->options->knobs);
	conn->server->protocol->begin(conn->state);
}

int conn_open(struct conn *conn, struct server *server, struct truth_writer *writer,
	      const struct accepted *accepted)
{
	*conn = (struct conn){
		.server = server,
		.writer = writer,
		.accepted = *accepted,
		.ignore_fin = server->options->knobs.ignore_fin,
		.input_size = INPUT_START,
	};
	conn->input = malloc(INPUT_START);
	conn->state = calloc(1, sizeof(*conn->state));
	if (!conn->input || !conn->state) {
		conn_close(conn, COUNTER_CLOSED_BY_SERVER);
		return -ENOMEM;
	}
	conn->number = atomic_fetch_add(&server->shared->connections, 1) + 1;
	server->protocol->init(conn->state, &conn->request);
	await_request(conn);
	return 0;
}

static void set_reset(int fd)
{
	const struct linger abort = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
}

void conn_close(struct conn *conn, enum counter how)
{
	if (conn->open)
		server_record(conn->server, conn->writer, &conn->exchange, &conn->request, false);
	conn->open = false;
	if (how == COUNTER_RESET_BY_SERVER)
		set_reset(conn->accepted.fd);
	close(conn->accepted.fd);
	counters_add(conn->server->counters, how, 1);
	free(conn->input);
	free(conn->state);
}

enum counter conn_end_of(int err)
{
	return err ? COUNTER_RESET_BY_CLIENT : COUNTER_CLOSED_BY_CLIENT;
}

/* Make room for at least one more byte, and for @size in all. */
static int reserve_input(struct conn *conn, size_t size)
{
	char *input;

	if (conn->input_begin) {
		conn->input_end -= conn->input_begin;
		memmove(conn->input, conn->input + conn->input_begin, conn->input_end);
		conn->input_begin = 0;
	}
	if (size <= conn->input_size)
		return 0;
	input = realloc(conn->input, size);
	if (!input)
		return -ENOMEM;
	conn->input = input;
	conn->input_size = size;
	return 0;
}

static void note_read(struct conn *conn, size_t bytes)
{
	counters_add(conn->server->counters, COUNTER_BYTES_IN, bytes);
	conn->input_end += bytes;
	conn->fresh = true;
	/* A full input means large requests: more room, fewer reads. */
	if (conn->input_end == conn->input_size && conn->input_size < INPUT_MOST)
		reserve_input(conn, 4 * conn->input_size);
}

ssize_t conn_read(struct conn *conn)
{
	uint64_t begin_ns, end_ns;
	ssize_t got;
	int err;

	do {
		begin_ns = truth_now_ns(conn->writer);
		got = recv(conn->accepted.fd, conn->input + conn->input_end,
			   conn->input_size - conn->input_end, 0);
		err = got < 0 ? -errno : 0;
		end_ns = truth_now_ns(conn->writer);
	} while (err == -EINTR);
	if (got <= 0)
		return got ? err : 0;
	conn->read_begin_ns = begin_ns;
	conn->read_end_ns = end_ns;
	note_read(conn, (size_t)got);
	return got;
}

/* A few bytes into a socket whose peer waits: they fit, or the connection is lost. */
static void send_interim(struct conn *conn, const char *text)
{
	ssize_t sent = send(conn->accepted.fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent > 0)
		counters_add(conn->server->counters, COUNTER_BYTES_OUT, (uint64_t)sent);
}

int conn_parse(struct conn *conn)
{
	size_t length = conn->input_end - conn->input_begin;
	struct protocol_need need = {0};
	int complete;

	if (!length) {
		conn->input_begin = conn->input_end = 0;
		return 0;
	}
	if (!conn->open)
		begin_exchange(conn);
	exchange_note_read(&conn->exchange, conn->read_begin_ns, conn->read_end_ns);
	complete = conn->server->protocol->parse(conn->state, &conn->request,
						 conn->input + conn->input_begin, length, &need);
	conn->input_begin += need.consumed;
	conn->exchange.request_bytes += need.consumed;
	if (need.interim)
		send_interim(conn, need.interim);
	return complete ? 1 : reserve_input(conn, need.room);
}

void conn_prepare(struct conn *conn)
{
	const struct knobs *knobs = &conn->request.knobs;

	conn->ignore_fin = knobs->ignore_fin;
	if (knobs->leak)
		server_leak(conn->server);
	conn->server->protocol->dress(&conn->request, &conn->response);
	response_init(&conn->response, knobs->early_close);
}

int conn_write(struct conn *conn)
{
	uint64_t begin_ns = truth_now_ns(conn->writer), end_ns, bytes = 0;
	int progress = response_send(&conn->response, conn->accepted.fd, NULL, &bytes);

	end_ns = truth_now_ns(conn->writer);
	if (progress < 0)
		return progress;
	exchange_note_write(&conn->exchange, begin_ns, end_ns, bytes);
	counters_add(conn->server->counters, COUNTER_BYTES_OUT, bytes);
	return progress;
}

bool conn_finish(struct conn *conn)
{
	const struct request *request = &conn->request;
	bool close = request->last || request->hopeless || request->knobs.close ||
		     request->knobs.early_close;

	server_record(conn->server, conn->writer, &conn->exchange, request,
		      !request->knobs.early_close);
	await_request(conn);
	return close;
}

bool conn_must_linger(const struct conn *conn)
{
	return conn->request.hopeless;
}
