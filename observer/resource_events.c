// SPDX-License-Identifier: MIT
/* Loads bpf/ports.bpf.c and reads its map; see resource_events.h. */
#include "resource_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sojourn_ports_bpf.skel.h"

struct seen {
	struct port_failure failure;
	uint64_t count;
};

struct resource_events {
	struct sojourn_ports_bpf *bpf;
	struct seen seen[PORT_FAILURES_MAX]; /* as of the last call */
	size_t seen_count;
};

static int silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

int resource_events_open(struct resource_events **ret_events)
{
	CLEANUP(cleanup_resource_events_close)
	struct resource_events *events = calloc(1, sizeof(*events));
	int r;

	if (!events)
		return -ENOMEM;
	/* What libbpf has to say is in the errno, for an option that may be refused. */
	libbpf_set_print(silent);
	events->bpf = sojourn_ports_bpf__open_and_load();
	if (!events->bpf)
		return errno ? -errno : -EINVAL;
	r = sojourn_ports_bpf__attach(events->bpf);
	if (r < 0)
		return r;
	*ret_events = TAKE_PTR(events);
	return 0;
}

void resource_events_close(struct resource_events *events)
{
	if (!events)
		return;
	sojourn_ports_bpf__destroy(events->bpf);
	free(events);
}

/* How many of @failure are new, and remembers @count. */
static uint64_t news(struct resource_events *events, const struct port_failure *failure,
		     uint64_t count)
{
	for (size_t i = 0; i < events->seen_count; i++) {
		struct seen *seen = &events->seen[i];
		uint64_t before = seen->count;

		if (memcmp(&seen->failure, failure, sizeof(*failure)) != 0)
			continue;
		seen->count = count;
		return count - before;
	}
	if (events->seen_count < PORT_FAILURES_MAX)
		events->seen[events->seen_count++] = (struct seen){*failure, count};
	return count;
}

static void add(const struct port_failure *failure, uint64_t new, uint64_t count,
		struct resource_list *list)
{
	struct resource *resource = resource_add(list, RESOURCE_PORT_FAILURES, NULL);
	struct socket_address address;

	if (!resource)
		return;
	memcpy(address.bytes, failure->address, sizeof(address.bytes));
	resource->netns = failure->netns;
	resource->port = failure->port;
	resource->used = (double)count;
	resource->events = (double)new;
	resource_sockets_format((uint8_t)failure->family, &address, failure->port, resource->object,
				sizeof(resource->object));
	resource_fact(resource, "failed in the sample", (double)new, "connect() calls",
		      "tp_btf/inet_sock_set_state");
	resource_fact(resource, "failed since the watch began", (double)count, "connect() calls",
		      "tp_btf/inet_sock_set_state");
	resource_own(resource, failure->pid);
	resource->owners[0].sockets = 0;
	resource_name_owners(resource);
}

void resource_events_measure(struct resource_events *events, struct resource_list *list)
{
	int map = bpf_map__fd(events->bpf->maps.port_failures);
	struct port_failure failure, *last = NULL;
	uint64_t count;

	while (!bpf_map_get_next_key(map, last, &failure)) {
		last = &failure;
		if (!bpf_map_lookup_elem(map, &failure, &count))
			add(&failure, news(events, &failure, count), count, list);
	}
}

uint64_t resource_events_lost(const struct resource_events *events)
{
	return events->bpf->bss->port_failures_lost;
}
