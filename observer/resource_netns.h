/* SPDX-License-Identifier: MIT */
/* One reading of one network namespace: its counts, limits and sockets, without their owners. */
#ifndef OBSERVER_RESOURCE_NETNS_H
#define OBSERVER_RESOURCE_NETNS_H

#include "resource_numbers.h"
#include "resource_ports.h"

#define NETNS_LISTENERS	 4096
#define NETNS_UDP	 256
#define NETNS_CLOSE_WAIT 65536

/* A growing array of sockets; what is over @limit is only counted. */
struct socket_list {
	struct resource_socket *sockets;
	size_t count, room, limit;
	uint64_t left_out;
};

struct resource_netns {
	uint64_t at_ns;
	uint32_t inode;
	char name[64]; /* as the user or /run/netns calls it; "" for our own */
	enum socket_source source;
	int error; /* of the socket dump; the rest is there all the same */
	struct resource_numbers numbers;
	struct port_rules rules;
	struct port_table ports;
	struct socket_list listeners;
	uint32_t *half_open; /* by listener */
	struct socket_list udp;
	struct socket_list close_wait; /* with silent_ms */
	uint64_t sockets;	       /* that were looked at */
	unsigned int passes;	       /* over the hash of connections */
};

/*
 * Reads the namespace that we are in. TIME_WAIT of the last @sample_ms is told apart.
 * 0 or -errno; resource_netns_free() is needed only after 0.
 */
int resource_netns_read(enum socket_source source, uint32_t sample_ms,
			struct resource_netns *ret_netns);
void resource_netns_free(struct resource_netns *netns);

/* Enters the namespace of @fd (-1: none, nothing happens). 0 or -errno. */
int resource_netns_enter(int fd);

#endif
