/* SPDX-License-Identifier: MIT */
/* A worker's UDP sockets: opened, retired while late replies may come, closed. */
#ifndef DRIVER_ENGINE_UDP_SOCKET_H
#define DRIVER_ENGINE_UDP_SOCKET_H

#include "flow.h"

/* Open the flow's socket; @ready: as uv_poll_cb. -errno. */
int udp_socket_open(struct udp *udp, uint32_t flow, uv_poll_cb ready);

/* Close the socket; its flow has none then. Its memory is freed later. */
void udp_socket_close(struct udp_socket *socket);

/*
 * Take the socket from its flow. It receives late replies until it has been retired for @over_ns.
 */
void udp_socket_retire(struct udp_socket *socket, uint64_t now_ns);
void udp_socket_expire_retired(struct udp *udp, uint64_t now_ns, uint64_t over_ns);

#endif
