/* SPDX-License-Identifier: MIT */
/* The listener at a port of our own network namespace, and its owner: for messages. */
#ifndef OBSERVER_HOST_LISTENING_H
#define OBSERVER_HOST_LISTENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process.h"

/*
 * Return whether a port from @first to @last has a TCP listener, or with IPPROTO_UDP a bound
 * socket. True also where that cannot be determined.
 */
bool listening_within(uint16_t first, uint16_t last, uint16_t protocol);

/* Print TCP ports like "22, 80, 8080 and 3 more"; "" if there are none. */
void listening_ports(char *text, size_t size);

/* Print a process that has the TCP listener at @port, like "nginx (pid 42)", or "a process that cannot be seen". */
void listening_owner(uint16_t port, char *text, size_t size);

/* Find the TCP listeners in the network namespace of @netns_fd (-1: our own). As process_listeners(). */
int listening_in(int netns_fd, struct process_listener **ret_listeners, size_t *ret_count);

/* Count the TCP listeners in all network namespaces, except those that we may not enter. Return 0 or -errno. */
int listening_in_all(size_t *ret_count);

#endif
