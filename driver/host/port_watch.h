/* SPDX-License-Identifier: MIT */
/*
 * How many source ports are in use towards the targets during a phase, looked at about once a
 * second. Neighbours: transport/source.h (chooses ports), preflight.c (whether they suffice).
 */
#ifndef DRIVER_HOST_PORT_WATCH_H
#define DRIVER_HOST_PORT_WATCH_H

#include "sojourn/cleanup.h"
#include "sojourn/run.h"
#include "engine/target.h"
#include "transport/source.h"

struct port_watch;

/*
 * Start to look, on an idle-priority thread (SCHED_IDLE) that uses at most 0.5 % of a CPU. Return
 * NULL if nothing can be seen: no target over TCP, too many targets, no memory, or an unreadable
 * range. @interval_ns: of the results.
 */
struct port_watch *port_watch_start(const struct source_set *sources, uint64_t interval_ns,
				    const struct target *const *targets, size_t count);

/* Look a last time and end; takes NULL. The results stay. */
void port_watch_stop(struct port_watch *watch);
void port_watch_free(struct port_watch *watch);
DEFINE_CLEANUP(struct port_watch *, port_watch_free)

/*
 * Fill @driver and its intervals with what was seen in the phase from @begin_ns on; the rest stays
 * unknown.
 */
void port_watch_fill(const struct port_watch *watch, uint64_t begin_ns, struct run_driver *driver);

#endif
