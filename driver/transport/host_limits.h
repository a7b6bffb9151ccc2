/* SPDX-License-Identifier: MIT */
/* What this host allows the driver: descriptors and source ports. */
#ifndef DRIVER_TRANSPORT_HOST_LIMITS_H
#define DRIVER_TRANSPORT_HOST_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct limits_need {
	uint32_t connections; /* to each server */
	uint32_t sockets;     /* that each consists of: servers, at least 1 */
	uint32_t threads;
};

/*
 * Raises the soft RLIMIT_NOFILE so that the sockets and the threads' loops fit. It counts by table of
 * descriptors: *@ret_own_files is set if all do not fit in one, but do if each thread has one of its own.
 * -EINVAL with a sentence in @ret_error (freed by the caller) if they do not fit then either.
 */
int limits_raise_files(const struct limits_need *need, bool *ret_own_files, char **ret_error);

/* Gives the calling thread a table of descriptors of its own, a copy of the process'. -errno. */
int limits_own_files(void);

/*
 * The ephemeral port range as setsockopt(IP_LOCAL_PORT_RANGE) takes it: low | high << 16. 0 if it
 * cannot be read.
 */
uint32_t limits_port_range(void);

/* How many ports such a range has; 0 of 0. */
static inline uint32_t limits_ports(uint32_t range)
{
	return range ? (range >> 16) - (range & 0xffff) + 1 : 0;
}

#endif
