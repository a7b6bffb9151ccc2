/* SPDX-License-Identifier: MIT */
/* Who is connected to a service now: addresses, by how many connections each has. */
#ifndef OBSERVER_LIVE_CLIENTS_H
#define OBSERVER_LIVE_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resource_sockets.h"

struct live_client {
	uint8_t family;
	struct socket_address address;
	size_t connections;
};

struct live_clients {
	uint16_t port; /* of the service */
	bool known;    /* the sockets were looked at */
	bool partial;  /* there was no memory for some */
	struct live_client *list;
	size_t count;
	size_t capacity;
	size_t connections; /* of all of them */
};

/* Empty, for the service at this port. */
void live_clients_begin(struct live_clients *clients, uint16_t port);
void live_clients_done(struct live_clients *clients);

/* A socket_visit: takes @socket if it is a connection of the service. @context: a struct live_clients. */
void live_clients_visit(void *context, const struct resource_socket *socket);

/* Each address once, that with the most connections first. */
void live_clients_end(struct live_clients *clients);

#endif
