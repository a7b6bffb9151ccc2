/* SPDX-License-Identifier: MIT */
/* What this host allows the driver: descriptors and source ports. */
#ifndef DRIVER_HOST_LIMITS_H
#define DRIVER_HOST_LIMITS_H

#include <stdint.h>

struct limits_need {
	uint32_t connections; /* of all processes, to each server */
	uint32_t sockets;     /* that each consists of: servers, at least 1 */
	uint32_t processes;   /* that share them */
	uint32_t threads;     /* of each process */
};

/*
 * Raises the soft RLIMIT_NOFILE so that a process' share of the sockets and the loops of its threads fit.
 * -EINVAL with a sentence in @ret_error (freed by the caller) if the hard limit is lower.
 */
int limits_raise_files(const struct limits_need *need, char **ret_error);

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
