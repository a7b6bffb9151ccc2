/* SPDX-License-Identifier: MIT */
/*
 * Closed loop: how many of a worker's slots send as time goes by, along a shape of --connections. Pure
 * functions. Neighbours: shape.h (the shape), worker_load.c (obeys).
 */
#ifndef DRIVER_LOAD_RAMP_H
#define DRIVER_LOAD_RAMP_H

#include <stdint.h>

#include "shape.h"

/*
 * How many connections there are @elapsed_ns after the begin of the phase, and until when, INFINITY: from
 * then on. A segment from A to B has each number between them for equally long; beyond the last segment
 * its last number stays.
 */
uint32_t ramp_at(const struct shape *shape, double elapsed_ns, double *ret_until_ns);

/* The most that there are at any time. */
uint32_t ramp_most(const struct shape *shape);

#endif
