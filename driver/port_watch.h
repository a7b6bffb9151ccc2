/* SPDX-License-Identifier: MIT */
/*
 * How many of the source ports are in use towards the targets while a phase lasts, looked at about once a
 * second. Neighbours: source.h (chooses ports), preflight.c (whether they will do).
 */
#ifndef DRIVER_PORT_WATCH_H
#define DRIVER_PORT_WATCH_H

#include "options.h"
#include "sojourn/cleanup.h"
#include "target.h"

struct port_watch;

/*
 * Begins to look: a thread of its own, which takes the CPU when nobody else wants it (SCHED_IDLE) and looks
 * so rarely that it uses 0.5 % of one at most. NULL where there is nothing to be seen: no target over TCP,
 * more of them than can be asked for at once, no memory, a range that cannot be read.
 */
struct port_watch *port_watch_start(const struct options *options, const struct target *target);

/* Looks a last time and ends; NULL is fine. What was seen stays. */
void port_watch_stop(struct port_watch *watch);
void port_watch_free(struct port_watch *watch);
DEFINE_CLEANUP(struct port_watch *, port_watch_free)

/*
 * Tells @driver and its intervals what was seen in the phase that began at @begin_ns; what was not looked at
 * stays unknown.
 */
void port_watch_fill(const struct port_watch *watch, uint64_t begin_ns, struct run_driver *driver);

#endif
