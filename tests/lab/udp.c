// SPDX-License-Identifier: MIT
/* The steps of an exchange over UDP. */
#include "udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int make_datagram(struct server *server, const char *payload, size_t length,
			 struct datagram **ret_datagram)
{
	struct datagram *datagram = malloc(sizeof(*datagram) + length);

	if (!datagram)
		return -ENOMEM;
	memset(&datagram->exchange, 0, sizeof(datagram->exchange));
	memcpy(datagram->payload, payload, length);
	request_init(&datagram->request, &server->options->knobs);
	datagram->request.knobs.service_ns =
		server_delay(server, DELAY_SERVICE, datagram->request.knobs.service_ns);
	request_set_payload(&datagram->request, datagram->payload, length, KNOB_SCOPE_DATAGRAM);
	*ret_datagram = datagram;
	return 0;
}

int udp_receive(struct server *server, struct truth_writer *writer, char *buffer,
		uint64_t readable_ns, struct datagram **ret_datagram)
{
	union address peer = {0};
	socklen_t peer_length = sizeof(peer);
	uint64_t begin_ns = truth_now_ns(writer), end_ns;
	ssize_t got = recvfrom(server->fd, buffer, UDP_BUFFER, 0, &peer.any, &peer_length);
	int err = got < 0 ? -errno : 0;

	end_ns = truth_now_ns(writer);
	/* No sender: the socket was shut down to end a blocked read. */
	if (!err && !peer_length)
		err = -ESHUTDOWN;
	if (!err)
		err = make_datagram(server, buffer, (size_t)got, ret_datagram);
	if (err)
		return err;
	(*ret_datagram)->exchange.peer = peer;
	(*ret_datagram)->exchange.readable_ns = readable_ns;
	(*ret_datagram)->exchange.request_bytes = (uint64_t)got;
	exchange_note_read(&(*ret_datagram)->exchange, begin_ns, end_ns);
	counters_add(server->counters, COUNTER_BYTES_IN, (uint64_t)got);
	return 0;
}

void udp_prepare(struct server *server, struct datagram *datagram)
{
	if (datagram->request.knobs.leak)
		server_leak(server);
	datagram->response.head_length = 0;
	protocol_set_body(&datagram->request, &datagram->response);
	response_init(&datagram->response, false);
}

int udp_send(struct server *server, struct truth_writer *writer, struct datagram *datagram)
{
	uint64_t begin_ns = truth_now_ns(writer), end_ns, bytes = 0;
	int progress =
		response_send(&datagram->response, server->fd, &datagram->exchange.peer, &bytes);

	end_ns = truth_now_ns(writer);
	if (progress < 0)
		return progress;
	exchange_note_write(&datagram->exchange, begin_ns, end_ns, bytes);
	counters_add(server->counters, COUNTER_BYTES_OUT, bytes);
	return progress;
}

void udp_finish(struct server *server, struct truth_writer *writer, struct datagram *datagram,
		bool answered)
{
	server_record(server, writer, &datagram->exchange, &datagram->request, answered);
	free(datagram);
}
