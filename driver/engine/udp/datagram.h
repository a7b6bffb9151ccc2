/* SPDX-License-Identifier: MIT */
/*
 * System calls for datagrams on connected UDP sockets, as few as possible. Knows no requests.
 */
#ifndef DRIVER_ENGINE_UDP_DATAGRAM_H
#define DRIVER_ENGINE_UDP_DATAGRAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define DATAGRAM_BATCH	  64U
#define DATAGRAM_SIZE_MAX 65507U /* over IPv4 */

struct datagram {
	const char *data; /* valid until the next call */
	size_t length;
};

/* The buffers of one worker. */
struct datagram_io;

/* @batch: expect several datagrams at a time. NULL without memory. */
struct datagram_io *datagram_io_new(bool batch);

/*
 * Send up to DATAGRAM_BATCH datagrams. Return how many the kernel took, or -errno if it refused the
 * first. Equal ones leave as one where possible (UDP_SEGMENT, Linux 4.18).
 */
int datagram_send(struct datagram_io *io, int fd, const struct iovec *list, unsigned int count);

/* Likewise, one. */
static inline int datagram_send_one(int fd, const struct iovec *datagram)
{
	return send(fd, datagram->iov_base, datagram->iov_len, MSG_DONTWAIT) < 0 ? -errno : 1;
}

/* Receive up to @count, at most DATAGRAM_BATCH. Return how many are in @ret_list, or -errno. */
int datagram_receive(struct datagram_io *io, int fd, unsigned int count, struct datagram *ret_list);

/*
 * Take an error that the network or this host reported (IP_RECVERR): its errno, and the returned
 * bytes of the datagram concerned. -EAGAIN: there is none.
 */
int datagram_take_error(struct datagram_io *io, int fd, int *ret_code, struct datagram *ret_about);

/* Return how many datagrams found the receive buffer full; 0: none, or not known. */
uint32_t datagram_drops(int fd);

/* Enable datagram_take_error() on the socket. */
void datagram_want_errors(int fd, int family);

#endif
