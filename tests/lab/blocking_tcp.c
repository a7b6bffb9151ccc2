// SPDX-License-Identifier: MIT
/*
 * TCP connections served by blocking calls: each by its own thread (model `threads`), or one after
 * the other by the accepting thread (`prefork --worker blocking`).
 *
 * read() starts as soon as the last response is written and blocks, so readable_ns is unknown. With
 * --read-delay the calls are poll(), sleep, read(), and readable_ns is when poll() returned.
 * accept() blocks likewise; with --accept-delay the calls are poll(), sleep, accept().
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "blocking.h"
#include "uring.h"

#define BACK_OFF_NS   (100 * NSEC_PER_MSEC)
#define SESSION_STACK (512 * 1024)

struct session {
	struct blocking *blocking;
	pthread_t thread;
	struct accepted accepted;
	struct session *next, *previous;
};

/* Returned by a step instead of -errno: continue. */
#define GO_ON 1

/* Add to `active`; false if the server is stopping. */
static bool session_enter(struct session *session)
{
	struct blocking *blocking = session->blocking;
	bool stopping;

	pthread_mutex_lock(&blocking->lock);
	stopping = blocking_is_stopping(blocking);
	session->previous = NULL;
	session->next = blocking->active;
	if (session->next)
		session->next->previous = session;
	blocking->active = session;
	pthread_mutex_unlock(&blocking->lock);
	return !stopping;
}

/*
 * Called before the descriptor is closed, so that its number cannot belong to another connection at
 * shutdown().
 */
static void session_leave(struct session *session)
{
	struct blocking *blocking = session->blocking;

	pthread_mutex_lock(&blocking->lock);
	*(session->previous ? &session->previous->next : &blocking->active) = session->next;
	if (session->next)
		session->next->previous = session->previous;
	pthread_mutex_unlock(&blocking->lock);
}

void blocking_tcp_stop(struct blocking *blocking)
{
	pthread_mutex_lock(&blocking->lock);
	for (struct session *session = blocking->active; session; session = session->next)
		shutdown(session->accepted.fd, SHUT_RDWR);
	pthread_mutex_unlock(&blocking->lock);
}

static void delay_read(struct blocking *blocking, struct conn *conn)
{
	struct server *server = blocking->server;
	uint64_t delay_ns;

	if (conn->open)
		return;
	delay_ns = server_delay(server, DELAY_READ, server->options->read_delay_ns);
	if (!delay_ns || !blocking_wait_readable(blocking, conn->accepted.fd))
		return;
	conn->readable_ns = truth_now_ns(conn->writer);
	blocking_sleep(blocking, delay_ns, false);
}

/* Return GO_ON for a complete request, 0 for the peer's FIN. */
static int read_request(struct blocking *blocking, struct conn *conn)
{
	int complete;

	while (!(complete = conn_parse(conn))) {
		ssize_t got;

		delay_read(blocking, conn);
		got = conn_read(conn);
		if (got <= 0)
			return (int)got;
	}
	return complete < 0 ? complete : GO_ON;
}

static int write_response(struct blocking *blocking, struct conn *conn)
{
	uint64_t pause_ns = conn->request.knobs.pause_ns;
	int progress;

	while ((progress = conn_write(conn)) != RESPONSE_DONE) {
		if (progress < 0)
			return progress;
		if (progress == RESPONSE_PIECE)
			blocking_sleep(blocking, pause_ns, false);
		if (blocking_is_stopping(blocking))
			return -ESHUTDOWN;
	}
	return GO_ON;
}

/* Wait until the peer has the whole error, at most a second: a reset might overtake it. */
static void linger(struct blocking *blocking, struct conn *conn)
{
	uint64_t deadline = clock_now_ns() + NSEC_PER_SEC;
	const struct timeval second = {.tv_sec = 1};

	shutdown(conn->accepted.fd, SHUT_WR);
	setsockopt(conn->accepted.fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	while (clock_now_ns() < deadline && !blocking_is_stopping(blocking)) {
		conn->input_begin = conn->input_end = 0;
		if (conn_read(conn) <= 0)
			break;
	}
}

/* Serve one exchange. Return GO_ON, or the connection's end in @ret_end. */
static int exchange(struct blocking *blocking, struct conn *conn, enum counter *ret_end)
{
	const struct knobs *knobs = &conn->request.knobs;
	int err = read_request(blocking, conn);
	bool hopeless;

	*ret_end = err == -ENOMEM ? COUNTER_CLOSED_BY_SERVER : conn_end_of(err);
	if (err != GO_ON)
		return err;
	if (knobs->service_ns)
		blocking_sleep(blocking, knobs->service_ns, knobs->spin);
	/* A stop ended the sleep early, so the answer would be wrong. */
	if (blocking_is_stopping(blocking))
		return 0;
	conn_prepare(conn);
	*ret_end = knobs->reset ? COUNTER_RESET_BY_SERVER : COUNTER_RESET_BY_CLIENT;
	if (knobs->reset)
		return 0;
	err = write_response(blocking, conn);
	if (err != GO_ON)
		return err;
	*ret_end = COUNTER_CLOSED_BY_SERVER;
	hopeless = conn_must_linger(conn);
	if (!conn_finish(conn))
		return GO_ON;
	if (hopeless)
		linger(blocking, conn);
	return 0;
}

/* Keep the connection open until the server stops, to ignore the peer's FIN. */
static void park(struct blocking *blocking)
{
	struct pollfd stop = {.fd = blocking->stop_fd, .events = POLLIN};

	while (!blocking_is_stopping(blocking))
		poll(&stop, 1, -1);
}

static void serve(struct session *session, struct truth_writer *writer)
{
	struct blocking *blocking = session->blocking;
	enum counter end = COUNTER_CLOSED_AT_EXIT;
	bool entered = session_enter(session);
	struct conn conn;
	int err = conn_open(&conn, blocking->server, writer, &session->accepted);

	if (err) {
		/* Closed before leaving: a stop shuts down the number's next owner, too. */
		session_leave(session);
		return;
	}
	while (entered && exchange(blocking, &conn, &end) == GO_ON)
		;
	if (end == COUNTER_CLOSED_BY_CLIENT && conn.ignore_fin)
		park(blocking);
	session_leave(session);
	conn_close(&conn, blocking_is_stopping(blocking) ? COUNTER_CLOSED_AT_EXIT : end);
}

static void *session_thread(void *data)
{
	struct session *session = data;
	struct blocking *blocking = session->blocking;
	struct truth_writer writer;

	truth_writer_open(&writer, blocking->server->truth);
	serve(session, &writer);
	truth_writer_close(&writer);
	pthread_mutex_lock(&blocking->lock);
	session->next = blocking->finished;
	blocking->finished = session;
	pthread_cond_signal(&blocking->ended);
	pthread_mutex_unlock(&blocking->lock);
	return NULL;
}

/* Join and free the finished sessions; each thread is at its last instructions, so this is quick. */
static void join_finished(struct blocking *blocking)
{
	struct session *session, *next;

	pthread_mutex_lock(&blocking->lock);
	session = TAKE_PTR(blocking->finished);
	pthread_mutex_unlock(&blocking->lock);
	for (; session; session = next) {
		next = session->next;
		pthread_join(session->thread, NULL);
		blocking->sessions--;
		free(session);
	}
}

void blocking_tcp_join(struct blocking *blocking)
{
	while (blocking->sessions) {
		pthread_mutex_lock(&blocking->lock);
		while (!blocking->finished)
			pthread_cond_wait(&blocking->ended, &blocking->lock);
		pthread_mutex_unlock(&blocking->lock);
		join_finished(blocking);
	}
}

static void start_session(struct blocking *blocking, const struct accepted *accepted)
{
	struct session *session = calloc(1, sizeof(*session));
	pthread_attr_t attributes;
	int err;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, SESSION_STACK);
	if (session) {
		session->blocking = blocking;
		session->accepted = *accepted;
	}
	err = session ? pthread_create(&session->thread, &attributes, session_thread, session)
		      : ENOMEM;
	pthread_attr_destroy(&attributes);
	if (!err) {
		blocking->sessions++;
		return;
	}
	server_complain(blocking->server, -err, "thread");
	free(session);
	close(accepted->fd);
	counters_add(blocking->server->counters, COUNTER_CLOSED_BY_SERVER, 1);
}

static void accept_failed(struct blocking *blocking, int err)
{
	if (blocking_is_stopping(blocking) || err == -EAGAIN || err == -EINTR)
		return;
	/* Another worker was stopped first, and shut the listener down for all. */
	if (err == -EINVAL) {
		blocking_sleep(blocking, BACK_OFF_NS, false);
		return;
	}
	counters_add(blocking->server->counters, COUNTER_ACCEPT_ERRORS, 1);
	if (err == -ECONNABORTED)
		return;
	server_complain(blocking->server, err, "accept");
	blocking_sleep(blocking, BACK_OFF_NS, false);
}

static void handle(struct blocking *blocking, const struct accepted *accepted,
		   struct truth_writer *writer)
{
	struct session session = {.blocking = blocking, .accepted = *accepted};

	if (blocking->thread_per_connection)
		start_session(blocking, accepted);
	else
		serve(&session, writer);
}

/* With --accept-delay: wait, then accept. -EAGAIN: another worker did, or the server stops. */
static int accept_late(struct blocking *blocking, struct truth_writer *writer,
		       struct accepted *ret_accepted)
{
	struct server *server = blocking->server;
	uint64_t delay_ns = server_delay(server, DELAY_ACCEPT, server->options->accept_delay_ns);
	uint64_t turn, readable_ns;
	int err;

	if (!blocking_wait_turn(blocking, delay_ns, &turn, &readable_ns))
		return -EAGAIN;
	err = conn_accept(server, writer, 0, ret_accepted);
	turn_end(&server->shared->turn, turn);
	return err;
}

void *blocking_tcp(void *data)
{
	struct blocking *blocking = data;
	bool late = blocking->server->options->accept_delay_ns;
	struct truth_writer writer;
	struct accepted accepted;

	truth_writer_open(&writer, blocking->server->truth);
	while (!blocking_is_stopping(blocking)) {
		int err = late ? accept_late(blocking, &writer, &accepted)
			       : conn_accept(blocking->server, &writer, 0, &accepted);

		if (err)
			accept_failed(blocking, err);
		else
			handle(blocking, &accepted, &writer);
		join_finished(blocking);
	}
	uring_close();
	truth_writer_close(&writer);
	return NULL;
}
