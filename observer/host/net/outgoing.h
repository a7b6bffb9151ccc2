/* SPDX-License-Identifier: MIT */
/* Connections that processes of this network namespace have opened, TCP and Unix, as they are now. */
#ifndef OBSERVER_HOST_NET_OUTGOING_H
#define OBSERVER_HOST_NET_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outgoing {
	uint64_t inode;	   /* of the client's socket */
	uint16_t port;	   /* that it is connected to; 0: Unix */
	bool here;	   /* it is connected to this network namespace itself */
	char towards[120]; /* "10.0.0.5:5432", "unix:/run/php/php-fpm.sock" */
};

struct outgoing_list {
	struct outgoing *list; /* sorted by inode */
	size_t count;
};

/* List them; those to systemd and D-Bus, which serve no requests, are left out. 0 or -errno; the caller frees .list. */
int outgoing_read(struct outgoing_list *ret_outgoing);

#endif
