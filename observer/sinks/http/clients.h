/* SPDX-License-Identifier: MIT */
/* What the HTTP endpoint tells of the clients of a service. Used by routes.c alone. */
#ifndef OBSERVER_SINKS_HTTP_CLIENTS_H
#define OBSERVER_SINKS_HTTP_CLIENTS_H

#include <stdint.h>

#include "model/snapshot.h"

/*
 * Who is connected now to the TCP service at @port: addresses and their connections, those with the most first, as a JSON
 * object. -ESRCH: there is no such service; -ENODATA: it is in another network namespace; other -errno.
 */
int http_clients(const struct snapshot_source *source, uint16_t port, char **ret_text);

#endif
