// SPDX-License-Identifier: MIT
/*
 * Loads the programs of bpf/event_*.bpf.c that this kernel allows: each is tried on its own, then
 * those that work are loaded together. See resource_events.h; neighbour: resource_events_read.c.
 */
#include "resource_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel_btf.h"
#include "resource_events_maps.h"
#include "sojourn_events_bpf.skel.h"

struct resource_events {
	struct sojourn_events_bpf *bpf;
	bool files, depths;
};

enum need {
	NEEDED,
	WANTED,	      /* left out where it is refused */
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

/* Loads and attaches the candidates whose bit is set in @chosen; @depths_fd: instead of a map of ours. */
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

/* The candidates of one kind that work; none unless all of them do, if @all. */
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

int resource_events_open(bool syscalls, int depths_fd, struct resource_events **ret_events)
{
	CLEANUP(cleanup_resource_events_close)
	struct resource_events *events = calloc(1, sizeof(*events));
	libbpf_print_fn_t print;
	uint32_t wanted, files;
	int r;

	if (!events)
		return -ENOMEM;
	/* What libbpf has to say is in the errno, for an option that may be refused. */
	print = libbpf_set_print(silent);
	wanted = depths_fd < 0 ? choose(WANTED, false) : 0;
	files = choose(WANTED_FILES, true);
	if (!files && syscalls)
		files = choose(BY_SYSCALLS, true);
	r = load(1U | wanted | files, depths_fd, &events->bpf);
	libbpf_set_print(print);
	if (r < 0)
		return r;
	events->files = files;
	events->depths = wanted || depths_fd >= 0;
	*ret_events = TAKE_PTR(events);
	return 0;
}

void resource_events_close(struct resource_events *events)
{
	if (!events)
		return;
	sojourn_events_bpf__destroy(events->bpf);
	free(events);
}

bool resource_events_sees_files(const struct resource_events *events)
{
	return events->files;
}

bool resource_events_sees_depths(const struct resource_events *events)
{
	return events->depths;
}

int resource_events_read(struct resource_events *events, struct events_reading *ret_reading)
{
	struct events_maps maps = {
		.failures = bpf_map__fd(events->bpf->maps.event_failures),
		.actions = bpf_map__fd(events->bpf->maps.event_actions),
		.depths = bpf_map__fd(events->bpf->maps.event_depths),
		.names = bpf_map__fd(events->bpf->maps.event_names),
	};
	struct events_reading reading = {
		.failures_lost = events->bpf->bss->event_failures_lost,
		.actions_lost = events->bpf->bss->event_actions_lost,
	};
	int r = events_maps_read(&maps, &reading);

	if (r < 0) {
		events_reading_free(&reading);
		return r;
	}
	*ret_reading = reading;
	return 0;
}
