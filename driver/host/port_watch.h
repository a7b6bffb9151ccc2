/* SPDX-License-Identifier: MIT */
/*
 * How many of the source ports are in use towards the targets while a phase lasts, looked at about once a
 * second. Neighbours: transport/source.h (chooses ports), preflight.c (whether they will do).
 */
#ifndef DRIVER_HOST_PORT_WATCH_H
#define DRIVER_HOST_PORT_WATCH_H

#include "sojourn/cleanup.h"
#include "sojourn/run.h"
#include "engine/target.h"
#include "transport/source.h"

struct port_watch;

/*
 * Begins to look: a thread of its own, which takes the CPU when nobody else wants it (SCHED_IDLE) and looks
 * so rarely that it uses 0.5 % of one at most. NULL where there is nothing to be seen: no target over TCP,
 * more of them than can be asked for at once, no memory, a range that cannot be read. @interval_ns: of the
 * results.
 */
struct port_watch *port_watch_start(const struct source_set *sources, uint64_t interval_ns,
				    const struct target *const *targets, size_t count);

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
