// SPDX-License-Identifier: MIT
/* A service's clients as JSON; see clients.h. */
#include "clients.h"
#include "sojourn/address.h"

#include <netinet/in.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The maximum of clients printed, those with the most connections. */
#define CLIENTS_TOLD 20U

static const struct run_service *find_tcp(const struct run *run, uint16_t port)
{
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (service->port == port && !strcmp(service->protocol, "tcp"))
			return service;
	}
	return NULL;
}

static int print_clients(const struct snapshot_clients *clients, char **ret_text)
{
	size_t size, told = clients->count < CLIENTS_TOLD ? clients->count : CLIENTS_TOLD;
	FILE *file = open_memstream(ret_text, &size);

	if (!file)
		return -ENOMEM;
	fprintf(file, "{\"addresses\": %zu, \"connections\": %zu, \"partial\": %s, \"clients\": [",
		clients->count, clients->connections, clients->partial ? "true" : "false");
	for (size_t i = 0; i < told; i++) {
		const struct snapshot_client *client = &clients->list[i];
		char address[INET6_ADDRSTRLEN];

		address_format(client->family, client->address, 0, address, sizeof(address));
		fprintf(file, "%s{\"address\": \"%s\", \"connections\": %zu}", i ? ", " : "",
			address, client->connections);
	}
	fputs("]}\n", file);
	return fclose(file) ? -ENOMEM : 0;
}

int http_clients(const struct snapshot_source *source, uint16_t port, char **ret_text)
{
	struct snapshot_clients clients = {};
	autorun struct run *run = NULL;
	const struct run_service *service;
	int r = source->brief(source->context, &run);

	if (r)
		return r;
	service = find_tcp(run, port);
	if (!service)
		return -ESRCH;
	r = source->clients(source->context, service, &clients);
	if (!r)
		r = print_clients(&clients, ret_text);
	snapshot_clients_free(&clients);
	return r;
}
