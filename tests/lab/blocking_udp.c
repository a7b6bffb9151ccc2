/* SPDX-License-Identifier: MIT */
/*
 * UDP by blocking calls: several threads (or processes) share one socket, and each answers its
 * datagram before it receives another. With --read-delay it is poll(), sleep, recvfrom().
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "blocking.h"
#include "udp.h"

static void wait_writable(struct blocking *blocking)
{
	struct pollfd fds[] = {{.fd = blocking->server->fd, .events = POLLOUT},
			       {.fd = blocking->stop_fd, .events = POLLIN}};

	poll(fds, 2, -1);
}

/* True if the whole answer was sent. */
static bool answer(struct blocking *blocking, struct truth_writer *writer,
		   struct datagram *datagram)
{
	const struct knobs *knobs = &datagram->request.knobs;
	int progress = RESPONSE_MORE;

	if (knobs->service_ns)
		blocking_sleep(blocking, knobs->service_ns, knobs->spin);
	udp_prepare(blocking->server, datagram);
	while (progress != RESPONSE_DONE) {
		progress = udp_send(blocking->server, writer, datagram);
		if (progress == -EAGAIN && !blocking_is_stopping(blocking))
			wait_writable(blocking);
		else if (progress < 0)
			return false;
		else if (progress == RESPONSE_PIECE)
			blocking_sleep(blocking, knobs->pause_ns, false);
	}
	return true;
}

/* 0 if not known. */
static uint64_t delay_read(struct blocking *blocking, const struct truth_writer *writer)
{
	uint64_t delay_ns = blocking->server->options->read_delay_ns, readable_ns;

	if (!delay_ns || !blocking_wait_readable(blocking, blocking->server->fd))
		return 0;
	readable_ns = truth_now_ns(writer);
	blocking_sleep(blocking, delay_ns, false);
	return readable_ns;
}

static void serve_one(struct blocking *blocking, struct truth_writer *writer, char *buffer)
{
	uint64_t readable_ns = delay_read(blocking, writer);
	struct datagram *datagram;
	int err = udp_receive(blocking->server, writer, buffer, readable_ns, &datagram);

	if (!err)
		udp_finish(blocking->server, writer, datagram, answer(blocking, writer, datagram));
	else if (err != -EAGAIN && err != -EINTR && !blocking_is_stopping(blocking))
		server_complain(blocking->server, err, "receive");
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
