/* SPDX-License-Identifier: MIT */
/* What this host allows the driver: descriptors and source ports. */
#ifndef DRIVER_HOST_LIMITS_H
#define DRIVER_HOST_LIMITS_H

#include <stdint.h>

/*
 * Raises the soft RLIMIT_NOFILE so that the share of @connections sockets and the @threads loops of one of
 * @processes fit. -EINVAL with a sentence in @ret_error (freed by the caller) if the hard limit is
 * lower.
 */
int limits_raise_files(uint32_t connections, uint32_t processes, uint32_t threads,
		       char **ret_error);

/*
 * The ephemeral port range as setsockopt(IP_LOCAL_PORT_RANGE) takes it: low | high << 16. 0 if it
 * cannot be read.
 */
uint32_t limits_port_range(void);

#endif
