/* SPDX-License-Identifier: MIT */
/*
 * A load of our own to be observed: exchanges over one TCP connection of loopback. The calling thread holds both
 * ends, so it never waits and wakes nobody.
 */
#ifndef OBSERVER_PROBE_EXCHANGES_H
#define OBSERVER_PROBE_EXCHANGES_H

#include <stdint.h>

#include "sojourn/cleanup.h"

struct exchanges;

/*
 * Listens on a free port of 127.0.0.1: where we may, in a network namespace that this process makes for itself and
 * keeps. Stays on the CPU that it runs on. 0 or -errno.
 */
int exchanges_open(struct exchanges **ret_exchanges);
void exchanges_close(struct exchanges *exchanges);
DEFINE_CLEANUP(struct exchanges *, exchanges_close)

uint16_t exchanges_port(const struct exchanges *exchanges);

/* The connection begins. 0 or -errno. */
int exchanges_connect(struct exchanges *exchanges);

/* One after the other for @window_ns: the median over its batches of what one took, in ns. 0 or -errno. */
int exchanges_run(struct exchanges *exchanges, uint64_t window_ns, double *ret_ns);

/* How many there were so far. */
uint64_t exchanges_count(const struct exchanges *exchanges);

#endif
