/* SPDX-License-Identifier: MIT */
/* Requests that are to leave on a socket: made, sent as many as possible at once. */
#ifndef DRIVER_ENGINE_UDP_QUEUE_H
#define DRIVER_ENGINE_UDP_QUEUE_H

#include "flow.h"

/* Makes the slot's request and puts it at the end. */
void udp_queue_add(struct udp_socket *socket, uint32_t slot);

/* Sends the first ones: how many have left, or -errno if the very first one has not. */
int udp_queue_send(struct udp_socket *socket);

/* The slot's request is not to be sent any more. */
void udp_queue_remove(struct udp_socket *socket, uint32_t slot);

#endif
