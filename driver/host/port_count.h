/* SPDX-License-Identifier: MIT */
/*
 * Counts the TCP sockets of this host towards some targets, from the driver's source addresses and ports of
 * the range: by inet_diag, which needs no privilege, and where the kernel selects by destination.
 */
#ifndef DRIVER_HOST_PORT_COUNT_H
#define DRIVER_HOST_PORT_COUNT_H

#include <stdint.h>

#include "transport/source.h"
#include "engine/target.h"
#include "wire/flow.h"

struct port_count;

#define PORT_COUNT_TARGETS_MAX 64

/* The target that most ports are used towards. */
struct port_fullest {
	struct flow towards; /* server and its port alone */
	uint64_t used;	     /* sockets in any state, TIME_WAIT too */
	uint64_t time_wait;  /* of these */
};

/* @range as limits_port_range() gives it. -EINVAL without one; -ENOMEM. @sources outlives it. */
int port_count_new(const struct source_set *sources, uint32_t range, struct port_count **ret_count);
void port_count_free(struct port_count *count);

/*
 * One more target, once however often it is named. -EPROTONOSUPPORT: not over TCP; -E2BIG beyond
 * PORT_COUNT_TARGETS_MAX; -errno if it cannot be told which address of ours reaches it.
 */
int port_count_add(struct port_count *count, const struct target *target);

/* Source addresses that connections come from: each has the whole range for itself. */
uint64_t port_count_sources(const struct port_count *count);

/* Goes through the kernel's sockets, a few at a time. -errno. */
int port_count_look(struct port_count *count, struct port_fullest *ret_fullest);

/* One look at what is in use towards @target alone. -errno as of the calls above. */
int port_count_towards(const struct target *target, const struct source_set *sources,
		       uint32_t range, struct port_fullest *ret_fullest);

#endif
