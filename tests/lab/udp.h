/* SPDX-License-Identifier: MIT */
/* The steps of an exchange over UDP, each around one system call. */
#ifndef LAB_UDP_H
#define LAB_UDP_H

#include "server.h"

struct datagram {
	struct exchange exchange;
	struct request request;
	struct response response;
	char payload[]; /* of the received length */
};

#define UDP_BUFFER 65536

/*
 * Receive one datagram through @buffer (UDP_BUFFER bytes). @readable_ns: when it was known to be
 * there, 0 if unknown. The caller frees @ret_datagram. -errno, -EAGAIN without a datagram.
 */
int udp_receive(struct server *server, struct truth_writer *writer, char *buffer,
		uint64_t readable_ns, struct datagram **ret_datagram);

/* Send one piece: enum response_progress or -errno. */
int udp_send(struct server *server, struct truth_writer *writer, struct datagram *datagram);

/* Make the answer, ready to be sent. */
void udp_prepare(struct server *server, struct datagram *datagram);

void udp_finish(struct server *server, struct truth_writer *writer, struct datagram *datagram,
		bool answered);

#endif
