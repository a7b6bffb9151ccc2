// SPDX-License-Identifier: MIT
/* Resources that have a limit of their own: the kernel's counts, and processes' descriptors. */
#include <stdio.h>
#include <string.h>

#include "resource.h"

static const struct limit {
	enum resource_kind kind;
	const char *object;
	const char *unit;
	enum resource_number used, capacity;
	enum resource_number failures; /* NUMBER_COUNT: not counted */
	const char *failed;
} of_netns[] =
	{
		{RESOURCE_TIME_WAIT, "TIME_WAIT buckets", "sockets", NUMBER_TIME_WAIT,
		 NUMBER_TIME_WAIT_MAX, NUMBER_TIME_WAIT_OVERFLOW,
		 "closed without TIME_WAIT in the sample"},
		{RESOURCE_CONNTRACK, "connection tracking", "entries", NUMBER_CONNTRACK,
		 NUMBER_CONNTRACK_MAX, NUMBER_COUNT, NULL},
},
  of_host[] = {
	  {RESOURCE_FILES, "open files of the host", "files", NUMBER_FILES, NUMBER_FILES_MAX,
	   NUMBER_COUNT, NULL},
	  {RESOURCE_ORPHANS, "orphaned sockets", "sockets", NUMBER_ORPHANS, NUMBER_ORPHANS_MAX,
	   NUMBER_ABORT_ON_MEMORY, "aborted in the sample"},
	  {RESOURCE_TCP_MEMORY, "TCP memory", "pages", NUMBER_TCP_PAGES, NUMBER_TCP_PAGES_MAX,
	   NUMBER_ABORT_ON_MEMORY, "aborted in the sample"},
};

static void add_limit(const struct limit *limit, const struct run_number *then,
		      const struct run_number *now, const struct resource_netns *netns,
		      struct resource_list *list)
{
	struct resource *resource;

	if (!now[limit->used].known || !now[limit->capacity].known)
		return;
	resource = resource_add(list, limit->kind, netns);
	if (!resource)
		return;
	snprintf(resource->object, sizeof(resource->object), "%s", limit->object);
	resource->used = (double)now[limit->used].value;
	resource->capacity = (double)now[limit->capacity].value;
	resource_fact(resource, "used", resource->used, limit->unit, numbers_source(limit->used));
	resource_fact(resource, "limit", resource->capacity, limit->unit,
		      numbers_source(limit->capacity));
	if (limit->failures == NUMBER_COUNT || !then[limit->failures].known ||
	    !now[limit->failures].known)
		return;
	resource->events = (double)(now[limit->failures].value - then[limit->failures].value);
	resource_fact(resource, limit->failed, resource->events, "sockets",
		      numbers_source(limit->failures));
}

void resource_measure_limits(const struct resource_pair *pair, struct resource_list *list)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_netns); i++)
		add_limit(&of_netns[i], pair->before.numbers.of, pair->after.numbers.of,
			  &pair->after, list);
}

void resource_measure_host(const struct resource_numbers *before,
			   const struct resource_numbers *after, struct resource_list *list)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_host); i++)
		add_limit(&of_host[i], before->of, after->of, NULL, list);
}

/* ---- descriptors ---- */

#define GROWING_SHARE 0.25 /* a pool that fills up at its start is no leak yet */
#define STRAIGHT      0.9  /* R² of a line that grows steadily */
#define LEAK_SECONDS  3.0
#define QUARTERED     5 /* the minimum of points for quarters */

/*
 * Return whether the process had more descriptors at the end of each quarter of @points than at its
 * begin.
 */
static bool grew(const struct resource_process *process, unsigned int points)
{
	for (unsigned int i = 0; i < 4; i++) {
		if (process->trend[(points - 1) * (i + 1) / 4] <=
		    process->trend[(points - 1) * i / 4])
			return false;
	}
	return points >= QUARTERED;
}

/* True also if it is not known: too few points, or a process that started after the first reading. */
bool resource_may_grow(const struct process_list *list, uint32_t pid, unsigned int points)
{
	for (size_t i = 0; i < list->count && points >= QUARTERED; i++) {
		if (list->entries[i].pid == pid)
			return list->entries[i].late || grew(&list->entries[i], points);
	}
	return true;
}

static void predict(struct resource *resource, const struct resource_process *process,
		    unsigned int points, double seconds)
{
	double straight, slope;

	if (points < 2 || seconds <= 0 || process->late)
		return;
	slope = resource_slope(process->trend, points, &straight) * (points - 1) / seconds;
	resource->growth = slope;
	if (slope <= 0 || straight < STRAIGHT || !grew(process, points))
		return;
	if (seconds >= LEAK_SECONDS)
		resource->leaking = slope;
	if (resource->used >= GROWING_SHARE * resource->capacity)
		resource->seconds_left = fmax(0, (resource->capacity - resource->used) / slope);
	snprintf(resource->outlook, sizeof(resource->outlook),
		 "growing by %.1f/s (R\u00b2 %.2f): the limit is reached in %.1f s", slope,
		 straight, fmax(0, (resource->capacity - resource->used) / slope));
	resource_fact(resource, "growth", slope, "per second", "the sample, least squares");
	resource_fact(resource, "straightness (R\u00b2)", straight, "",
		      "the sample, least squares");
}

static struct resource *add_descriptors(const struct resource_process *process,
					struct resource_list *list)
{
	struct resource *resource = resource_add(list, RESOURCE_DESCRIPTORS, NULL);
	struct resource_owner *owner = resource ? resource_owner(resource, process->pid) : NULL;

	if (!owner)
		return NULL;
	snprintf(resource->object, sizeof(resource->object), "%s (pid %u)", process->comm,
		 process->pid);
	resource->capacity = (double)process->limit;
	memcpy(owner->comm, process->comm, sizeof(process->comm));
	return resource;
}

static void say_use(struct resource *resource, uint64_t used, const char *source)
{
	resource->used = (double)used;
	resource_fact(resource, "used", resource->used, "descriptors", source);
	resource_fact(resource, "limit", resource->capacity, "descriptors",
		      "RLIMIT_NOFILE in /proc/PID/limits");
}

/* Its descriptors are those that it had at most: at the end others are in use, or none. */
static void add_past(const struct resource_process *process, struct resource_list *list)
{
	struct resource *resource = add_descriptors(process, list);

	if (!resource)
		return;
	say_use(resource, process->most, "/proc/PID/fd, the most of all readings");
	if (process->fds)
		resource_fact(resource, "at the end", (double)process->fds, "descriptors",
			      "/proc/PID/fd");
	snprintf(resource->outlook, sizeof(resource->outlook), "%s",
		 process->fds ? "it was so for a time, and some have been closed since"
			      : "it was so for a time, and the process has ended since");
	resource->command_idle = !process->fds || process_is_at_hard_limit(process->pid);
}

static void add_process(const struct resource_process *process, unsigned int points, double seconds,
			struct resource_list *list)
{
	struct resource *resource = add_descriptors(process, list);
	uint32_t counts[DESCRIPTOR_TYPES];

	if (!resource)
		return;
	say_use(resource, process->fds, "/proc/PID/fd");
	predict(resource, process, points, seconds);
	if (resource->used < PROCESS_FULL_SHARE * resource->capacity && !resource->leaking &&
	    !isfinite(resource->seconds_left))
		return;
	resource_name_owners(resource);
	resource->command_idle = process_is_at_hard_limit(process->pid);
	if (process_kinds(process->pid, counts) < 0)
		return;
	for (size_t j = 0; j < DESCRIPTOR_TYPES; j++)
		resource_fact(resource, process_types[j], counts[j], "descriptors", "/proc/PID/fd");
}

void resource_measure_processes(const struct process_list *processes, unsigned int points,
				double seconds, bool past, struct resource_list *list)
{
	for (size_t i = 0; i < processes->count; i++) {
		const struct resource_process *process = &processes->entries[i];

		if (past && process_was_full(process))
			add_past(process, list);
		else if (process->fds)
			add_process(process, points, seconds, list);
	}
}
