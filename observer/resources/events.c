// SPDX-License-Identifier: MIT
/*
 * Loads the programs of bpf/doctor that this kernel allows, and reads their counts. If it refuses one, each is tried
 * alone, and then the working ones are loaded together. See events.h.
 */
#include "events.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/btf.h"
#include "kernel/maps.h"
#include "sojourn/array.h"
#include "sojourn_events_bpf.skel.h"

struct resource_events {
	struct sojourn_events_bpf *bpf;
	bool files, depths, own_depths;
};

enum need {
	NEEDED,
	WANTED,	      /* left out if it is refused */
	WANTED_FILES, /* likewise; all of these, or by system calls */
	BY_SYSCALLS,
};

static const struct candidate {
	const char *program;
	enum need need;
} candidates[] = {
	{"event_conn_state", NEEDED},	    {"event_backlog_ready", WANTED},
	{"event_descriptor", WANTED_FILES}, {"event_file", WANTED_FILES},
	{"event_port", WANTED_FILES},	    {"event_returned", BY_SYSCALLS},
};

static int silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

/* Load and attach the candidates whose bit is set in @chosen; @depths_fd: instead of a map of ours. */
static int load(uint32_t chosen, int depths_fd, struct sojourn_events_bpf **ret_bpf)
{
	struct sojourn_events_bpf *bpf = sojourn_events_bpf__open();
	int r = 0;

	if (!bpf)
		return errno ? -errno : -EINVAL;
	kernel_btf_without_modules(bpf->progs.event_conn_state);
	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(bpf->obj, candidates[i].program);

		bpf_program__set_autoload(program, chosen >> i & 1);
	}
	if (depths_fd >= 0)
		r = bpf_map__reuse_fd(bpf->maps.event_depths, depths_fd);
	if (!r)
		r = sojourn_events_bpf__load(bpf);
	if (!r)
		r = sojourn_events_bpf__attach(bpf);
	if (r < 0) {
		sojourn_events_bpf__destroy(bpf);
		return r;
	}
	*ret_bpf = bpf;
	return 0;
}

static bool works(size_t candidate)
{
	struct sojourn_events_bpf *bpf;

	if (load(1U << candidate, -1, &bpf) < 0)
		return false;
	sojourn_events_bpf__destroy(bpf);
	return true;
}

static uint32_t all_of(enum need need)
{
	uint32_t all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
		if (candidates[i].need == need)
			all |= 1U << i;
	}
	return all;
}

/* Return the candidates of one kind that work; none unless all of them do, if @all. */
static uint32_t choose(enum need need, bool all)
{
	uint32_t chosen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
		if (candidates[i].need != need)
			continue;
		if (works(i))
			chosen |= 1U << i;
		else if (all)
			return 0;
	}
	return chosen;
}

int events_open(bool syscalls, int depths_fd, struct resource_events **ret_events)
{
	CLEANUP(cleanup_events_close)
	struct resource_events *events = calloc(1, sizeof(*events));
	bool fexit = !kernel_btf_fexit();
	uint32_t wanted = depths_fd < 0 ? all_of(WANTED) : 0;
	uint32_t files = fexit ? all_of(WANTED_FILES) : syscalls ? all_of(BY_SYSCALLS) : 0;
	libbpf_print_fn_t print;
	int r;

	if (!events)
		return -ENOMEM;
	/* The errno has libbpf's reason, for an option that may be refused. */
	print = libbpf_set_print(silent);
	r = load(1U | wanted | files, depths_fd, &events->bpf);
	if (r < 0) { /* one of them is refused */
		wanted = depths_fd < 0 ? choose(WANTED, false) : 0;
		files = fexit ? choose(WANTED_FILES, true) : 0;
		if (!files && syscalls)
			files = choose(BY_SYSCALLS, true);
		r = load(1U | wanted | files, depths_fd, &events->bpf);
	}
	libbpf_set_print(print);
	if (r < 0)
		return r;
	events->files = files;
	events->own_depths = depths_fd < 0;
	events->depths = wanted || depths_fd >= 0;
	*ret_events = TAKE_PTR(events);
	return 0;
}

void events_close(struct resource_events *events)
{
	if (!events)
		return;
	sojourn_events_bpf__destroy(events->bpf);
	free(events);
}

bool events_sees_files(const struct resource_events *events)
{
	return events->files;
}

bool events_sees_depths(const struct resource_events *events)
{
	return events->depths;
}

uint64_t events_map_bytes(const struct resource_events *events)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

	if (!events)
		return 0;
	bpf_object__for_each_map (map, events->bpf->obj) {
		if (map != events->bpf->maps.event_depths || events->own_depths)
			bytes += kernel_map_bytes(bpf_map__fd(map));
	}
	return bytes;
}

/* ---- what was counted ---- */

static int compare(const void *a, const void *b)
{
	const struct event_entry *x = a, *y = b;

	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int read_counts(int map, struct events_reading *reading)
{
	struct event_entry entry;
	struct event_key *last = NULL, key;
	int r = 0;

	while (!r && !bpf_map_get_next_key(map, last, &entry.key)) {
		key = entry.key;
		last = &key;
		if (bpf_map_lookup_elem(map, &key, &entry.count))
			continue;
		r = ARRAY_GROW(reading->entries, reading->count);
		if (!r)
			reading->entries[reading->count++] = entry;
	}
	return r;
}

/* Make room when half is taken: the counts of ended processes are in this reading, and change no more. */
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

/* Read at most @most entries of @map, of @size bytes each: key and value, which follow each other. */
static int read_entries(int map, size_t size, size_t key_size, size_t most, void *ret_entries,
			size_t *ret_count)
{
	char *entries = calloc(most, size), *last = NULL;

	if (!entries)
		return -ENOMEM;
	*(void **)ret_entries = entries;
	while (*ret_count < most) {
		char *entry = entries + *ret_count * size;

		if (bpf_map_get_next_key(map, last, entry))
			break;
		last = entry;
		*ret_count += !bpf_map_lookup_elem(map, entry, entry + key_size);
	}
	return 0;
}

static int read_maps(const struct sojourn_events_bpf *bpf, struct events_reading *reading)
{
	int actions = bpf_map__fd(bpf->maps.event_actions);
	int r = read_counts(bpf_map__fd(bpf->maps.event_failures), reading);
	size_t failures = reading->count;

	if (!r)
		r = read_counts(actions, reading);
	if (!r)
		r = read_entries(bpf_map__fd(bpf->maps.event_depths), sizeof(*reading->depths),
				 offsetof(struct event_depth, depth), EVENT_LISTENERS,
				 &reading->depths, &reading->depth_count);
	if (!r)
		r = read_entries(bpf_map__fd(bpf->maps.event_names), sizeof(*reading->names),
				 offsetof(struct event_named, name), EVENT_NAMES, &reading->names,
				 &reading->name_count);
	if (r < 0)
		return r;
	forget_ended(actions, reading, failures);
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

int events_read(struct resource_events *events, struct events_reading *ret_reading)
{
	struct events_reading reading = {
		.failures_lost = events->bpf->bss->event_failures_lost,
		.actions_lost = events->bpf->bss->event_actions_lost,
	};
	int r = read_maps(events->bpf, &reading);

	if (r < 0) {
		events_reading_free(&reading);
		return r;
	}
	*ret_reading = reading;
	return 0;
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
