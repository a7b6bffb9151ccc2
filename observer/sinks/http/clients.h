/* SPDX-License-Identifier: MIT */
/* What the HTTP endpoint tells of the clients of a service. Used by routes.c alone. */
#ifndef OBSERVER_SINKS_HTTP_CLIENTS_H
#define OBSERVER_SINKS_HTTP_CLIENTS_H

#include <stdint.h>

#include "routes.h"

/*
 * Who is connected now to the TCP service at @port: addresses and their connections, those with the most first. @reply also
 * says that there is no such service, or that they are not known. 0, or -errno without a reply.
 */
int http_clients_reply(const struct snapshot_source *source, uint16_t port,
		       struct http_reply *reply);

#endif
