// SPDX-License-Identifier: MIT
/* Services that the observer had no slot for, as a resource: the slots are its own, and others may have taken them. */
#include <stdio.h>

#include "resource.h"
#include "sojourn/run.h"

void resource_measure_services(const struct run *run, struct resource_list *list)
{
	static const char source[] = "slots of the observer";
	uint64_t connections = run->connections_dropped, services = run->services_dropped;
	struct resource *resource;

	if (!services && !connections)
		return;
	resource = resource_add(list, RESOURCE_SERVICES, NULL);
	if (!resource)
		return;
	resource->events = (double)(connections > services ? connections : services);
	resource->used = (double)services;
	snprintf(resource->object, sizeof(resource->object), "%s",
		 run->dropped_ports[0] ? run->dropped_ports : "the observed services");
	resource_fact(resource, "connections that were not observed", (double)connections,
		      "connections", source);
	resource_fact(resource, "services that found no slot", (double)services, "services",
		      source);
	resource_fact(resource, "services with a slot", (double)run->service_count, "services",
		      source);
	resource_fact(resource, "services that gave theirs to others",
		      (double)run->reclaimed.services, "services", source);
}
