// SPDX-License-Identifier: MIT
/* Model `event`: one loop, one thread. Also run by each event worker of `prefork`. */
#include <err.h>
#include <string.h>
#include <sys/epoll.h>

#include "event.h"

struct control {
	struct source source;
	struct server *server;
	struct loop *loop;
};

static void on_control(struct source *source, uint32_t events)
{
	struct control *control = container_of(source, struct control, source);

	(void)events;
	if (server_control(control->server))
		control->loop->stop = true;
}

static int serve_tcp(struct server *server, struct loop *loop, struct truth_writer *writer)
{
	struct event_tcp tcp;
	int err = event_tcp_open(&tcp, server, loop, writer);

	if (err)
		return err;
	server_announce(server);
	err = loop_run(loop);
	event_tcp_close(&tcp);
	return err;
}

static int serve_udp(struct server *server, struct loop *loop, struct truth_writer *writer)
{
	struct event_udp udp;
	int err = event_udp_open(&udp, server, loop, writer);

	if (err)
		return err;
	server_announce(server);
	err = loop_run(loop);
	event_udp_close(&udp);
	return err;
}

int event_run(struct server *server)
{
	struct control control = {.source.ready = on_control, .server = server};
	struct truth_writer writer;
	struct loop loop;
	int err = loop_open(&loop);

	if (err)
		return err;
	control.loop = &loop;
	truth_writer_open(&writer, server->truth);
	err = loop_watch(&loop, &control.source, server->control, EPOLLIN);
	if (!err)
		err = server->protocol ? serve_tcp(server, &loop, &writer)
				       : serve_udp(server, &loop, &writer);
	truth_writer_close(&writer);
	loop_close(&loop);
	return err;
}

int model_event(struct server *server)
{
	int err = event_run(server);

	if (err)
		warnx("event loop: %s", strerror(-err));
	return err;
}
