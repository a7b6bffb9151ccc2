// SPDX-License-Identifier: MIT
/* Finds the services that the driver loaded, and their ports. */
#include <string.h>

#include "parts.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

static uint16_t url_port(const char *url)
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
	return url_port(driver->target);
}

bool report_has_port(const struct report_ports *ports, uint16_t port)
{
	for (size_t i = 0; i < ports->count; i++)
		if (ports->list[i] == port)
			return true;
	return false;
}

static void add_port(struct report_ports *ports, const char *url)
{
	uint16_t port = url ? url_port(url) : 0;

	if (port && !report_has_port(ports, port) && ports->count < RUN_ROWS_MAX)
		ports->list[ports->count++] = port;
}

struct report_ports report_target_ports(const struct run_driver *driver)
{
	const struct run_row_list *targets = &driver->rows[RUN_ROWS_TARGET];
	const struct run_row_list *steps = &driver->rows[RUN_ROWS_STEP];
	struct report_ports ports = {0};

	add_port(&ports, driver->target);
	for (size_t i = 0; i < driver->part_count; i++)
		add_port(&ports, driver->parts[i].target);
	for (size_t i = 0; i < targets->count; i++)
		add_port(&ports, targets->list[i].name);
	for (size_t i = 0; i < steps->count; i++)
		add_port(&ports, steps->list[i].target);
	return ports;
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

/* As the server saw it, requests open at the end are unanswered: a server that hangs ends nothing. */
static bool add_unanswered(const struct run_service *service, struct report_unanswered *unanswered)
{
	uint64_t count = service->losses[RUN_LOSS_UNANSWERED] + service->open.read.value +
			 service->open.unread.value;

	unanswered->count += count;
	unanswered->of += count + service->exchanges;
	return service->open.read.known && service->open.unread.known;
}

bool report_unanswered(const struct run *run, struct report_unanswered *ret_unanswered)
{
	const struct run_service *driven = report_driven_service(run);
	struct report_ports ports = report_target_ports(run->driver);
	bool found = false, known = true;

	*ret_unanswered = (struct report_unanswered){0};
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (driven ? service != driven : !report_has_port(&ports, service->port))
			continue;
		found = true;
		known &= add_unanswered(service, ret_unanswered);
	}
	return found && known && !run->driver->observer_error;
}
