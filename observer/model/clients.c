// SPDX-License-Identifier: MIT
/* Connections added up by address; see clients.h. */
#include "clients.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/net/netns.h"
#include "sojourn/array.h"

void clients_visit(void *context, const struct resource_socket *socket)
{
	const struct clients_search *search = context;
	struct snapshot_clients *clients = search->found;

	if (socket->source_port != search->port || socket->state != SOCKET_ESTABLISHED)
		return;
	clients->connections++;
	if (ARRAY_GROW(clients->list, clients->count) < 0) {
		clients->partial = true;
		return;
	}
	clients->list[clients->count] =
		(struct snapshot_client){.family = socket->family, .connections = 1};
	memcpy(clients->list[clients->count++].address, socket->destination.bytes,
	       sizeof(socket->destination.bytes));
}

static int compare_addresses(const void *a, const void *b)
{
	const struct snapshot_client *left = a, *right = b;
	int order = left->family - right->family;

	return order ? order : memcmp(left->address, right->address, sizeof(left->address));
}

static int compare_connections(const void *a, const void *b)
{
	const struct snapshot_client *left = a, *right = b;

	if (left->connections != right->connections)
		return left->connections < right->connections ? 1 : -1;
	return compare_addresses(a, b);
}

void clients_add_up(struct snapshot_clients *clients)
{
	struct snapshot_client *list = clients->list;
	size_t count = 0;

	if (!clients->count)
		return;
	qsort(list, clients->count, sizeof(*list), compare_addresses);
	for (size_t i = 0; i < clients->count; i++) {
		if (count && !compare_addresses(&list[count - 1], &list[i]))
			list[count - 1].connections++;
		else
			list[count++] = list[i];
	}
	clients->count = count;
	qsort(list, count, sizeof(*list), compare_connections);
}

int clients_find(uint32_t netns, uint16_t port, struct snapshot_clients *ret_clients)
{
	struct snapshot_clients clients = {};
	struct clients_search search = {.port = port, .found = &clients};
	uint32_t own;
	int fd, r = netns_open(NULL, &fd, &own);

	if (r < 0 || own != netns)
		return r < 0 ? r : -ENODATA;
	r = sockets_tcp(sockets_source(), SOCKET_BIT(SOCKET_ESTABLISHED), SOCKET_PLAIN,
			clients_visit, &search);
	if (r < 0) {
		snapshot_clients_free(&clients);
		return r;
	}
	clients_add_up(&clients);
	*ret_clients = clients;
	return 0;
}
