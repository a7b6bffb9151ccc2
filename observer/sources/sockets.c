// SPDX-License-Identifier: MIT
/* Gauges of a service, as the last visit to the sockets left them. */
#include "source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

static struct run_number number(uint64_t value)
{
	return (struct run_number){true, value};
}

/* Read the ports of the namespace: every service in it has the same numbers. */
static void read_ports(const struct loader *loader, uint32_t netns, struct run_ports *ret_ports)
{
	struct port_place fullest;
	uint32_t capacity;

	*ret_ports = (struct run_ports){0};
	if (!loader_ports(loader, netns, &capacity, &fullest))
		return;
	ret_ports->used = number(fullest.used);
	ret_ports->capacity = number(capacity);
	if (fullest.used)
		units_format_endpoint(fullest.towards.server, fullest.towards.server_port,
				      ret_ports->towards, sizeof(ret_ports->towards));
}

_Static_assert(OPEN_AGES == RUN_AGE_COUNT, "the kernel's ages are the document's");

static void read_open(const struct service_open *open, struct run_open *ret_open)
{
	*ret_open = (struct run_open){
		.read = number(open->read),
		.unread = number(open->unread),
		.unaccepted = number(open->unaccepted),
		.oldest_ns = number(open->oldest_ns),
		.waiting_ns = number(open->waiting_ns),
		.unread_bytes = number(open->unread_bytes),
		.closing = number(open->closing),
		.closing_bytes = number(open->closing_bytes),
	};
	for (size_t i = 0; i < OPEN_AGES; i++)
		ret_open->ages[i] = open->ages[i];
}

/* Return whether no listener's queue was ever full. False also if a depth or a limit is not known. */
static bool never_full(const struct run_service *service)
{
	const struct run_accept_queue *queue = &service->accept_queue;
	bool several = !queue->listeners.known || queue->listeners.value > 1;
	struct run_number limit = queue->limit;

	if (several && !service->listener_count)
		return false;
	/* depth_max is the highest of all listeners: compare it with the lowest limit. */
	for (size_t i = 0; i < service->listener_count; i++)
		if (!i || service->listeners[i].limit.value < limit.value)
			limit = service->listeners[i].limit;
	return limit.known && queue->depth_max.known && queue->depth_max.value < limit.value;
}

/*
 * Return an upper bound of the connections that found an accept queue full. It is the lower of @drops, which have
 * other causes too, and of the namespace's overflows. @never: the queue never was full, so there are none.
 */
static struct run_number overflows_of(const struct loader *loader, uint32_t netns, uint64_t drops,
				      bool never)
{
	struct run_number all = loader_overflows(loader, netns);

	if (all.known && all.value > drops)
		all.value = drops;
	if (never)
		all.value = 0;
	return all;
}

static void read_listener(const struct loader *loader, uint32_t netns,
			  const struct listener_gauge *gauge, bool depth_max_known,
			  struct run_listener *ret_listener)
{
	*ret_listener = (struct run_listener){
		.inode = gauge->inode,
		.depth = number(gauge->depth),
		.depth_max = {depth_max_known, depth_max_known ? gauge->depth_max : 0},
		.limit = number(gauge->limit),
		.drops = number(gauge->drops),
		.overflows = overflows_of(loader, netns, gauge->drops,
					  depth_max_known && gauge->depth_max < gauge->limit),
	};
	inet_ntop((int)gauge->family, gauge->address, ret_listener->address,
		  sizeof(ret_listener->address));
}

/* List the listeners of a service that has several. A single one is described by the service's accept queue. */
static int read_listeners(const struct loader *loader, uint32_t index, struct run_service *service)
{
	uint32_t count = 0;
	const struct listener_gauge *gauges = loader_listeners(loader, &count);

	for (uint32_t i = 0; gauges && i < count; i++) {
		struct run_listener *listener;

		if (gauges[i].service != index)
			continue;
		listener = ARRAY_APPEND(service->listeners, service->listener_count);
		if (!listener)
			return -ENOMEM;
		read_listener(loader, service->netns, &gauges[i],
			      service->accept_queue.depth_max.known, listener);
	}
	return 0;
}

int source_sockets_read(const struct loader *loader, uint32_t index, struct run_service *service)
{
	const struct service_gauges *gauges = loader_gauges(loader, index);

	int r = 0;

	if (!gauges || !loader_visited(loader, service->netns))
		return 0;
	read_ports(loader, service->netns, &service->ports);
	read_open(loader_open_requests(loader, index), &service->open);
	service->connections = number(gauges->connections);
	service->time_wait = number(gauges->time_wait);
	if (gauges->rtt_known) {
		service->srtt_ns = number(gauges->srtt_sum_us * NSEC_PER_USEC / gauges->rtt_known);
		service->min_rtt_ns = number(gauges->rtt_min_us * NSEC_PER_USEC);
	}
	if (!gauges->listeners) {
		service->accept_queue.overflows = overflows_of(
			loader, service->netns, service->accept_queue.drops.value, false);
		return 0;
	}
	if (gauges->addresses == 1)
		inet_ntop((int)gauges->family, gauges->address, service->address,
			  sizeof(service->address));
	else if (gauges->addresses)
		snprintf(service->address, sizeof(service->address), "*");
	service->accept_queue.listeners = number(gauges->listeners);
	service->accept_queue.depth = number(gauges->depth);
	service->accept_queue.limit = number(gauges->limit);
	if (gauges->listeners > 1)
		r = read_listeners(loader, index, service);
	service->accept_queue.overflows = overflows_of(
		loader, service->netns, service->accept_queue.drops.value, never_full(service));
	return r;
}
