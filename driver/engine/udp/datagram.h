/* SPDX-License-Identifier: MIT */
/*
 * System calls for datagrams on connected UDP sockets, as few as possible: one or many at a time.
 * Knows no requests.
 */
#ifndef DRIVER_ENGINE_UDP_DATAGRAM_H
#define DRIVER_ENGINE_UDP_DATAGRAM_H

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

/* One worker's buffers. */
struct datagram_io;

/* @batch: whether several datagrams at a time are to be expected. NULL without memory. */
struct datagram_io *datagram_io_new(bool batch);
void datagram_io_free(struct datagram_io *io);

/*
 * Sends up to DATAGRAM_BATCH datagrams: how many the kernel took, or -errno if it did not take the
 * first one. Where it can it hands equal ones over as one (UDP_SEGMENT, Linux 4.18).
 */
int datagram_send(struct datagram_io *io, int fd, const struct iovec *list, unsigned int count);

/* Receives up to @count, at most DATAGRAM_BATCH: how many are in @ret_list, or -errno. */
int datagram_receive(struct datagram_io *io, int fd, unsigned int count, struct datagram *ret_list);

/*
 * Takes an error that the network or this host reported (IP_RECVERR): its errno, and of the datagram
 * that it is about as many bytes as came back. -EAGAIN: there is none.
 */
int datagram_take_error(struct datagram_io *io, int fd, int *ret_code, struct datagram *ret_about);

/* Datagrams that arrived at this socket and found its receive buffer full; 0 if not known. */
uint32_t datagram_drops(int fd);

/* Has errors reported by datagram_take_error(). */
void datagram_want_errors(int fd, int family);

#endif
