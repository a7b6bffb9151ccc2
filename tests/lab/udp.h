/* SPDX-License-Identifier: MIT */
/* The steps of an exchange over UDP, each around one system call. */
#ifndef LAB_UDP_H
#define LAB_UDP_H

#include "server.h"

/* A datagram and its answer. */
struct datagram {
	struct exchange exchange;
	struct request request;
	struct response response;
	char payload[]; /* as long as it was */
};

/* A buffer for any datagram. */
#define UDP_BUFFER 65536

/*
 * Receives one datagram by way of @buffer (UDP_BUFFER bytes). @readable_ns: when it was known to be
 * there, 0 if not known. The caller frees @ret_datagram. -errno, -EAGAIN if there is none.
 */
int udp_receive(struct server *server, struct truth_writer *writer, char *buffer,
		uint64_t readable_ns, struct datagram **ret_datagram);

/* Sends one piece: enum response_progress or -errno. */
int udp_send(struct server *server, struct truth_writer *writer, struct datagram *datagram);

/* Makes the answer: now it can be sent. */
void udp_prepare(struct server *server, struct datagram *datagram);

/* Records the exchange and frees it. */
void udp_finish(struct server *server, struct truth_writer *writer, struct datagram *datagram,
		bool answered);

#endif
