// SPDX-License-Identifier: MIT
/*
 * UDP by blocking calls: several threads (or processes) share one socket, and each answers its
 * datagram before it receives another. With --read-delay the calls are poll(), sleep, recvfrom().
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "blocking.h"
#include "udp.h"

#define BACK_OFF_NS (100 * NSEC_PER_MSEC)

static void wait_writable(struct blocking *blocking)
{
	struct pollfd fds[] = {{.fd = blocking->server->fd, .events = POLLOUT},
			       {.fd = blocking->stop_fd, .events = POLLIN}};

	poll(fds, 2, -1);
}

static bool answer(struct blocking *blocking, struct truth_writer *writer,
		   struct datagram *datagram)
{
	const struct knobs *knobs = &datagram->request.knobs;
	int progress = RESPONSE_MORE;

	if (knobs->service_ns)
		blocking_sleep(blocking, knobs->service_ns, knobs->spin);
	if (blocking_is_stopping(blocking))
		return false;
	udp_prepare(blocking->server, datagram);
	while (progress != RESPONSE_DONE) {
		progress = udp_send(blocking->server, writer, datagram);
		if (progress == -EAGAIN && !blocking_is_stopping(blocking))
			wait_writable(blocking);
		else if (progress < 0)
			return false;
		else if (progress == RESPONSE_PIECE)
			blocking_sleep(blocking, knobs->pause_ns, false);
		if (knobs->pause_ns && blocking_is_stopping(blocking))
			return progress == RESPONSE_DONE;
	}
	return true;
}

/* With --read-delay: wait, then read. -EAGAIN: another thread did, or the server stops. */
static int receive_late(struct blocking *blocking, struct truth_writer *writer, char *buffer,
			struct datagram **ret_datagram)
{
	struct server *server = blocking->server;
	uint64_t delay_ns = server_delay(server, DELAY_READ, server->options->read_delay_ns);
	uint64_t turn, readable_ns;
	int err;

	if (!blocking_wait_turn(blocking, delay_ns, &turn, &readable_ns))
		return -EAGAIN;
	err = udp_receive(server, writer, buffer, readable_ns, ret_datagram);
	turn_end(&server->shared->turn, turn);
	return err;
}

static void serve_one(struct blocking *blocking, struct truth_writer *writer, char *buffer)
{
	struct server *server = blocking->server;
	struct datagram *datagram;
	int err = server->options->read_delay_ns
			  ? receive_late(blocking, writer, buffer, &datagram)
			  : udp_receive(server, writer, buffer, 0, &datagram);

	if (!err)
		udp_finish(server, writer, datagram, answer(blocking, writer, datagram));
	else if (err == -ESHUTDOWN)
		/* This worker or another one is stopping: the socket is shut down for all. */
		blocking_sleep(blocking, BACK_OFF_NS, false);
	else if (err != -EAGAIN && err != -EINTR && !blocking_is_stopping(blocking))
		server_complain(server, err, "receive");
}

void *blocking_udp(void *data)
{
	struct blocking *blocking = data;
	autofree char *buffer = malloc(UDP_BUFFER);
	struct truth_writer writer;

	if (!buffer) {
		server_complain(blocking->server, -ENOMEM, "receive");
		return NULL;
	}
	truth_writer_open(&writer, blocking->server->truth);
	while (!blocking_is_stopping(blocking))
		serve_one(blocking, &writer, buffer);
	truth_writer_close(&writer);
	return NULL;
}
