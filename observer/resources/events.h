/* SPDX-License-Identifier: MIT */
/* Events counted by BPF if that is allowed: failures, connecting processes, and closing ones. */
#ifndef OBSERVER_RESOURCES_EVENTS_H
#define OBSERVER_RESOURCES_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "wire/events.h"

struct resource_events;

struct event_entry {
	struct event_key key;
	struct event_count count;
};

struct event_named {
	uint32_t pid;
	struct event_name name;
};

struct event_depth {
	uint64_t cookie;
	uint32_t depth;
};

/* All counts so far, by key; a sample is the difference of two. */
struct events_reading {
	struct event_entry *entries; /* sorted */
	size_t count;
	struct event_depth *depths; /* of listeners, since the programs were loaded */
	size_t depth_count;
	struct event_named *names; /* of processes, which may have ended since */
	size_t name_count;
	uint64_t failures_lost, actions_lost; /* events without room in the kernel's maps */
};

/*
 * Load and attach the programs that this kernel allows.
 *
 * - @syscalls: if there is no other way, take EMFILE, ENFILE and EADDRINUSE from results of system calls.
 * - @depths_fd: a map that already has the depths of accept queues; -1: none.
 *
 * 0 or -errno: -EPERM without CAP_BPF and CAP_PERFMON.
 */
int events_open(bool syscalls, int depths_fd, struct resource_events **ret_events);
void events_close(struct resource_events *events);
DEFINE_CLEANUP(struct resource_events *, events_close)

/*
 * Return whether EMFILE, ENFILE and EADDRINUSE are seen, and whether the depths of accept queues
 * are.
 */
bool events_sees_files(const struct resource_events *events);
bool events_sees_depths(const struct resource_events *events);

/* Memory of its own maps, bytes; 0 for NULL. The map of depths is the caller's if events_open() was given one. */
uint64_t events_map_bytes(const struct resource_events *events);

/* Read all counts. 0 or -ENOMEM; events_reading_free() is needed only after 0. */
int events_read(struct resource_events *events, struct events_reading *ret_reading);
void events_reading_free(struct events_reading *reading);

/* Return the counts for @key; NULL: none. */
const struct event_count *events_reading_find(const struct events_reading *reading,
					      const struct event_key *key);
/* Return the name of @pid when it was last counted; NULL: not known. */
const char *events_reading_name(const struct events_reading *reading, uint32_t pid);
/* Return the maximum depth of the listener's queue; -1: not known. */
int64_t events_reading_depth(const struct events_reading *reading, uint64_t cookie);

#endif
