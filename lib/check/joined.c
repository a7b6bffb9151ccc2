// SPDX-License-Identifier: MIT
/* Rules about joined exchanges, and about both sides if they saw the same requests. */
#include "rules.h"

#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"

/* ---- parts of an exchange ---- */

static void parts(struct checking *checking, const char *place, const struct run_parts *parts)
{
	uint64_t server_ns = 0;

	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		if (i != STAGE_ACK && parts->stages[i].known)
			server_ns += parts->stages[i].value;
	check_same(checking, place, "network_ns + stages", parts->network_ns + server_ns,
		   "round_trip_ns + overhang_ns", parts->round_trip_ns + parts->overhang_ns);
	check_at_most(checking, place, "running_ns + runnable_ns + blocked_ns",
		      parts->running_ns.value + parts->runnable_ns.value + parts->blocked_ns.value,
		      "stages.service", parts->stages[STAGE_SERVICE].value);
}

void check_joined_parts(struct checking *checking)
{
	const struct run_joined *joined = checking->run->joined;
	char place[CHECK_PLACE];

	if (!joined)
		return;
	parts(checking, "joined.sum", &joined->sum);
	for (size_t i = 0; i < joined->tail_count; i++) {
		snprintf(place, sizeof(place), "joined.tail[%zu].sum", i);
		parts(checking, place, &joined->tail[i].sum);
	}
	for (size_t i = 0; i < joined->step_count; i++) {
		snprintf(place, sizeof(place), "joined.steps[%zu].sum", i);
		parts(checking, place, &joined->steps[i].sum);
	}
	for (size_t i = 0; i < joined->host_count; i++) {
		snprintf(place, sizeof(place), "joined.hosts[%zu].sum", i);
		parts(checking, place, &joined->hosts[i].sum);
	}
	for (size_t i = 0; i < joined->slowest_count; i++) {
		snprintf(place, sizeof(place), "joined.slowest[%zu].parts", i);
		parts(checking, place, &joined->slowest[i].parts);
	}
}

static void same_histogram(struct checking *checking, const char *place, const struct histogram *h,
			   uint64_t count, uint64_t sum_ns)
{
	check_same(checking, place, "count", h->count, "the number of joined exchanges", count);
	check_same(checking, place, "sum_ns", h->sum, "that in joined.sum", sum_ns);
}

void check_joined_sums(struct checking *checking)
{
	const struct run_joined *joined = checking->run->joined;
	char place[CHECK_PLACE];
	uint64_t in_steps = 0, on_hosts = 0;

	if (!joined)
		return;
	same_histogram(checking, "joined.round_trip", &joined->round_trip, joined->joined,
		       joined->sum.round_trip_ns);
	same_histogram(checking, "joined.network", &joined->network, joined->joined,
		       joined->sum.network_ns);
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		const struct histogram *h = &joined->stages[i].histogram;

		if (!joined->stages[i].measured)
			continue;
		/* Not all exchanges are followed. */
		snprintf(place, sizeof(place), "joined.stages.%s", run_stage_names[i]);
		same_histogram(checking, place, h,
			       i < STAGE_RESIDENCE_END ? joined->joined : h->count,
			       joined->sum.stages[i].value);
		check_at_most(checking, place, "count", h->count, "joined.joined", joined->joined);
	}
	for (size_t i = 0; i < joined->step_count; i++)
		in_steps += joined->steps[i].count;
	check_at_most(checking, "joined.steps", "the sum of their counts", in_steps,
		      "joined.joined", joined->joined);
	for (size_t i = 0; i < joined->host_count; i++)
		on_hosts += joined->hosts[i].count;
	if (joined->host_count)
		check_same(checking, "joined.hosts", "the sum of their counts", on_hosts,
			   "joined.joined", joined->joined);
}

/* On loopback the client may have the response before the server's write returns (overhang). */
void check_joined_stages(struct checking *checking)
{
	const struct run_joined *joined = checking->run->joined;
	char place[CHECK_PLACE];

	for (unsigned int i = 0; joined && i < STAGE_ACK; i++) {
		if (!joined->stages[i].measured)
			continue;
		snprintf(place, sizeof(place), "joined.stages.%s", run_stage_names[i]);
		check_at_most(checking, place, "max_ns", joined->stages[i].histogram.max,
			      "joined.round_trip.max_ns + joined.sum.overhang_ns",
			      joined->round_trip.max + joined->sum.overhang_ns);
	}
}

void check_joined_tail(struct checking *checking)
{
	const struct run_joined *joined = checking->run->joined;

	for (size_t i = 1; joined && i < joined->tail_count; i++) {
		const struct run_tail *tail = &joined->tail[i], *before = tail - 1;

		check_at_most(checking, "joined.tail", "above_ns", before->above_ns,
			      "that of the next percentile", tail->above_ns);
		check_at_most(checking, "joined.tail", "count", tail->count,
			      "that of the percentile before", before->count);
	}
	for (size_t i = 1; joined && i < joined->slowest_count; i++)
		check_at_most(checking, "joined.slowest", "what an exchange took",
			      run_parts_total(&joined->slowest[i].parts),
			      "what the one before took",
			      run_parts_total(&joined->slowest[i - 1].parts));
}

static uint64_t exchanges(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->service_count; i++)
		if (!strcmp(run->services[i].protocol, "tcp"))
			sum += run->services[i].exchanges;
	return sum;
}

void check_joined_counts(struct checking *checking)
{
	const struct run_joined *joined = checking->run->joined;
	const struct run *run = checking->run;
	const char *place = "joined";

	if (!joined || !run->driver)
		return;
	check_at_most(checking, place, "joined", joined->joined, "driver.requests",
		      run->driver->requests);
	check_at_most(checking, place, "joined", joined->joined, "the services' exchanges",
		      exchanges(run));
	check_at_most(checking, place, "early", joined->early, "joined", joined->joined);
	check_at_most(checking, place, "repeated", joined->repeated, "joined", joined->joined);
	check_at_most(checking, place, "unknown_flow", joined->unknown_flow, "driver_only",
		      joined->driver_only);
}

/* ---- both sides ---- */

/*
 * Return the single service whose exchanges are exactly the driver's requests, as far as the joined
 * ones show; NULL: none. The service may also have seen failed requests.
 */
static const struct run_service *common_service(const struct run *run)
{
	const struct run_joined *joined = run->joined;
	const struct run_driver *driver = run->driver;
	const struct run_service *service = run->services;

	if (!joined || !joined->joined || !driver || run->service_count != 1 ||
	    strcmp(service->protocol, "tcp"))
		return NULL;
	if (driver->requests != service->exchanges || run_driver_errors(driver))
		return NULL;
	return joined->unmeasured || joined->other_clients || joined->observer_only ||
			       joined->driver_only
		       ? NULL
		       : service;
}

/*
 * Return whether both sides count the same bytes. They differ by TLS (larger records), HTTP/2
 * (frames outside of requests), messages that are no exchange, and requests outside of the measured
 * phase.
 */
static bool same_bytes(const struct run *run, const struct run_service *service)
{
	return !service->tls && !service->http2.streams.value &&
	       !service->losses[RUN_LOSS_UNSOLICITED] && !service->losses[RUN_LOSS_UNANSWERED] &&
	       !service->losses[RUN_LOSS_ONEWAY] && !service->losses[RUN_LOSS_GOODBYES] &&
	       !service->losses[RUN_LOSS_TRAILING] && !service->open.read.value &&
	       !service->open.unread.value && !run->driver->warmup_ns &&
	       !run->driver->cooldown_ns && !run->driver->part_count;
}

static void same_sums(struct checking *checking, const struct run_service *service,
		      const char *place)
{
	static const enum stage exact[] = {STAGE_SOCKET_QUEUE, STAGE_RECEIVE, STAGE_SERVICE};
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(exact); i++) {
		snprintf(name, sizeof(name), "joined.sum.stages.%s", run_stage_names[exact[i]]);
		check_same(checking, place, name, checking->run->joined->sum.stages[exact[i]].value,
			   "the service's sum", service->stages[exact[i]].histogram.sum);
	}
}

void check_both_sides(struct checking *checking)
{
	const struct run_service *service = common_service(checking->run);
	const struct run_driver *driver = checking->run->driver;
	char place[CHECK_PLACE];

	if (!service)
		return;
	check_place_of(service, place);
	if (checking->run->joined->joined == service->exchanges &&
	    service->exchanges == service->stages[STAGE_SERVICE].histogram.count)
		same_sums(checking, service, place);
	if (!same_bytes(checking->run, service))
		return;
	check_same(checking, place, "bytes_in", service->bytes_in, "driver.bytes_out",
		   driver->bytes_out);
	check_same(checking, place, "bytes_out", service->bytes_out, "driver.bytes_in",
		   driver->bytes_in);
}
