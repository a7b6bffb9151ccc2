/* SPDX-License-Identifier: MIT */
/*
 * Closed loop: how many of a worker's slots send, along a shape of --connections. Pure functions.
 * Neighbours: shape.h (the shape), worker_load.c (applies it).
 */
#ifndef DRIVER_LOAD_RAMP_H
#define DRIVER_LOAD_RAMP_H

#include <stdint.h>

#include "shape.h"

/*
 * Return the number of connections @elapsed_ns after the start of the phase, and until when;
 * INFINITY: without end. A segment from A to B has each number between them for equally long. After
 * the last segment its last number stays.
 */
uint32_t ramp_at(const struct shape *shape, double elapsed_ns, double *ret_until_ns);

/* Return the maximum of the shape. */
uint32_t ramp_most(const struct shape *shape);

#endif
