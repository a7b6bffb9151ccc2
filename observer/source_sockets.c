// SPDX-License-Identifier: MIT
/* Gauges of a service, as the last visit to the sockets left them. */
#include "source.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/clock.h"

static void read_address(const struct service_gauges *gauges, struct run_service *service)
{
	if (gauges->addresses == 1)
		inet_ntop((int)gauges->family, gauges->address, service->address,
			  sizeof(service->address));
	else if (gauges->addresses)
		snprintf(service->address, sizeof(service->address), "*");
}

static struct run_number number(uint64_t value)
{
	return (struct run_number){true, value};
}

void source_sockets_read(const struct loader *loader, uint32_t index, struct run_service *service)
{
	const struct service_gauges *gauges = loader_gauges(loader, index);

	if (!gauges)
		return;
	service->connections = number(gauges->connections);
	service->time_wait = number(gauges->time_wait);
	if (gauges->rtt_known) {
		service->srtt_ns = number(gauges->srtt_sum_us * NSEC_PER_USEC / gauges->rtt_known);
		service->min_rtt_ns = number(gauges->rtt_min_us * NSEC_PER_USEC);
	}
	if (!gauges->listeners)
		return;
	read_address(gauges, service);
	service->accept_queue.depth = number(gauges->depth);
	service->accept_queue.limit = number(gauges->limit);
	service->accept_queue.overflows = number(gauges->drops);
}
