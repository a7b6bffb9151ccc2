/* SPDX-License-Identifier: MIT */
/* The kernel's maps of events, by descriptor: read by resource_events_maps.c for resource_events.c. */
#ifndef OBSERVER_RESOURCE_EVENTS_MAPS_H
#define OBSERVER_RESOURCE_EVENTS_MAPS_H

#include "resource_events.h"

struct events_maps {
	int failures, actions, depths, names;
};

/* Adds what they hold to @reading, sorted. 0 or -ENOMEM. */
int events_maps_read(const struct events_maps *maps, struct events_reading *reading);

#endif
