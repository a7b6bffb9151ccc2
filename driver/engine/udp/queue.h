/* SPDX-License-Identifier: MIT */
/* Requests waiting to leave on a socket: rendered, then sent as many as possible at once. */
#ifndef DRIVER_ENGINE_UDP_QUEUE_H
#define DRIVER_ENGINE_UDP_QUEUE_H

#include "flow.h"

/* Render the slot's request and append it. */
void udp_queue_add(struct udp_socket *socket, uint32_t slot);

/* Send the first ones. Return how many have left, or -errno if the first has not. */
int udp_queue_send(struct udp_socket *socket);

void udp_queue_remove(struct udp_socket *socket, uint32_t slot);

#endif
