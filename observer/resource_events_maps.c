// SPDX-License-Identifier: MIT
/* Reads the kernel's maps of events into sorted arrays; see resource_events_maps.h. */
#include "resource_events_maps.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

static int compare(const void *a, const void *b)
{
	const struct event_entry *x = a, *y = b;

	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int append(struct events_reading *reading, const struct event_entry *entry)
{
	struct event_entry *more = reading->entries;

	if (!(reading->count & (reading->count - 1))) /* a power of two: full */
		more = reallocarray(more, reading->count ? reading->count * 2 : 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[reading->count++] = *entry;
	reading->entries = more;
	return 0;
}

static int read_counts(int map, struct events_reading *reading)
{
	struct event_entry entry;
	struct event_key *last = NULL, key;
	int r = 0;

	while (!r && !bpf_map_get_next_key(map, last, &entry.key)) {
		key = entry.key;
		last = &key;
		if (!bpf_map_lookup_elem(map, &key, &entry.count))
			r = append(reading, &entry);
	}
	return r;
}

/* Makes room when half is taken: what ended processes did is in this reading, and changes no more. */
static void forget_ended(int map, const struct events_reading *reading, size_t first)
{
	if (reading->count - first < EVENT_ACTIONS_MAX / 2)
		return;
	for (size_t i = first; i < reading->count; i++) {
		const struct event_key *key = &reading->entries[i].key;

		if (key->pid && kill((pid_t)key->pid, 0) < 0 && errno == ESRCH)
			(void)bpf_map_delete_elem(map, key);
	}
}

static int read_depths(int map, struct events_reading *reading)
{
	uint64_t key, *last = NULL;
	struct event_depth entry;
	uint32_t depth;

	reading->depths = calloc(EVENT_LISTENERS, sizeof(*reading->depths));
	if (!reading->depths)
		return -ENOMEM;
	while (reading->depth_count < EVENT_LISTENERS &&
	       !bpf_map_get_next_key(map, last, &entry.cookie)) {
		key = entry.cookie;
		last = &key;
		if (bpf_map_lookup_elem(map, &key, &depth))
			continue;
		entry.depth = depth;
		reading->depths[reading->depth_count++] = entry;
	}
	return 0;
}

static int read_names(int map, struct events_reading *reading)
{
	uint32_t key, *last = NULL;
	struct event_named entry;

	reading->names = calloc(EVENT_NAMES, sizeof(*reading->names));
	if (!reading->names)
		return -ENOMEM;
	while (reading->name_count < EVENT_NAMES && !bpf_map_get_next_key(map, last, &entry.pid)) {
		key = entry.pid;
		last = &key;
		if (!bpf_map_lookup_elem(map, &key, &entry.name))
			reading->names[reading->name_count++] = entry;
	}
	return 0;
}

int events_maps_read(const struct events_maps *maps, struct events_reading *reading)
{
	size_t failures;
	int r = read_counts(maps->failures, reading);

	failures = reading->count;
	if (!r)
		r = read_counts(maps->actions, reading);
	if (!r)
		r = read_depths(maps->depths, reading);
	if (!r)
		r = read_names(maps->names, reading);
	if (r < 0)
		return r;
	forget_ended(maps->actions, reading, failures);
	if (reading->count)
		qsort(reading->entries, reading->count, sizeof(*reading->entries), compare);
	return 0;
}

void events_reading_free(struct events_reading *reading)
{
	free(reading->entries);
	free(reading->depths);
	free(reading->names);
	*reading = (struct events_reading){};
}

const struct event_count *events_reading_find(const struct events_reading *reading,
					      const struct event_key *key)
{
	struct event_entry wanted = {.key = *key};
	const struct event_entry *found = NULL;

	if (reading->count)
		found = bsearch(&wanted, reading->entries, reading->count, sizeof(wanted), compare);
	return found ? &found->count : NULL;
}

const char *events_reading_name(const struct events_reading *reading, uint32_t pid)
{
	for (size_t i = 0; i < reading->name_count; i++) {
		if (reading->names[i].pid == pid)
			return reading->names[i].name.comm;
	}
	return NULL;
}

int64_t events_reading_depth(const struct events_reading *reading, uint64_t cookie)
{
	for (size_t i = 0; i < reading->depth_count; i++) {
		if (reading->depths[i].cookie == cookie)
			return (int64_t)reading->depths[i].depth;
	}
	return -1;
}
