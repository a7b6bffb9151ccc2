// SPDX-License-Identifier: MIT
/* Requests waiting to leave on a socket: see flow.h. */
#include "flow.h"

#include <errno.h>
#include <string.h>

#include "sojourn/clock.h"

void udp_queue_add(struct udp_socket *socket, uint32_t slot)
{
	struct udp *udp = socket->udp;
	struct message *message = &udp->plan->message;
	struct udp_exchange *exchange = &udp->exchanges[slot];
	uint64_t key = 0;
	size_t length;
	char *bytes =
		message_next(message, &udp->room, slot, engine_values(udp->host, slot), &length);

	if (message->fixed && udp->room.bytes) /* the slot's copy, for its identifier */
		bytes = memcpy(udp->room.bytes + slot * udp->room.size, bytes, length);
	if (udp->plan->match.kind == MATCH_ID) {
		while (!ledger_has_room(&socket->ledger, socket->next_id))
			socket->next_id++;
		match_write(&udp->plan->match, socket->next_id++, bytes);
	}
	match_request_key(&udp->plan->match, bytes, length, &key);
	exchange->request = (struct iovec){bytes, length};
	exchange->entry = ledger_add(&socket->ledger, key, slot, udp->plan->replies);
	exchange->state = UDP_QUEUED;
	socket->queue[socket->queued++] = slot;
}

static void note_sent(struct udp_socket *socket, uint32_t count, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		struct udp_exchange *exchange = &socket->udp->exchanges[socket->queue[i]];

		exchange->state = UDP_PENDING;
		exchange->start_ns = exchange->sent_ns = now_ns;
		exchange->bytes_out = exchange->request.iov_len;
	}
	socket->served += count;
	socket->under_way += count;
}

static void take_out(struct udp_socket *socket, uint32_t first, uint32_t count)
{
	uint32_t rest = socket->queued - first - count;

	if (rest)
		memmove(&socket->queue[first], &socket->queue[first + count],
			rest * sizeof(socket->queue[0]));
	socket->queued -= count;
}

static int send_one(struct udp_socket *socket, uint64_t *ret_now_ns)
{
	const struct iovec *request = &socket->udp->exchanges[socket->queue[0]].request;

	*ret_now_ns = clock_now_ns();
	return datagram_send_one(socket->fd, request);
}

static int send_several(struct udp_socket *socket, uint64_t *ret_now_ns)
{
	uint32_t count = socket->queued < DATAGRAM_BATCH ? socket->queued : DATAGRAM_BATCH;
	struct iovec list[DATAGRAM_BATCH];

	for (uint32_t i = 0; i < count; i++)
		list[i] = socket->udp->exchanges[socket->queue[i]].request;
	*ret_now_ns = clock_now_ns();
	return datagram_send(socket->udp->io, socket->fd, list, count);
}

int udp_queue_send(struct udp_socket *socket)
{
	uint64_t now_ns;
	int sent = socket->queued == 1 ? send_one(socket, &now_ns) : send_several(socket, &now_ns);

	/* A queue on the way was full, which only IP_RECVERR reports. The datagram is lost. */
	if (sent == -ENOBUFS)
		sent = 1;
	if (sent > 0) {
		note_sent(socket, (uint32_t)sent, now_ns);
		take_out(socket, 0, (uint32_t)sent);
	}
	return sent;
}

void udp_queue_remove(struct udp_socket *socket, uint32_t slot)
{
	uint32_t i = 0;

	while (socket->queue[i] != slot)
		i++;
	take_out(socket, i, 1);
	socket->udp->exchanges[slot].entry->state = LEDGER_FREE;
}
