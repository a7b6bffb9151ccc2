// SPDX-License-Identifier: MIT
/* UDP in an epoll loop: every datagram is a task of its own until it is answered. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "event.h"
#include "udp.h"

#define READS_PER_ROUND 64
#define RETRY_NS	(100 * NSEC_PER_USEC) /* after a full send buffer */

struct event_task {
	struct event_udp *udp;
	struct timer timer;
	struct event_task *next, *previous;
	struct datagram *datagram;
	bool prepared;
};

static void end(struct event_task *task, bool answered)
{
	struct event_udp *udp = task->udp;

	loop_stop_timer(udp->loop, &task->timer);
	udp_finish(udp->server, udp->writer, task->datagram, answered);
	*(task->previous ? &task->previous->next : &udp->tasks) = task->next;
	if (task->next)
		task->next->previous = task->previous;
	free(task);
}

static void wait_for(struct event_task *task, uint64_t delay_ns)
{
	if (loop_start_timer(task->udp->loop, &task->timer, delay_ns))
		end(task, false);
}

/* Send until all is sent or a pause is due. */
static void answer(struct event_task *task)
{
	struct event_udp *udp = task->udp;
	uint64_t pause_ns = task->datagram->request.knobs.pause_ns;
	int progress;

	if (!task->prepared)
		udp_prepare(udp->server, task->datagram);
	task->prepared = true;
	do
		progress = udp_send(udp->server, udp->writer, task->datagram);
	while (progress == RESPONSE_PIECE && !pause_ns);
	if (progress == RESPONSE_PIECE)
		wait_for(task, pause_ns);
	else if (progress == -EAGAIN || progress == -ENOBUFS)
		wait_for(task, RETRY_NS);
	else
		end(task, progress == RESPONSE_DONE);
}

static void on_task_timer(struct timer *timer)
{
	answer(container_of(timer, struct event_task, timer));
}

static void serve(struct event_task *task)
{
	const struct knobs *knobs = &task->datagram->request.knobs;

	if (knobs->service_ns && !knobs->spin && !knobs->block) {
		wait_for(task, knobs->service_ns);
		return;
	}
	if (knobs->service_ns)
		server_sleep(knobs->service_ns, knobs->spin);
	answer(task);
}

static void begin(struct event_udp *udp, struct datagram *datagram)
{
	struct event_task *task = calloc(1, sizeof(*task));

	if (!task) {
		udp_finish(udp->server, udp->writer, datagram, false);
		return;
	}
	task->udp = udp;
	task->timer.fire = on_task_timer;
	task->datagram = datagram;
	task->next = udp->tasks;
	if (task->next)
		task->next->previous = task;
	udp->tasks = task;
	serve(task);
}

/* Return true if there may be another datagram. */
static bool receive_one(struct event_udp *udp, uint64_t readable_ns)
{
	char buffer[UDP_BUFFER];
	struct datagram *datagram;
	int err = udp_receive(udp->server, udp->writer, buffer, readable_ns, &datagram);

	if (!err)
		begin(udp, datagram);
	else if (err != -EAGAIN)
		server_complain(udp->server, err, "receive");
	return !err;
}

static void delay_read(struct event_udp *udp, uint64_t delay_ns)
{
	struct turn_wait turn = server_take_turn(udp->server, delay_ns);

	udp->turn = turn.mine;
	if (turn.wait_ns && !loop_start_timer(udp->loop, &udp->timer, turn.wait_ns))
		loop_change(udp->loop, &udp->source, udp->server->fd, 0);
}

static void on_socket(struct source *source, uint32_t events)
{
	struct event_udp *udp = container_of(source, struct event_udp, source);
	uint64_t delay_ns =
		server_delay(udp->server, DELAY_READ, udp->server->options->read_delay_ns);

	(void)events;
	udp->readable_ns = udp->loop->now_ns;
	if (delay_ns)
		delay_read(udp, delay_ns);
	else
		for (int i = 0; i < READS_PER_ROUND && receive_one(udp, udp->readable_ns); i++)
			;
}

static void on_read_timer(struct timer *timer)
{
	struct event_udp *udp = container_of(timer, struct event_udp, timer);

	struct turn *turn = &udp->server->shared->turn;

	loop_change(udp->loop, &udp->source, udp->server->fd, EPOLLIN);
	if (turn_is_mine(turn, udp->turn))
		receive_one(udp, udp->readable_ns);
	turn_end(turn, udp->turn);
	udp->turn = 0;
}

int event_udp_open(struct event_udp *udp, struct server *server, struct loop *loop,
		   struct truth_writer *writer)
{
	*udp = (struct event_udp){
		.server = server,
		.loop = loop,
		.writer = writer,
		.source.ready = on_socket,
		.timer.fire = on_read_timer,
	};
	return loop_watch(loop, &udp->source, server->fd, EPOLLIN);
}

void event_udp_close(struct event_udp *udp)
{
	struct event_task *next;

	for (struct event_task *task = udp->tasks; task; task = next) {
		next = task->next;
		end(task, false);
	}
	loop_stop_timer(udp->loop, &udp->timer);
}
