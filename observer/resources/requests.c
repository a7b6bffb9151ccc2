// SPDX-License-Identifier: MIT
/*
 * Requests without an answer, of the services that the observer sees; the doctor alone cannot see
 * them.
 */
#include <stdio.h>
#include <string.h>

#include "resource.h"
#include "sojourn/clock.h"
#include "sojourn/procfs.h"
#include "sojourn/run.h"

/* States in /proc/PID/stat (proc(5)). */
static const struct {
	char letter;
	const char *word;
} states[] = {
	{'R', "running"},
	{'S', "sleeping"},
	{'D', "in uninterruptible sleep"},
	{'T', "stopped"},
	{'t', "stopped by a debugger"},
	{'Z', "a zombie"},
};

static const char *state_word(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (states[i].letter == letter)
			return states[i].word;
	return NULL;
}

/* Return the state's letter. It follows the name in parentheses, which may contain parentheses itself. */
static char state_of(uint32_t pid)
{
	char text[512];
	const char *end;

	if (procfs_read(procfs_open("/proc/%u/stat", pid), text, sizeof(text)) < 0)
		return 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

/* Find where the process waits in the kernel; empty: it does not, or this is not readable. */
static void waits_in(uint32_t pid, char *ret_name, size_t size)
{
	if (procfs_read(procfs_open("/proc/%u/wchan", pid), ret_name, size) < 0 ||
	    !strcmp(ret_name, "0"))
		*ret_name = 0;
}

/* Name the process, and what it does now, unless as many are named as there is room for. */
static void own(struct resource *resource, uint32_t pid)
{
	struct resource_owner *owner = resource_owner(resource, pid);
	const char *state = state_word(state_of(pid));
	char wchan[48];

	waits_in(pid, wchan, sizeof(wchan));
	if (owner && state_of(pid) == 'T')
		snprintf(owner->did, sizeof(owner->did), "stopped: 'kill -CONT %u' lets it go on",
			 pid);
	else if (owner && state)
		snprintf(owner->did, sizeof(owner->did), "%s%s%s", state, *wchan ? " in " : "",
			 wchan);
}

/* Name the processes of the service: first those that leave connections waiting on a listener of their own. */
static void own_all(const struct run_service *service, struct resource *resource)
{
	for (size_t i = 0; i < service->listener_count; i++)
		if (service->listeners[i].depth.value && service->listeners[i].pid.known)
			own(resource, (uint32_t)service->listeners[i].pid.value);
	for (size_t i = 0; i < service->process_count; i++)
		own(resource, service->processes[i].pid);
	resource_name_owners(resource);
}

/*
 * Return how long ago the service has written something, or how long a request has waited, if that is shorter. A
 * client that still sends, as in a slow upload or to a server of logs, does not wait for an answer.
 */
static uint64_t silent_ns(const struct run_service *service)
{
	uint64_t now = clock_now_ns(), waiting = run_open_waits(&service->open);
	uint64_t since = now > service->last_message_ns ? now - service->last_message_ns : 0;

	return service->last_message_ns && since < waiting ? since : waiting;
}

/* Everything has been read, and most messages so far got no answer: whether clients wait for one is not known. */
static bool tells(const struct run_service *service)
{
	return run_is_told(service) && !service->open.unread.value;
}

static void add_facts(const struct run_open *open, struct resource *resource)
{
	static const char source[] = "the observer's pass over the sockets";

	resource_fact(resource, "open requests", resource->used, "requests", source);
	resource_fact(resource, "read, not answered", (double)open->read.value, "requests", source);
	resource_fact(resource, "unread in their sockets", (double)open->unread.value, "requests",
		      source);
	resource_fact(resource, "of these not accepted", (double)open->unaccepted.value, "requests",
		      source);
	resource_fact(resource, "the oldest is", (double)open->oldest_ns.value / NSEC_PER_SEC,
		      "s old", source);
}

static void add_service(const struct run_service *service, struct resource_list *list)
{
	struct resource *resource = resource_add(list, RESOURCE_REQUESTS, NULL);
	double silent = (double)silent_ns(service) / NSEC_PER_SEC;

	if (!resource)
		return;
	resource->netns = service->netns;
	resource->port = service->port;
	resource->used = (double)(service->open.read.value + service->open.unread.value);
	resource->hangs = tells(service) ? 0 : silent;
	snprintf(resource->object, sizeof(resource->object), "%s port %u", service->protocol,
		 service->port);
	add_facts(&service->open, resource);
	resource_fact(resource, "nothing answered for", silent, "s", "writes of the service");
	own_all(service, resource);
	resource->seconds_left = INFINITY;
	if (service->process_count == 1)
		snprintf(resource->object, sizeof(resource->object), "%.*s (pid %u), port %u",
			 (int)sizeof(service->processes->comm), service->processes->comm,
			 service->processes->pid, service->port);
}

void resource_measure_requests(const struct run *run, struct resource_list *list)
{
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (service->open.read.value + service->open.unread.value)
			add_service(service, list);
	}
}
