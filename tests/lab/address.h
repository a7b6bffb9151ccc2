/* SPDX-License-Identifier: MIT */
/* Parsing and formatting addresses, and binding the server's socket. */
#ifndef LAB_ADDRESS_H
#define LAB_ADDRESS_H

#include <stdbool.h>

#include "truth.h"

#define ADDRESS_TEXT 64 /* "[…]:65535" and its end */

/* Parse a numeric "ADDR:PORT" or "[ADDR]:PORT"; -EINVAL otherwise. */
int address_parse(const char *text, union address *ret_address);

void address_format(const union address *address, char *buffer);

uint16_t address_port(const union address *address);

struct address_socket {
	bool datagram;
	bool nonblocking;
	int backlog;
};

/* Bind a socket, and listen unless it is for datagrams; @address becomes the bound address. */
int address_listen(union address *address, const struct address_socket *how, int *ret_fd);

#endif
