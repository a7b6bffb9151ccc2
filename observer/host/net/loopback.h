/* SPDX-License-Identifier: MIT */
/* A TCP connection with ourselves, by which the kernel is asked how it behaves and what programs cost. */
#ifndef OBSERVER_HOST_NET_LOOPBACK_H
#define OBSERVER_HOST_NET_LOOPBACK_H

#include <netinet/in.h>

/*
 * Move this thread into a network namespace of its own: it has no firewall and no other sockets. 0; -EPERM: not
 * allowed, and nothing has changed; or another -errno.
 */
int loopback_enter(void);

/* Listen on a free port of 127.0.0.1. Return the socket, or -errno. */
int loopback_listen(struct sockaddr_in *ret_address);

/* Connect to the listener, and accept that. Both ends send without delay. 0 or -errno; the caller closes both. */
int loopback_connect(int listener, const struct sockaddr_in *address, int *ret_client,
		     int *ret_server);

#endif
