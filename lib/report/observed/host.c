// SPDX-License-Identifier: MIT
/* Resources that all services of a host share: source ports, used by all outgoing connections. */
#include <string.h>

#include "parts.h"

/* Without -v, report from this share on. */
#define NOTABLE_SHARE 0.1

static bool uses_ports(const struct run_service *service)
{
	const struct run_ports *ports = &service->ports;

	return ports->used.known && ports->used.value && ports->capacity.known;
}

static bool is_notable(const struct run_service *service)
{
	const struct run_ports *ports = &service->ports;

	return (double)ports->used.value >= NOTABLE_SHARE * (double)ports->capacity.value;
}

static bool is_same(const struct run_service *one, const struct run_service *other)
{
	const char *host = one->host ? one->host : "", *host2 = other->host ? other->host : "";

	return uses_ports(other) && one->netns == other->netns && !strcmp(host, host2) &&
	       !strcmp(one->ports.towards, other->ports.towards);
}

/* Return whether a service in the same namespace has reported the same ports. */
static bool was_told(const struct run *run, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (is_same(&run->services[index], &run->services[i]))
			return true;
	return false;
}

static void print_ports(const struct page *page, const struct run_service *service)
{
	const struct run_ports *ports = &service->ports;
	autoitems struct items items = items_begin(page, "host ports", LABEL_COLUMNS);

	items_add(&items, "%s of %s towards %s", as_count(ports->used.value),
		  as_count(ports->capacity.value),
		  *ports->towards ? ports->towards : "one destination");
	if (service->host)
		items_add(&items, "host %s", service->host);
}

void report_host_ports(const struct page *page, const struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (uses_ports(&run->services[i]) && !was_told(run, i) &&
		    (page->verbose || is_notable(&run->services[i])))
			print_ports(page, &run->services[i]);
}
