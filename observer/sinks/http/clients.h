/* SPDX-License-Identifier: MIT */
/* The clients of a service, for the HTTP endpoint. Used only by routes.c. */
#ifndef OBSERVER_SINKS_HTTP_CLIENTS_H
#define OBSERVER_SINKS_HTTP_CLIENTS_H

#include <stdint.h>

#include "model/snapshot.h"

/*
 * Print the clients that are now connected to the TCP service at @port, the largest first, as a
 * JSON object. Errors:
 *
 * - -ESRCH: there is no such service;
 * - -ENODATA: it is in another network namespace;
 * - another -errno.
 */
int http_clients(const struct snapshot_source *source, uint16_t port, char **ret_text);

#endif
