/* SPDX-License-Identifier: MIT */
/* One reading of one network namespace: its counts, limits and sockets, without their owners. */
#ifndef OBSERVER_HOST_NET_NETNS_H
#define OBSERVER_HOST_NET_NETNS_H

#include "numbers.h"
#include "ports.h"

#define NETNS_LISTENERS	 4096
#define NETNS_UDP	 256
#define NETNS_CLOSE_WAIT 65536
#define NETNS_HELD	 4096
/*
 * A socket's unread data matters from this many bytes on. Less may be an alert of TLS, or a GOAWAY
 * or error that a server sent to an idle pool as a goodbye. It may also be the head of a request
 * that waits for its turn.
 */
#define NETNS_UNREAD_LEAST 4096
/*
 * Likewise data that a closing socket still has to send: less is the end of a response on its way.
 */
#define NETNS_UNSENT_LEAST 65536

/* A growing array of sockets; sockets above @limit are only counted. */
struct socket_list {
	struct resource_socket *sockets;
	size_t count, limit;
	uint64_t left_out;
};

struct resource_netns {
	uint64_t at_ns;
	uint32_t inode;
	char name[64]; /* from the user or /run/netns; "" for our own */
	enum socket_source source;
	int error; /* of the socket dump; the rest is valid all the same */
	struct resource_numbers numbers;
	struct port_rules rules;
	struct port_table ports;
	/* Each is sorted by cookie, or by inode in /proc, where there are no cookies. */
	struct socket_list listeners;
	uint32_t *half_open; /* by listener */
	struct socket_list udp;
	struct socket_list close_wait; /* with SOCKET_INFO */
	struct socket_list held;       /* much unread, or closing and much unsent */
	uint64_t sockets;	       /* that were looked at */
	unsigned int passes;	       /* over the hash of connections */
};

/*
 * Read the namespace that we are in. TIME_WAIT of the last @sample_ms is counted separately. Return 0 or -errno;
 * netns_free() is needed only after 0.
 */
int netns_read(enum socket_source source, uint32_t sample_ms, struct resource_netns *ret_netns);
void netns_free(struct resource_netns *netns);
/* Return the memory in bytes that netns_free() frees. */
size_t netns_bytes(const struct resource_netns *netns);

/* Find @socket in another reading's @list; NULL: none, or not known. */
const struct resource_socket *netns_find(const struct socket_list *list,
					 const struct resource_socket *socket);

/* Return the listener that @socket belongs to by its own address and port; NULL: none. */
const struct resource_socket *netns_listener(const struct resource_netns *netns,
					     const struct resource_socket *socket);

/*
 * Open the namespace at @path (NULL: our own) and find its inode number. Our own needs no entering, and so no
 * privilege: *ret_fd is -1. Return 0 or -errno.
 */
int netns_open(const char *path, int *ret_fd, uint32_t *ret_inode);

/* Enter the namespace of @fd (-1: none, nothing happens). 0 or -errno. */
int netns_enter(int fd);

#endif
