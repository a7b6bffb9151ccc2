// SPDX-License-Identifier: MIT
/*
 * Rules about a service's counts. They are read one by one while the service works
 * (observer/sources/slots.c), and may differ by what passed meanwhile.
 */
#include "check_rules.h"

#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"

#include "sojourn/clock.h"
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
	uint64_t ends = 0;

	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		ends += point->closes[i];
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
			struct check_value left, struct check_value right)
{
	uint64_t difference =
		left.value > right.value ? left.value - right.value : right.value - left.value;

	if (difference > apart)
		check_same(checking, place, left, right);
}

static void nearly_at_most(struct checking *checking, uint64_t apart, const char *place,
			   struct check_value left, struct check_value right)
{
	if (left.value > right.value && left.value - right.value > apart)
		check_at_most(checking, place, left, right);
}

static uint64_t stage_count(const struct run_service *service, enum stage stage)
{
	return service->stages[stage].histogram.count;
}

static uint64_t ends(const struct run_service *service)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		sum += service->closes[i];
	return sum;
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
	struct check_value left = {"stages.service.count + losses.untimed", known};
	struct check_value right = {"exchanges", service->exchanges};

	if (!service->stages[STAGE_SERVICE].measured)
		return;
	if (known < service->exchanges &&
	    service->exchanges - known <= service->losses[RUN_LOSS_INCONSISTENT])
		return;
	nearly_same(checking, apart, place, left, right);
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
			nearly_same(checking, apart, place,
				    (struct check_value){name, stage_count(service, same[i])},
				    (struct check_value){"stages.service.count", all});
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
		nearly_same(checking, apart, place,
			    (struct check_value){run_cpu_names[i], service->cpu[i].histogram.count},
			    (struct check_value){"cpu.running.count", running->count});
	}
	nearly_at_most(checking, apart, place,
		       (struct check_value){"cpu.running.count", running->count},
		       (struct check_value){"stages.service.count", whole->count});
	if (running->count == whole->count && !apart)
		check_same(checking, place, (struct check_value){"the sum of the parts", sum_ns},
			   (struct check_value){"stages.service.sum_ns", whole->sum});
	else if (!apart)
		check_at_most(checking, place, (struct check_value){"the sum of the parts", sum_ns},
			      (struct check_value){"stages.service.sum_ns", whole->sum});
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

		nearly_at_most(
			checking, apart, place,
			(struct check_value){run_loss_names[parts[i].part],
					     service->losses[parts[i].part]},
			(struct check_value){of_all ? "exchanges" : run_loss_names[parts[i].whole],
					     of_all ? service->exchanges
						    : service->losses[parts[i].whole]});
	}
	nearly_at_most(checking, apart, place,
		       (struct check_value){"accept_delayed", service->accept_delayed},
		       (struct check_value){"exchanges", service->exchanges});
	nearly_at_most(checking, apart, place,
		       (struct check_value){"accept_delayed", service->accept_delayed},
		       (struct check_value){"accept_delay_ns", service->accept_delay_ns});
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
		check_same(checking, place, (struct check_value){"its responses.statuses", sums[i]},
			   (struct check_value){name, responses->status[i]});
		sum += responses->status[i];
	}
	check_same(checking, place, (struct check_value){"the sum of responses.status", sum},
		   (struct check_value){"responses.count", responses->count});
	nearly_at_most(checking, apart, place,
		       (struct check_value){"responses.count", responses->count},
		       (struct check_value){"exchanges", service->exchanges});
	nearly_at_most(
		checking, apart, place,
		(struct check_value){"responses.service_4xx.count", responses->service_4xx.count},
		(struct check_value){"responses.status.4xx", responses->status[4]});
	nearly_at_most(
		checking, apart, place,
		(struct check_value){"responses.service_5xx.count", responses->service_5xx.count},
		(struct check_value){"responses.status.5xx", responses->status[5]});
}

/* Each stream that was reset has an error code. */
static void resets(struct checking *checking, const struct run_service *service, const char *place)
{
	const struct run_http2 *http2 = &service->http2;
	uint64_t client = 0, server = 0;

	for (unsigned int i = 0; i < RUN_RESET_COUNT; i++) {
		client += http2->client_resets[i];
		server += http2->server_resets[i];
	}
	/* Documents before these counts have no codes. */
	if (client)
		nearly_same(checking, check_moving(service).exchanges, place,
			    (struct check_value){"the sum of http2.client_resets", client},
			    (struct check_value){"http2.reset_by_client",
						 http2->reset_by_client.value});
	if (server)
		nearly_same(checking, check_moving(service).exchanges, place,
			    (struct check_value){"the sum of http2.server_resets", server},
			    (struct check_value){"http2.reset_by_server",
						 http2->reset_by_server.value});
}

/* The same for gRPC, whose responses count when they end. */
static void statuses_of_grpc(struct checking *checking, const struct run_service *service,
			     const char *place)
{
	const struct run_grpc *grpc = &service->grpc;
	uint64_t sum = 0, failed = 0, kinds = 0;

	for (unsigned int i = 0; i < RUN_GRPC_KIND_COUNT; i++)
		kinds += grpc->kinds[i];
	for (unsigned int i = 0; i < RUN_GRPC_COUNT; i++) {
		sum += grpc->status[i];
		if (i && i < RUN_GRPC_STATUS_COUNT)
			failed += grpc->status[i];
	}
	check_same(checking, place, (struct check_value){"the sum of grpc.status", sum},
		   (struct check_value){"grpc.count", grpc->count});
	nearly_same(checking, check_moving(service).exchanges, place,
		    (struct check_value){"the sum of grpc.kinds", kinds},
		    (struct check_value){"grpc.count", grpc->count});
	nearly_at_most(
		checking, check_moving(service).exchanges, place,
		(struct check_value){"grpc.service_failed.count", grpc->service_failed.count},
		(struct check_value){"the failed ones of grpc.status", failed});
}

/* Each response has a route, or a reason why it has none; likewise each exchange a command. */
static void routes(struct checking *checking, const struct run_service *service, const char *place)
{
	uint64_t apart = check_moving(service).exchanges, all = 0;
	const struct run_routes *told = &service->routes;
	const struct check_value responses =
		told->protocol ? (struct check_value){"exchanges", service->exchanges}
			       : (struct check_value){"responses.count", service->responses.count};

	for (size_t i = 0; i < told->count; i++) {
		const struct run_route *route = &told->list[i];
		uint64_t sum = 0;

		for (unsigned int k = 0; k < RUN_STATUS_CLASSES; k++)
			sum += route->status[k];
		if (told->protocol)
			nearly_at_most(
				checking, apart, place,
				(struct check_value){"a command's errors", route->errors.value},
				(struct check_value){"its count", route->count});
		else
			check_same(checking, place,
				   (struct check_value){"the sum of a route's status", sum},
				   (struct check_value){"its count", route->count});
		nearly_at_most(
			checking, apart, place,
			(struct check_value){"a route's service.count", route->service.count},
			(struct check_value){"its count", route->count});
		all += route->count;
	}
	for (unsigned int i = 0; i < RUN_ROUTELESS_COUNT; i++)
		all += told->not_known[i];
	if (!told->count)
		return;
	nearly_at_most(checking, apart, place, (struct check_value){"the sum of routes", all},
		       responses);
	nearly_at_most(checking, apart, place, responses,
		       (struct check_value){"the sum of routes", all});
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
	nearly_at_most(
		checking, apart, place, (struct check_value){"accepted", service->accepted},
		(struct check_value){"closes + connections + open.closing", ends(service) + open});
	waited = stage_count(service, STAGE_ACCEPT_QUEUE) + service->losses[RUN_LOSS_ACCEPT_UNSEEN];
	nearly_at_most(
		checking, apart, place,
		(struct check_value){"stages.accept_queue.count + losses.accept_unseen", waited},
		(struct check_value){"accepted + older connections", service->accepted + older});
	nearly_at_most(
		checking, apart, place,
		(struct check_value){"tls_handshake.count", service->tls_handshake.count},
		(struct check_value){"accepted + older connections", service->accepted + older});
}

void check_time_wait(struct checking *checking, const struct run_service *service,
		     const char *place)
{
	uint64_t apart = check_moving(service).connections;
	nearly_at_most(checking, apart, place,
		       (struct check_value){"time_wait_created + losses.time_wait_unsure",
					    service->time_wait_created +
						    service->losses[RUN_LOSS_TIME_WAIT_UNSURE]},
		       (struct check_value){"the sum of closes", ends(service)});
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
	nearly_same(
		checking, apart, place,
		(struct check_value){"stages.transmit_queue.count + losses.transmit_unseen", sent},
		(struct check_value){"stages.ack.count + losses.ack_unseen", acked});
	if (older_connections(service, &older))
		nearly_at_most(
			checking, apart, place,
			(struct check_value){"stages.transmit_queue.count + losses.transmit_unseen",
					     sent},
			(struct check_value){"transmit_followed + older connections",
					     service->transmit_followed + older});
}

/* ---- state at the end ---- */

void check_open(struct checking *checking, const struct run_service *service, const char *place)
{
	const struct run_open *open = &service->open;
	uint64_t aged = 0;

	if (!open->read.known || !open->unread.known)
		return;
	for (unsigned int i = 0; i < RUN_AGE_COUNT; i++)
		aged += open->ages[i];
	check_at_most(checking, place, (struct check_value){"the sum of open.ages", aged},
		      (struct check_value){"open.read + open.unread",
					   open->read.value + open->unread.value});
	check_at_most(checking, place,
		      (struct check_value){"open.unaccepted", open->unaccepted.value},
		      (struct check_value){"open.unread", open->unread.value});
	check_at_most(checking, place,
		      (struct check_value){"open.oldest_unread_ns", open->oldest_unread_ns.value},
		      (struct check_value){"open.oldest_ns", open->oldest_ns.value});
	check_at_most(checking, place,
		      (struct check_value){"open.waiting_ns", open->waiting_ns.value},
		      (struct check_value){"open.oldest_ns", open->oldest_ns.value});
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
		nearly_at_most(checking, apart, place, (struct check_value){name, count},
			       (struct check_value){"connections older than the period", older});
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
	check_at_most(checking, place,
		      (struct check_value){"samples.inconsistent", samples->inconsistent},
		      (struct check_value){"losses.inconsistent + losses.untimed",
					   service->losses[RUN_LOSS_INCONSISTENT] +
						   service->losses[RUN_LOSS_UNTIMED]});
	check_same(checking, place,
		   (struct check_value){"samples whose hash is not below the threshold", outside},
		   (struct check_value){"the number that there should be", 0});
	check_same(checking, place,
		   (struct check_value){"samples that run longer than they are served", divided},
		   (struct check_value){"the number that there should be", 0});
	nearly_at_most(checking, apart, place,
		       (struct check_value){"the number of samples", samples->count},
		       (struct check_value){"exchanges", service->exchanges});
}
