/* SPDX-License-Identifier: MIT */
/* The listener at a port of our own network namespace, and its owner: for messages. */
#ifndef OBSERVER_HOST_LISTENING_H
#define OBSERVER_HOST_LISTENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether there is a TCP listener, or with IPPROTO_UDP a bound socket, at a port from @first to @last; true also where
 * it cannot be told.
 */
bool listening_within(uint16_t first, uint16_t last, uint16_t protocol);

/* "22, 80, 8080 and 3 more", of TCP; "" where there is none. */
void listening_ports(char *text, size_t size);

/* "nginx (pid 42)": a process that has the TCP listener; "a process that cannot be seen" otherwise. */
void listening_owner(uint16_t port, char *text, size_t size);

#endif
