/* SPDX-License-Identifier: MIT */
/* Failures as they happen, by BPF where it is allowed: connect() without a source port. */
#ifndef OBSERVER_RESOURCE_EVENTS_H
#define OBSERVER_RESOURCE_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "resource.h"
#include "sojourn/cleanup.h"
#include "wire/ports.h"

struct resource_events;

/* Loads and attaches the program. 0 or -errno: -EPERM without CAP_BPF and CAP_PERFMON. */
int resource_events_open(struct resource_events **ret_events);
void resource_events_close(struct resource_events *events);
DEFINE_CLEANUP(struct resource_events *, resource_events_close)

/* Appends what failed since the last call, one resource per process and destination. */
void resource_events_measure(struct resource_events *events, struct resource_list *list);

/* Failures that could not be told apart for want of room, since the beginning. */
uint64_t resource_events_lost(const struct resource_events *events);

#endif
