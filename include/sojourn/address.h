/* SPDX-License-Identifier: MIT */
/* Numeric IP addresses as texts and back. */
#ifndef SOJOURN_ADDRESS_H
#define SOJOURN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Parse an IPv4 or IPv6 address; its port is 0. -EINVAL: @text is none. */
int address_parse(const char *text, struct sockaddr_storage *ret_address);

/* Return the length of an address of AF_INET, AF_INET6 or AF_UNIX. */
socklen_t address_length(const struct sockaddr_storage *address);

/* Return the address within one of AF_INET or AF_INET6, in network order; *ret_size: 4 or 16. */
const void *address_bytes(const struct sockaddr *address, size_t *ret_size);

/* Return whether the address @bytes is of this host alone: 127.0.0.0/8, ::1 or ::ffff:127.0.0.0/104. */
bool address_is_loopback(int family, const void *bytes);

/*
 * Write the address @bytes like "10.0.0.1:80" or "[::1]:80"; without the port if it is 0. Return
 * @buffer.
 */
char *address_format(int family, const void *bytes, uint16_t port, char *buffer, size_t size);

#endif
