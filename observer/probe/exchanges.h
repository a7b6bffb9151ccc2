/* SPDX-License-Identifier: MIT */
/*
 * A load of our own for the probe: exchanges over one TCP connection of loopback. The calling
 * thread holds both ends, so it never waits and wakes nobody.
 */
#ifndef OBSERVER_PROBE_EXCHANGES_H
#define OBSERVER_PROBE_EXCHANGES_H

#include <stdint.h>

#include "sojourn/cleanup.h"

struct exchanges;

/*
 * Listen on a free port of 127.0.0.1, and stay on the current CPU. If allowed, the process first
 * enters a network namespace of its own, for good. 0 or -errno.
 */
int exchanges_open(struct exchanges **ret_exchanges);
void exchanges_close(struct exchanges *exchanges);
DEFINE_CLEANUP(struct exchanges *, exchanges_close)

uint16_t exchanges_port(const struct exchanges *exchanges);

/* Open the connection. 0 or -errno. */
int exchanges_connect(struct exchanges *exchanges);

/*
 * Run exchanges one after the other for @window_ns. *@ret_ns is the time of one: the median over
 * batches. 0 or -errno.
 */
int exchanges_run(struct exchanges *exchanges, uint64_t window_ns, double *ret_ns);

/* Return the number of exchanges so far. */
uint64_t exchanges_count(const struct exchanges *exchanges);

#endif
