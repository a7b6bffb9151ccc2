/* SPDX-License-Identifier: MIT */
/* This host's limits for the driver: descriptors and source ports. */
#ifndef DRIVER_TRANSPORT_HOST_LIMITS_H
#define DRIVER_TRANSPORT_HOST_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct limits_need {
	uint32_t connections; /* to each server */
	uint32_t sockets;     /* per connection: servers, at least 1 */
	uint32_t threads;
};

/*
 * Raise the soft RLIMIT_NOFILE for the sockets and the threads' loops. The limit applies to each
 * table of descriptors. *@ret_own_files is set if one table is too small, but one per thread
 * suffices. -EINVAL with @ret_error if that is too small as well.
 */
int limits_raise_files(const struct limits_need *need, bool *ret_own_files, char **ret_error);

/* Give the calling thread its own copy of the process' table of descriptors. -errno. */
int limits_own_files(void);

/*
 * Return the ephemeral port range in the form of setsockopt(IP_LOCAL_PORT_RANGE): low | high << 16.
 * 0: not readable.
 */
uint32_t limits_port_range(void);

/* Return the number of ports in such a range; 0 for 0. */
static inline uint32_t limits_ports(uint32_t range)
{
	return range ? (range >> 16) - (range & 0xffff) + 1 : 0;
}

#endif
