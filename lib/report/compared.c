// SPDX-License-Identifier: MIT
/*
 * Finds what is compared in the table of hosts: services that do the same work. They are on several hosts, or in
 * several pods or containers of one.
 *
 * One port on several hosts is taken for one service. In pods of one host it says little: most programs in
 * containers have port 8080. There the services are those that answered the driver, else those whose names say that
 * they do the same work.
 */
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"

/* So much of the driver's requests are all of them. */
#define ALL	0.95
#define AT_MOST 1.05

static bool has(const struct report_compared *compared, const struct run_service *service)
{
	char workload[RUN_PLACE_NAME];

	return report_has_port(&compared->ports, service->port) &&
	       (!compared->of_workload ||
		!strcmp(run_place_workload(&service->place, workload), compared->workload));
}

const struct run_joined_step *report_joined_of(const struct run *run,
					       const struct run_service *service)
{
	const char *host = run_host_of(run, service);
	char place[RUN_PLACE_NAME];

	run_place_name(&service->place, place);
	for (size_t i = 0; run->joined && i < run->joined->host_count; i++) {
		const struct run_joined_step *row = &run->joined->hosts[i];

		if (row->count && text_same(row->name, host ? host : "") &&
		    text_same(row->place ? row->place : "", place))
			return row;
	}
	return NULL;
}

bool report_is_compared(const struct report_compared *compared, const struct run *run,
			const struct run_service *service)
{
	return has(compared, service) && (!compared->joined || report_joined_of(run, service));
}

/* Return whether there are services that differ in host, pod or container. With @one_host: on one host. */
static bool has_several(const struct run *run, const struct report_compared *compared,
			bool one_host)
{
	for (size_t i = 0; i < run->service_count; i++) {
		if (!has(compared, &run->services[i]))
			continue;
		for (size_t k = i + 1; k < run->service_count; k++)
			if (has(compared, &run->services[k]) &&
			    !run_same_instance(&run->services[i], &run->services[k]) &&
			    (!one_host || text_same(run->services[i].host, run->services[k].host)))
				return true;
	}
	return false;
}

static uint64_t exchanges_of(const struct run *run, const struct report_compared *compared)
{
	uint64_t exchanges = 0;

	for (size_t i = 0; i < run->service_count; i++)
		if (has(compared, &run->services[i]))
			exchanges += run->services[i].exchanges;
	return exchanges;
}

/* Of services at these ports in several pods of one host take those that do the same work as this one. */
static void narrow(const struct run *run, const struct run_service *like,
		   struct report_compared *compared)
{
	if (!has_several(run, compared, true))
		return;
	run_place_workload(&like->place, compared->workload);
	compared->of_workload = true;
}

/* A service of a port and, within it, of a workload. */
struct member {
	uint16_t port;
	char workload[RUN_PLACE_NAME];
	uint64_t exchanges;
};

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return x->port == y->port ? strcmp(x->workload, y->workload) : x->port < y->port ? -1 : 1;
}

/* Return how many members, from the first one on, have its port and, with @of_workload, its workload. */
static size_t alike(const struct member *first, size_t count, bool of_workload,
		    uint64_t *ret_exchanges)
{
	size_t i = 0;

	*ret_exchanges = 0;
	for (; i < count && first[i].port == first->port &&
	       (!of_workload || !strcmp(first[i].workload, first->workload));
	     i++)
		*ret_exchanges += first[i].exchanges;
	return i;
}

static void take(const struct run *run, const struct member *first, bool of_workload,
		 uint64_t exchanges, struct report_compared *most, uint64_t *most_exchanges)
{
	struct report_compared one = {.ports = {{first->port}, 1}, .of_workload = of_workload};

	if (exchanges <= *most_exchanges)
		return;
	if (of_workload)
		strcpy(one.workload, first->workload);
	if (!has_several(run, &one, false))
		return;
	*most = one;
	*most_exchanges = exchanges;
}

/* Take the services of a port if they have more exchanges than those before. */
static void take_port(const struct run *run, const struct member *first, size_t count,
		      uint64_t exchanges, struct report_compared *most, uint64_t *most_exchanges)
{
	const struct report_compared port = {.ports = {{first->port}, 1}};
	bool of_workload = exchanges > *most_exchanges && has_several(run, &port, true);

	for (size_t i = 0, size; i < count; i += size) {
		size = of_workload ? alike(&first[i], count - i, true, &exchanges) : count;
		take(run, &first[i], of_workload, exchanges, most, most_exchanges);
	}
}

/* Find the services with most exchanges of those that are in several places. */
struct report_compared report_common_services(const struct run *run)
{
	autofree struct member *members = calloc(run->service_count + 1, sizeof(*members));
	struct report_compared most = {0};
	uint64_t most_exchanges = 0, exchanges;
	size_t size;

	for (size_t i = 0; members && i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		members[i].port = service->port;
		members[i].exchanges = service->exchanges;
		run_place_workload(&service->place, members[i].workload);
	}
	if (members && run->service_count)
		qsort(members, run->service_count, sizeof(*members), compare_members);
	for (size_t i = 0; members && i < run->service_count; i += size) {
		size = alike(&members[i], run->service_count - i, false, &exchanges);
		take_port(run, &members[i], size, exchanges, &most, &most_exchanges);
	}
	return most;
}

static const struct run_service *busiest_of(const struct run *run,
					    const struct report_compared *compared)
{
	const struct run_service *busiest = NULL;

	for (size_t i = 0; i < run->service_count; i++)
		if (has(compared, &run->services[i]) &&
		    (!busiest || run->services[i].exchanges > busiest->exchanges))
			busiest = &run->services[i];
	return busiest;
}

struct report_compared report_target_services(const struct run *run)
{
	struct report_compared compared = {.ports = report_target_ports(run->driver)};

	if (!has_several(run, &compared, false))
		return report_common_services(run);
	if (!has_several(run, &compared, true))
		return compared;
	/* Pods of others may have the driver's port. */
	for (size_t i = 0; i < run->service_count && !compared.joined; i++)
		compared.joined = has(&compared, &run->services[i]) &&
				  report_joined_of(run, &run->services[i]);
	if (!compared.joined)
		narrow(run, busiest_of(run, &compared), &compared);
	return compared;
}

bool report_is_spread(const struct run *run)
{
	struct report_compared common;
	double requests = (double)run->driver->requests, exchanges;
	size_t joined = 0;

	for (size_t i = 0; run->joined && i < run->joined->host_count; i++)
		joined += run->joined->hosts[i].count != 0;
	if (joined)
		return joined > 1;
	common = report_common_services(run);
	exchanges = (double)exchanges_of(run, &common);
	return common.ports.count && exchanges >= ALL * requests &&
	       exchanges <= AT_MOST * requests &&
	       (double)busiest_of(run, &common)->exchanges < ALL * exchanges;
}
