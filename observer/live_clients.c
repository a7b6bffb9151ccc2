// SPDX-License-Identifier: MIT
/* Connections added up by address; see live_clients.h. */
#include "live_clients.h"

#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

void live_clients_begin(struct live_clients *clients, uint16_t port)
{
	live_clients_done(clients);
	clients->port = port;
}

void live_clients_done(struct live_clients *clients)
{
	free(clients->list);
	*clients = (struct live_clients){};
}

static bool has_room(struct live_clients *clients)
{
	size_t capacity = clients->capacity ? 2 * clients->capacity : 64;
	struct live_client *list;

	if (clients->count < clients->capacity)
		return true;
	list = reallocarray(clients->list, capacity, sizeof(*list));
	if (!list)
		return false;
	clients->list = list;
	clients->capacity = capacity;
	return true;
}

void live_clients_visit(void *context, const struct resource_socket *socket)
{
	struct live_clients *clients = context;

	if (socket->source_port != clients->port || socket->state != SOCKET_ESTABLISHED)
		return;
	clients->connections++;
	if (!has_room(clients)) {
		clients->partial = true;
		return;
	}
	clients->list[clients->count++] = (struct live_client){
		.family = socket->family, .address = socket->destination, .connections = 1};
}

static int compare_addresses(const void *a, const void *b)
{
	const struct live_client *left = a, *right = b;
	int order = left->family - right->family;

	return order ? order : memcmp(&left->address, &right->address, sizeof(left->address));
}

static int compare_connections(const void *a, const void *b)
{
	const struct live_client *left = a, *right = b;

	if (left->connections != right->connections)
		return left->connections < right->connections ? 1 : -1;
	return compare_addresses(a, b);
}

void live_clients_end(struct live_clients *clients)
{
	struct live_client *list = clients->list;
	size_t count = 0;

	clients->known = true;
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
