// SPDX-License-Identifier: MIT
/* Finds the services that the driver loaded, and those that are compared. */

#include "parts.h"
#include "sojourn/report.h"

/* Return whether the driver's requests were joined with others' exchanges than those of the service. */
static bool is_passed_by(const struct run *run, const struct run_service *service)
{
	uint64_t joined = 0;

	for (size_t i = 0; run->joined && i < run->joined->host_count; i++)
		joined += run->joined->hosts[i].count;
	return joined && !report_joined_of(run, service);
}

/* Return the service with most exchanges, on @port unless that is 0; NULL if none has any. */
static const struct run_service *busiest_service(const struct run *run, uint16_t port)
{
	const struct run_service *busiest = NULL;

	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (!service->exchanges || (port && service->port != port) ||
		    is_passed_by(run, service))
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
	return found > 1 || report_is_spread(run);
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

/* One service that saw all of the driver's requests says more. */
struct report_compared report_compared(const struct run *run)
{
	if (!run->driver)
		return report_common_services(run);
	if (report_driven_service(run))
		return (struct report_compared){0};
	return report_target_services(run);
}
