// SPDX-License-Identifier: MIT
/*
 * TCP connections in an epoll loop. A connection is always in one state. The next action is in a
 * table of steps, each of which continues at once or waits for the socket or a timer.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "event.h"

#define ACCEPTS_PER_ROUND 64
#define BACK_OFF_NS	  (100 * NSEC_PER_MSEC)
#define LINGER_NS	  NSEC_PER_SEC

enum state {
	STATE_IDLE,  /* waits for the first byte of a request */
	STATE_READ,  /* there is something to read */
	STATE_PARSE, /* something was read, or is left */
	STATE_SERVE, /* the request is known: the service time starts */
	STATE_ANSWER,
	STATE_WRITE,
	STATE_LINGER, /* all is written, waits for the peer's FIN */
	STATE_PARKED, /* the peer's FIN is ignored */
	STATE_COUNT
};

struct event_conn {
	struct event_tcp *tcp;
	struct source source;
	struct timer timer;
	struct event_conn *next, *previous;
	enum state state;
	uint32_t wanted; /* events watched by epoll */
	struct conn conn;
};

enum step {
	STEP_ON,   /* take the next one */
	STEP_WAIT, /* a callback follows */
	STEP_GONE, /* the connection is closed and freed */
};

static void want(struct event_conn *ec, uint32_t events)
{
	if (ec->wanted == events)
		return;
	loop_change(ec->tcp->loop, &ec->source, ec->conn.accepted.fd, events);
	ec->wanted = events;
}

static enum step end(struct event_conn *ec, enum counter how)
{
	loop_stop_timer(ec->tcp->loop, &ec->timer);
	conn_close(&ec->conn, how);
	*(ec->previous ? &ec->previous->next : &ec->tcp->conns) = ec->next;
	if (ec->next)
		ec->next->previous = ec->previous;
	free(ec);
	return STEP_GONE;
}

/* Pause the connection for a while; then its state is @state. */
static enum step wait_for(struct event_conn *ec, uint64_t delay_ns, enum state state)
{
	ec->state = state;
	if (loop_start_timer(ec->tcp->loop, &ec->timer, delay_ns))
		return end(ec, COUNTER_CLOSED_BY_SERVER);
	want(ec, 0);
	return STEP_WAIT;
}

static enum step step_idle(struct event_conn *ec)
{
	struct server *server = ec->tcp->server;
	uint64_t delay_ns = server_delay(server, DELAY_READ, server->options->read_delay_ns);

	ec->conn.readable_ns = ec->tcp->loop->now_ns;
	if (delay_ns)
		return wait_for(ec, delay_ns, STATE_READ);
	ec->state = STATE_READ;
	return STEP_ON;
}

static enum step peer_fin(struct event_conn *ec)
{
	if (!ec->conn.ignore_fin)
		return end(ec, COUNTER_CLOSED_BY_CLIENT);
	ec->state = STATE_PARKED;
	/* Not even a reset may wake it: it stays as it is until the end. */
	loop_forget(ec->tcp->loop, ec->conn.accepted.fd);
	return STEP_WAIT;
}

static enum step step_read(struct event_conn *ec)
{
	ssize_t got = conn_read(&ec->conn);

	if (got == -EAGAIN) {
		want(ec, EPOLLIN);
		return STEP_WAIT;
	}
	if (got == 0)
		return peer_fin(ec);
	if (got < 0)
		return end(ec, conn_end_of((int)got));
	ec->state = STATE_PARSE;
	return STEP_ON;
}

static enum step step_parse(struct event_conn *ec)
{
	int complete = conn_parse(&ec->conn);

	if (complete < 0)
		return end(ec, COUNTER_CLOSED_BY_SERVER);
	if (complete) {
		ec->state = STATE_SERVE;
		return STEP_ON;
	}
	ec->state = ec->conn.open ? STATE_READ : STATE_IDLE;
	want(ec, EPOLLIN);
	return STEP_WAIT;
}

static enum step step_serve(struct event_conn *ec)
{
	const struct knobs *knobs = &ec->conn.request.knobs;

	ec->state = STATE_ANSWER;
	if (!knobs->service_ns)
		return STEP_ON;
	if (!knobs->spin && !knobs->block)
		return wait_for(ec, knobs->service_ns, STATE_ANSWER);
	server_sleep(knobs->service_ns, knobs->spin);
	return STEP_ON;
}

static enum step step_answer(struct event_conn *ec)
{
	conn_prepare(&ec->conn);
	if (ec->conn.request.knobs.reset)
		return end(ec, COUNTER_RESET_BY_SERVER);
	ec->state = STATE_WRITE;
	return STEP_ON;
}

static enum step written(struct event_conn *ec)
{
	bool linger = conn_must_linger(&ec->conn);

	if (!conn_finish(&ec->conn)) {
		ec->state = STATE_PARSE;
		return STEP_ON;
	}
	if (!linger)
		return end(ec, COUNTER_CLOSED_BY_SERVER);
	shutdown(ec->conn.accepted.fd, SHUT_WR);
	if (wait_for(ec, LINGER_NS, STATE_LINGER) == STEP_GONE)
		return STEP_GONE;
	want(ec, EPOLLIN);
	return STEP_WAIT;
}

static enum step step_write(struct event_conn *ec)
{
	int progress = conn_write(&ec->conn);
	uint64_t pause_ns = ec->conn.request.knobs.pause_ns;

	if (progress == -EAGAIN) {
		want(ec, EPOLLOUT);
		return STEP_WAIT;
	}
	if (progress < 0)
		return end(ec, conn_end_of(progress));
	if (progress == RESPONSE_DONE)
		return written(ec);
	if (progress == RESPONSE_PIECE && pause_ns)
		return wait_for(ec, pause_ns, STATE_WRITE);
	return STEP_ON;
}

/*
 * Wait until the peer has the whole error, or its time is over: a reset might overtake the error.
 */
static enum step step_linger(struct event_conn *ec)
{
	ssize_t got;

	ec->conn.input_begin = ec->conn.input_end = 0;
	got = conn_read(&ec->conn);
	if (got > 0 || got == -EAGAIN)
		return STEP_WAIT;
	return end(ec, COUNTER_CLOSED_BY_SERVER);
}

static enum step step_parked(struct event_conn *ec)
{
	(void)ec;
	return STEP_WAIT;
}

static enum step (*const steps[STATE_COUNT])(struct event_conn *) = {
	[STATE_IDLE] = step_idle,     [STATE_READ] = step_read,	    [STATE_PARSE] = step_parse,
	[STATE_SERVE] = step_serve,   [STATE_ANSWER] = step_answer, [STATE_WRITE] = step_write,
	[STATE_LINGER] = step_linger, [STATE_PARKED] = step_parked,
};

static void go_on(struct event_conn *ec)
{
	while (steps[ec->state](ec) == STEP_ON)
		;
}

static void on_ready(struct source *source, uint32_t events)
{
	struct event_conn *ec = container_of(source, struct event_conn, source);

	/* Called although no event is watched: the connection is reset while a timer runs. */
	if (!ec->wanted && (events & (EPOLLERR | EPOLLHUP)))
		end(ec, COUNTER_RESET_BY_CLIENT);
	else if (ec->wanted)
		go_on(ec);
}

static void on_conn_timer(struct timer *timer)
{
	struct event_conn *ec = container_of(timer, struct event_conn, timer);

	if (ec->state == STATE_LINGER)
		end(ec, COUNTER_CLOSED_BY_SERVER);
	else
		go_on(ec);
}

static void add_conn(struct event_tcp *tcp, const struct accepted *accepted)
{
	struct event_conn *ec = calloc(1, sizeof(*ec));

	if (!ec || conn_open(&ec->conn, tcp->server, tcp->writer, accepted)) {
		server_complain(tcp->server, -ENOMEM, "connection");
		if (!ec) {
			close(accepted->fd);
			counters_add(tcp->server->counters, COUNTER_CLOSED_BY_SERVER, 1);
		}
		free(ec);
		return;
	}
	ec->tcp = tcp;
	ec->source.ready = on_ready;
	ec->timer.fire = on_conn_timer;
	ec->wanted = EPOLLIN;
	ec->next = tcp->conns;
	if (ec->next)
		ec->next->previous = ec;
	tcp->conns = ec;
	if (loop_watch(tcp->loop, &ec->source, accepted->fd, EPOLLIN))
		end(ec, COUNTER_CLOSED_BY_SERVER);
}

/* Ignore the listener until the timer fires. */
static void pause_accept(struct event_tcp *tcp, uint64_t delay_ns)
{
	if (!loop_start_timer(tcp->loop, &tcp->timer, delay_ns))
		loop_change(tcp->loop, &tcp->source, tcp->server->fd, 0);
}

/* Return true if there may be another connection. */
static bool accept_one(struct event_tcp *tcp)
{
	struct accepted accepted;
	int err = conn_accept(tcp->server, tcp->writer, SOCK_NONBLOCK, &accepted);

	if (!err) {
		add_conn(tcp, &accepted);
		return true;
	}
	if (err == -EAGAIN)
		return false;
	counters_add(tcp->server->counters, COUNTER_ACCEPT_ERRORS, 1);
	if (!conn_accept_is_exhausted(err))
		return true; /* only that connection was aborted */
	server_complain(tcp->server, err, "accept");
	pause_accept(tcp, BACK_OFF_NS);
	return false;
}

static void delay_accept(struct event_tcp *tcp, uint64_t delay_ns)
{
	struct turn_wait turn = server_take_turn(tcp->server, delay_ns);

	tcp->turn = turn.mine;
	if (turn.wait_ns)
		pause_accept(tcp, turn.wait_ns);
}

static void on_listener(struct source *source, uint32_t events)
{
	struct event_tcp *tcp = container_of(source, struct event_tcp, source);
	uint64_t delay_ns =
		server_delay(tcp->server, DELAY_ACCEPT, tcp->server->options->accept_delay_ns);

	(void)events;
	if (delay_ns)
		delay_accept(tcp, delay_ns);
	else
		for (int i = 0; i < ACCEPTS_PER_ROUND && accept_one(tcp); i++)
			;
}

static void on_accept_timer(struct timer *timer)
{
	struct event_tcp *tcp = container_of(timer, struct event_tcp, timer);

	struct turn *turn = &tcp->server->shared->turn;

	/* Watch again before accepting: a new back-off in accept_one() must last. */
	loop_change(tcp->loop, &tcp->source, tcp->server->fd, EPOLLIN);
	if (turn_is_mine(turn, tcp->turn))
		accept_one(tcp);
	turn_end(turn, tcp->turn);
	tcp->turn = 0;
}

int event_tcp_open(struct event_tcp *tcp, struct server *server, struct loop *loop,
		   struct truth_writer *writer)
{
	*tcp = (struct event_tcp){
		.server = server,
		.loop = loop,
		.writer = writer,
		.source.ready = on_listener,
		.timer.fire = on_accept_timer,
	};
	return loop_watch(loop, &tcp->source, server->fd, EPOLLIN);
}

void event_tcp_close(struct event_tcp *tcp)
{
	struct event_conn *next;

	for (struct event_conn *ec = tcp->conns; ec; ec = next) {
		next = ec->next;
		end(ec, COUNTER_CLOSED_AT_EXIT);
	}
	loop_stop_timer(tcp->loop, &tcp->timer);
}
