// SPDX-License-Identifier: MIT
/*
 * Rules about a service's counts. They are read one by one while the service works
 * (observer/sources/slots.c), and may differ by what passed meanwhile.
 */
#include "rules.h"

#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"

/* Maximum time of a reading, on a busy machine. */
#define READING_NS (100 * NSEC_PER_MSEC)

static bool is_tcp(const struct run_service *service)
{
	return !strcmp(service->protocol, "tcp");
}

static uint64_t within(uint64_t count, uint64_t length_ns, uint64_t duration_ns)
{
	unsigned __int128 product = (unsigned __int128)count * length_ns;

	return duration_ns > length_ns ? (uint64_t)(product / duration_ns) : count;
}

static void add_moving(struct check_moving *moving, const struct run_point *point)
{
	uint64_t ends = run_counts_sum(point->closes, RUN_CLOSE_COUNT);

	moving->exchanges += within(point->exchanges, READING_NS, point->duration_ns);
	moving->connections += within(point->accepted + ends, READING_NS, point->duration_ns);
}

struct check_moving check_moving(const struct run_service *service)
{
	const struct run_series *series = service->series;
	struct check_moving sum = {0};

	if (!series || !series->count)
		return sum;
	add_moving(&sum, &series->points[0]);
	if (series->count > 1)
		add_moving(&sum, &series->points[series->count - 1]);
	return sum;
}

/* check_same() and check_at_most() for counts read one by one. */
static void nearly_same(struct checking *checking, uint64_t apart, const char *place,
			const char *left_name, uint64_t left, const char *right_name,
			uint64_t right)
{
	uint64_t difference = left > right ? left - right : right - left;

	if (difference > apart)
		check_same(checking, place, left_name, left, right_name, right);
}

static void nearly_at_most(struct checking *checking, uint64_t apart, const char *place,
			   const char *left_name, uint64_t left, const char *right_name,
			   uint64_t right)
{
	if (left > right && left - right > apart)
		check_at_most(checking, place, left_name, left, right_name, right);
}

static uint64_t stage_count(const struct run_service *service, enum stage stage)
{
	return service->stages[stage].histogram.count;
}

static uint64_t ends(const struct run_service *service)
{
	return run_counts_sum(service->closes, RUN_CLOSE_COUNT);
}

/* Count connections at the period's end; false: not known. */
static bool open_connections(const struct run_service *service, uint64_t *ret_count)
{
	if (!service->connections.known || !service->open.closing.known)
		return false;
	*ret_count = service->connections.value + service->open.closing.value;
	return true;
}

/* Count connections at the period's start; false: not known. */
static bool older_connections(const struct run_service *service, uint64_t *ret_count)
{
	uint64_t open;

	if (!open_connections(service, &open))
		return false;
	open += ends(service);
	*ret_count = open > service->accepted ? open - service->accepted : 0;
	return true;
}

/* ---- exchanges ---- */

/* An exchange with contradictory times may be in neither of the two counts. */
void check_timed(struct checking *checking, const struct run_service *service, const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	uint64_t known = stage_count(service, STAGE_SERVICE) + service->losses[RUN_LOSS_UNTIMED];

	if (!service->stages[STAGE_SERVICE].measured)
		return;
	if (known < service->exchanges &&
	    service->exchanges - known <= service->losses[RUN_LOSS_INCONSISTENT])
		return;
	nearly_same(checking, apart, place, "stages.service.count + losses.untimed", known,
		    "exchanges", service->exchanges);
}

/* For UDP, socket_queue counts all datagrams, answered or not. */
void check_stages_agree(struct checking *checking, const struct run_service *service,
			const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	static const enum stage same[] = {STAGE_SOCKET_QUEUE, STAGE_RECEIVE, STAGE_RESPOND};
	uint64_t all = stage_count(service, STAGE_SERVICE);
	char name[64];

	if (!is_tcp(service) || !service->stages[STAGE_SERVICE].measured ||
	    service->losses[RUN_LOSS_INCONSISTENT])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		snprintf(name, sizeof(name), "stages.%s.count", run_stage_names[same[i]]);
		if (service->stages[same[i]].measured)
			nearly_same(checking, apart, place, name, stage_count(service, same[i]),
				    "stages.service.count", all);
	}
}

void check_split(struct checking *checking, const struct run_service *service, const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	const struct histogram *whole = &service->stages[STAGE_SERVICE].histogram;
	const struct histogram *running = &service->cpu[RUN_CPU_RUNNING].histogram;
	uint64_t sum_ns = 0;

	if (!service->cpu[RUN_CPU_RUNNING].measured || !service->stages[STAGE_SERVICE].measured)
		return;
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++) {
		sum_ns += service->cpu[i].histogram.sum;
		nearly_same(checking, apart, place, run_cpu_names[i],
			    service->cpu[i].histogram.count, "cpu.running.count", running->count);
	}
	nearly_at_most(checking, apart, place, "cpu.running.count", running->count,
		       "stages.service.count", whole->count);
	if (running->count == whole->count && !apart)
		check_same(checking, place, "the sum of the parts", sum_ns, "stages.service.sum_ns",
			   whole->sum);
	else if (!apart)
		check_at_most(checking, place, "the sum of the parts", sum_ns,
			      "stages.service.sum_ns", whole->sum);
}

void check_parts_of_exchanges(struct checking *checking, const struct run_service *service,
			      const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	static const struct {
		enum run_loss part, whole; /* RUN_LOSS_COUNT: all exchanges */
	} parts[] = {
		{RUN_LOSS_OVERLAPPED, RUN_LOSS_COUNT},
		{RUN_LOSS_UNTIMED, RUN_LOSS_COUNT},
		{RUN_LOSS_BLOCKED, RUN_LOSS_COUNT},
		{RUN_LOSS_UNSEEN_READS, RUN_LOSS_UNTIMED},
		{RUN_LOSS_AMBIGUOUS_REPLIES, RUN_LOSS_UNTIMED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		bool of_all = parts[i].whole == RUN_LOSS_COUNT;

		nearly_at_most(checking, apart, place, run_loss_names[parts[i].part],
			       service->losses[parts[i].part],
			       of_all ? "exchanges" : run_loss_names[parts[i].whole],
			       of_all ? service->exchanges : service->losses[parts[i].whole]);
	}
	nearly_at_most(checking, apart, place, "accept_delayed", service->accept_delayed,
		       "exchanges", service->exchanges);
	nearly_at_most(checking, apart, place, "accept_delayed", service->accept_delayed,
		       "accept_delay_ns", service->accept_delay_ns);
}

/* Statuses add up to the responses, and no histogram of failed ones has more than their count. */
static void statuses(struct checking *checking, const struct run_service *service,
		     const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	const struct run_responses *responses = &service->responses;
	uint64_t sums[RUN_STATUS_CLASSES] = {responses->status[0]}, sum = 0;
	char name[32];

	for (unsigned int i = 0; i < RUN_STATUS_COUNT; i++)
		sums[(RUN_STATUS_LEAST + i) / 100] += responses->statuses[i];
	for (unsigned int i = 0; i < RUN_STATUS_CLASSES; i++) {
		snprintf(name, sizeof(name), "responses.status.%uxx", i);
		check_same(checking, place, "its responses.statuses", sums[i], name,
			   responses->status[i]);
		sum += responses->status[i];
	}
	check_same(checking, place, "the sum of responses.status", sum, "responses.count",
		   responses->count);
	nearly_at_most(checking, apart, place, "responses.count", responses->count, "exchanges",
		       service->exchanges);
	nearly_at_most(checking, apart, place, "responses.service_4xx.count",
		       responses->service_4xx.count, "responses.status.4xx", responses->status[4]);
	nearly_at_most(checking, apart, place, "responses.service_5xx.count",
		       responses->service_5xx.count, "responses.status.5xx", responses->status[5]);
}

/* Each stream that was reset has an error code. */
static void resets(struct checking *checking, const struct run_service *service, const char *place)
{
	const struct run_http2 *http2 = &service->http2;
	uint64_t client = run_counts_sum(http2->client_resets, RUN_RESET_COUNT);
	uint64_t server = run_counts_sum(http2->server_resets, RUN_RESET_COUNT);

	/* Documents before these counts have no codes. */
	if (client)
		nearly_same(checking, check_moving(service).exchanges, place,
			    "the sum of http2.client_resets", client, "http2.reset_by_client",
			    http2->reset_by_client.value);
	if (server)
		nearly_same(checking, check_moving(service).exchanges, place,
			    "the sum of http2.server_resets", server, "http2.reset_by_server",
			    http2->reset_by_server.value);
}

/* The same for gRPC, whose responses count when they end. */
static void statuses_of_grpc(struct checking *checking, const struct run_service *service,
			     const char *place)
{
	const struct run_grpc *grpc = &service->grpc;
	uint64_t failed = run_counts_sum(grpc->status + 1, RUN_GRPC_STATUS_COUNT - 1);

	check_same(checking, place, "the sum of grpc.status",
		   run_counts_sum(grpc->status, RUN_GRPC_COUNT), "grpc.count", grpc->count);
	nearly_same(checking, check_moving(service).exchanges, place, "the sum of grpc.kinds",
		    run_counts_sum(grpc->kinds, RUN_GRPC_KIND_COUNT), "grpc.count", grpc->count);
	nearly_at_most(checking, check_moving(service).exchanges, place,
		       "grpc.service_failed.count", grpc->service_failed.count,
		       "the failed ones of grpc.status", failed);
}

/* Each response has a route, or a reason why it has none; likewise each exchange a command. */
static void routes(struct checking *checking, const struct run_service *service, const char *place)
{
	uint64_t apart = check_moving(service).exchanges, all = 0;
	const struct run_routes *told = &service->routes;
	const char *name = told->protocol ? "exchanges" : "responses.count";
	uint64_t responses = told->protocol ? service->exchanges : service->responses.count;

	for (size_t i = 0; i < told->count; i++) {
		const struct run_route *route = &told->list[i];

		if (told->protocol)
			nearly_at_most(checking, apart, place, "a command's errors",
				       route->errors.value, "its count", route->count);
		else
			check_same(checking, place, "the sum of a route's status",
				   run_counts_sum(route->status, RUN_STATUS_CLASSES), "its count",
				   route->count);
		nearly_at_most(checking, apart, place, "a route's service.count",
			       route->service.count, "its count", route->count);
		all += route->count;
	}
	all += run_counts_sum(told->not_known, RUN_ROUTELESS_COUNT);
	if (!told->count)
		return;
	nearly_at_most(checking, apart, place, "the sum of routes", all, name, responses);
	nearly_at_most(checking, apart, place, name, responses, "the sum of routes", all);
}

void check_statuses(struct checking *checking)
{
	check_each_service(checking, statuses);
	check_each_service(checking, resets);
	check_each_service(checking, statuses_of_grpc);
	check_each_service(checking, routes);
}

/* ---- connections ---- */

/* Closes and open connections may exceed the accepted ones by connections older than the period. */
void check_connections(struct checking *checking, const struct run_service *service,
		       const char *place)
{
	uint64_t apart = check_moving(service).connections;
	uint64_t open, older, waited;

	if (!is_tcp(service) || !open_connections(service, &open) ||
	    !older_connections(service, &older))
		return;
	nearly_at_most(checking, apart, place, "accepted", service->accepted,
		       "closes + connections + open.closing", ends(service) + open);
	waited = stage_count(service, STAGE_ACCEPT_QUEUE) + service->losses[RUN_LOSS_ACCEPT_UNSEEN];
	nearly_at_most(checking, apart, place, "stages.accept_queue.count + losses.accept_unseen",
		       waited, "accepted + older connections", service->accepted + older);
	nearly_at_most(checking, apart, place, "tls_handshake.count", service->tls_handshake.count,
		       "accepted + older connections", service->accepted + older);
}

void check_time_wait(struct checking *checking, const struct run_service *service,
		     const char *place)
{
	uint64_t apart = check_moving(service).connections;
	nearly_at_most(checking, apart, place, "time_wait_created + losses.time_wait_unsure",
		       service->time_wait_created + service->losses[RUN_LOSS_TIME_WAIT_UNSURE],
		       "the sum of closes", ends(service));
}

/* A response followed before the period may end in it: one per older connection. */
void check_transmit(struct checking *checking, const struct run_service *service, const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	uint64_t sent = stage_count(service, STAGE_TRANSMIT_QUEUE) +
			service->losses[RUN_LOSS_TRANSMIT_UNSEEN];
	uint64_t acked = stage_count(service, STAGE_ACK) + service->losses[RUN_LOSS_ACK_UNSEEN];
	uint64_t older;

	if (!service->stages[STAGE_TRANSMIT_QUEUE].measured || !service->stages[STAGE_ACK].measured)
		return;
	nearly_same(checking, apart, place, "stages.transmit_queue.count + losses.transmit_unseen",
		    sent, "stages.ack.count + losses.ack_unseen", acked);
	if (older_connections(service, &older))
		nearly_at_most(checking, apart, place,
			       "stages.transmit_queue.count + losses.transmit_unseen", sent,
			       "transmit_followed + older connections",
			       service->transmit_followed + older);
}

/* ---- state at the end ---- */

void check_open(struct checking *checking, const struct run_service *service, const char *place)
{
	const struct run_open *open = &service->open;

	if (!open->read.known || !open->unread.known)
		return;
	check_at_most(checking, place, "the sum of open.ages",
		      run_counts_sum(open->ages, RUN_AGE_COUNT), "open.read + open.unread",
		      open->read.value + open->unread.value);
	check_at_most(checking, place, "open.unaccepted", open->unaccepted.value, "open.unread",
		      open->unread.value);
	check_at_most(checking, place, "open.waiting_ns", open->waiting_ns.value, "open.oldest_ns",
		      open->oldest_ns.value);
}

/* ---- lengths ---- */

static uint64_t longer_than(const struct histogram *h, uint64_t ns)
{
	uint64_t count = 0;

	for (unsigned int i = bucket_index(ns) + 1; i < BUCKET_COUNT; i++)
		count += h->buckets[i];
	return count;
}

/*
 * Stages that began before the period may be longer. As stages of a connection follow each other,
 * at most one of each can have begun before, and only on an older connection.
 */
void check_long_values(struct checking *checking, const struct run_service *service,
		       const char *place)
{
	uint64_t apart = check_moving(service).connections;
	uint64_t duration_ns = checking->run->duration_ns, older;
	char name[64];

	/* HTTP/2 has many streams per connection. */
	if (!is_tcp(service) || service->http2.connections.value ||
	    !older_connections(service, &older))
		return;
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		uint64_t count = longer_than(&service->stages[i].histogram, duration_ns);

		if (!service->stages[i].measured)
			continue;
		snprintf(name, sizeof(name), "stages.%s: those longer than the period",
			 run_stage_names[i]);
		nearly_at_most(checking, apart, place, name, count,
			       "connections older than the period", older);
	}
}

/* ---- samples ---- */

void check_service_samples(struct checking *checking, const struct run_service *service,
			   const char *place)
{
	uint64_t apart = check_moving(service).exchanges;
	const struct run_samples *samples = service->samples;
	uint64_t outside = 0, divided = 0;

	if (!samples)
		return;
	for (size_t i = 0; i < samples->count; i++) {
		const struct run_sample *sample = &samples->samples[i];
		bool parted =
			sample->known & RUN_SAMPLE_RUNNING && sample->known & RUN_SAMPLE_RUNNABLE;

		outside += exchange_hash(flow_hash(&sample->flow), sample->index) >=
			   samples->threshold;
		divided += parted && sample->running_ns + sample->runnable_ns >
					     sample->stage_ns[STAGE_SERVICE];
	}
	/* If one thread reads while another writes, an exchange is inconsistent and not timed. */
	check_at_most(checking, place, "samples.inconsistent", samples->inconsistent,
		      "losses.inconsistent + losses.untimed",
		      service->losses[RUN_LOSS_INCONSISTENT] + service->losses[RUN_LOSS_UNTIMED]);
	check_same(checking, place, "samples whose hash is not below the threshold", outside,
		   "the number that there should be", 0);
	check_same(checking, place, "samples that run longer than they are served", divided,
		   "the number that there should be", 0);
	nearly_at_most(checking, apart, place, "the number of samples", samples->count, "exchanges",
		       service->exchanges);
}
