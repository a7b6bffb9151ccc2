/* SPDX-License-Identifier: MIT */
/* A worker's UDP sockets: opened, retired when a late reply may come, closed. Neighbour: flow.c. */
#ifndef DRIVER_ENGINE_UDP_SOCKET_H
#define DRIVER_ENGINE_UDP_SOCKET_H

#include "flow.h"

/* Opens the flow's socket; @ready: as uv_poll_cb. -errno. */
int udp_socket_open(struct udp *udp, uint32_t flow, uv_poll_cb ready);

/* Its flow has none afterwards; freed by and by. */
void udp_socket_close(struct udp_socket *socket);

/*
 * Likewise, but it goes on receiving, for the late replies to what was given up, until it is @over_ns
 * old as such.
 */
void udp_socket_retire(struct udp_socket *socket, uint64_t now_ns);
void udp_socket_expire_retired(struct udp *udp, uint64_t now_ns, uint64_t over_ns);

#endif
