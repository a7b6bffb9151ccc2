// SPDX-License-Identifier: MIT
/* Gauges of a service, as the last visit to the sockets left them. */
#include "source.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/units.h"

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

/* The same for every service of the namespace. */
void source_sockets_ports(const struct loader *loader, struct run_ports *ret_ports)
{
	struct port_place fullest;
	struct port_rules rules;

	*ret_ports = (struct run_ports){0};
	if (!loader_ports(loader, &rules, &fullest))
		return;
	ret_ports->used = number(fullest.used);
	ret_ports->capacity = number(resource_ports_capacity(&rules));
	if (fullest.used)
		units_format_endpoint(fullest.towards.server, fullest.towards.server_port,
				      ret_ports->towards, sizeof(ret_ports->towards));
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
