/* SPDX-License-Identifier: MIT */
/*
 * Counts this host's TCP sockets towards some targets, from the driver's source addresses and
 * ports. inet_diag needs no privilege, and the kernel selects by destination.
 */
#ifndef DRIVER_HOST_PORT_COUNT_H
#define DRIVER_HOST_PORT_COUNT_H

#include <stdint.h>

#include "transport/source.h"
#include "engine/target.h"
#include "wire/flow.h"

struct port_count;

#define PORT_COUNT_TARGETS_MAX 64

/* The target with the most used ports. */
struct port_fullest {
	struct flow towards; /* only the server and its port */
	uint64_t used;	     /* sockets in any state, TIME_WAIT included */
	uint64_t time_wait;  /* of @used */
};

/* @range: see limits_port_range(). -EINVAL without one; -ENOMEM. @sources outlives the count. */
int port_count_new(const struct source_set *sources, uint32_t range, struct port_count **ret_count);
void port_count_free(struct port_count *count);

/*
 * Add a target, once even if named several times. -EPROTONOSUPPORT: not over TCP; -E2BIG beyond
 * PORT_COUNT_TARGETS_MAX; -errno if its source address is not known.
 */
int port_count_add(struct port_count *count, const struct target *target);

/* Return the number of source addresses; each has the whole range. */
uint64_t port_count_sources(const struct port_count *count);

/* Go through the kernel's sockets, a few at a time. -errno. */
int port_count_look(struct port_count *count, struct port_fullest *ret_fullest);

/* Look once at ports used towards @target alone. -errno as above. */
int port_count_towards(const struct target *target, const struct source_set *sources,
		       uint32_t range, struct port_fullest *ret_fullest);

#endif
