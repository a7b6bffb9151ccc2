/* SPDX-License-Identifier: MIT */
/* The clients that are now connected to a service: addresses, by their number of connections. */
#ifndef OBSERVER_MODEL_CLIENTS_H
#define OBSERVER_MODEL_CLIENTS_H

#include "snapshot.h"
#include "host/net/sockets.h"

/* The list that clients_visit() adds to. */
struct clients_search {
	uint16_t port; /* of the service */
	struct snapshot_clients *found;
};

/* A socket_visit: takes @socket if it is a connection of the service. @context: a struct clients_search. */
void clients_visit(void *context, const struct resource_socket *socket);
/* Join equal addresses, and sort by connections, most first. */
void clients_add_up(struct snapshot_clients *clients);

/* Find all clients. -ENODATA if the service is in another network namespace; 0 or -errno. */
int clients_find(uint32_t netns, uint16_t port, struct snapshot_clients *ret_clients);

#endif
