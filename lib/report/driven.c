// SPDX-License-Identifier: MIT
/* Finds the service that the driver loaded. */
#include <string.h>

#include "parts.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

uint16_t report_url_port(const char *url)
{
	const char *authority, *end, *colon;
	autofree char *port = NULL;
	uint64_t value;

	authority = url ? strstr(url, "://") : NULL;
	if (!authority)
		return 0;
	authority += 3;
	end = authority + strcspn(authority, "/?#");
	colon = memrchr(authority, ':', (size_t)(end - authority));
	/* A colon inside brackets belongs to the address. */
	if (!colon || memchr(colon, ']', (size_t)(end - colon)))
		return !strncmp(url, "https:", 6) ? 443 : 80;
	port = strndup(colon + 1, (size_t)(end - colon - 1));
	if (!port || units_parse_u64(port, 1, UINT16_MAX, &value))
		return 0;
	return (uint16_t)value;
}

uint16_t report_target_port(const struct run_driver *driver)
{
	return report_url_port(driver->target);
}

/* Return the service with most exchanges, on @port unless that is 0; NULL if none has any. */
static const struct run_service *busiest_service(const struct run *run, uint16_t port)
{
	const struct run_service *busiest = NULL;

	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (!service->exchanges || (port && service->port != port))
			continue;
		if (!busiest || service->exchanges > busiest->exchanges)
			busiest = service;
	}
	return busiest;
}

bool report_is_split(const struct run *run)
{
	uint16_t port = report_target_port(run->driver);
	size_t found = 0;

	if (run->driver->part_count > 1 && !run->driver->target)
		return true;
	for (size_t i = 0; i < run->service_count; i++)
		found += run->services[i].host && run->services[i].exchanges &&
			 (!port || run->services[i].port == port);
	return found > 1;
}

const struct run_service *report_driven_service(const struct run *run)
{
	const struct run_service *service;

	if (!run->driver || !run->driver->requests || !run->driver->round_trip.count ||
	    report_is_split(run))
		return NULL;
	service = busiest_service(run, report_target_port(run->driver));
	return service ? service : busiest_service(run, 0);
}
