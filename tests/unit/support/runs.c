// SPDX-License-Identifier: MIT
/* Run documents for tests. */
#include "runs.h"

#include "rows.h"
#include "sequence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "series.h"
#include "unit.h"
#include "sojourn/array.h"

/* The known values of a driver's and of an observer's sample. */
#define DRIVERS                                                                                  \
	(RUN_SAMPLE_BYTES_IN | RUN_SAMPLE_BYTES_OUT | RUN_SAMPLE_START | RUN_SAMPLE_ROUND_TRIP | \
	 RUN_SAMPLE_RESPONSE | RUN_SAMPLE_STEP)
#define OBSERVERS                                                                     \
	((RUN_SAMPLE_STAGE(STAGE_COUNT) - 1) | RUN_SAMPLE_PID | RUN_SAMPLE_BYTES_IN | \
	 RUN_SAMPLE_BYTES_OUT | RUN_SAMPLE_ARRIVAL | RUN_SAMPLE_RUNNING | RUN_SAMPLE_RUNNABLE)

static struct run_number known(uint64_t value)
{
	return (struct run_number){.known = true, .value = value};
}

/* Add @count values spread evenly around @mean, by half of it to either side. */
static void spread(struct histogram *h, unsigned int count, uint64_t mean)
{
	for (unsigned int i = 0; i < count; i++)
		histogram_record(h, mean / 2 + mean * i / count);
}

static void fill_stages(struct run_stage *stages, size_t count, struct sequence *sequence)
{
	for (size_t i = 0; i < count; i++) {
		struct run_stage *stage = &stages[i];

		stage->measured = true;
		stage->source = text("inferred");
		stage->reason = text("none");
		set_histogram(&stage->histogram, sequence);
	}
}

static void fill_open(struct run_open *open, struct sequence *sequence)
{
	set_number(&open->read, sequence);
	set_number(&open->unread, sequence);
	set_number(&open->unaccepted, sequence);
	set_number(&open->oldest_ns, sequence);
	set_number(&open->waiting_ns, sequence);
	set_counters(open->ages, RUN_AGE_COUNT, sequence);
	set_number(&open->unread_bytes, sequence);
	set_number(&open->closing, sequence);
	set_number(&open->closing_bytes, sequence);
}

static void fill_listeners(struct run_service *service, struct sequence *sequence)
{
	for (int i = 0; i < 2; i++) {
		struct run_listener *listener =
			need(ARRAY_APPEND(service->listeners, service->listener_count));

		listener->inode = next(sequence);
		strcpy(listener->address, "0.0.0.0");
		strcpy(listener->comm, "worker");
		set_number(&listener->pid, sequence);
		set_number(&listener->holders, sequence);
		set_number(&listener->depth, sequence);
		set_number(&listener->depth_max, sequence);
		set_number(&listener->limit, sequence);
		set_number(&listener->overflows, sequence);
		set_number(&listener->drops, sequence);
	}
}

static struct run_nested_sum nested_sum(struct sequence *sequence)
{
	struct run_nested_sum sum = {.from_ns = next(sequence), .count = next(sequence)};

	sum.service_ns = next(sequence);
	sum.least_ns = next(sequence);
	sum.most_ns = next(sequence);
	return sum;
}

static void fill_nested(struct run_nested *nested, struct sequence *sequence)
{
	nested->reason = text("the two hosts have no common clock");
	nested->paired = next(sequence);
	nested->ambiguous = next(sequence);
	nested->alone = next(sequence);
	nested->outside = next(sequence);
	set_histogram(&nested->upstream, sequence);
	set_histogram(&nested->rest, sequence);
	nested->all = nested_sum(sequence);
	nested->slowest = nested_sum(sequence);
	nested->divided = need(calloc(1, sizeof(*nested->divided)));
	set_histogram(&nested->divided->own, sequence);
	set_histogram(&nested->divided->there, sequence);
	set_histogram(&nested->divided->between, sequence);
	for (uint64_t *sum = &nested->divided->slowest; sum <= &nested->divided->slowest_between_ns;
	     sum++)
		*sum = next(sequence);
}

static struct run_call_pairs *call_pairs(struct sequence *sequence)
{
	struct run_call_pairs *pairs = need(calloc(1, sizeof(*pairs)));

	pairs->reason = text("the upstream's observer took no samples");
	for (uint64_t *count = &pairs->threshold; count <= &pairs->early; count++)
		*count = next(sequence);
	set_histogram(&pairs->whole, sequence);
	set_histogram(&pairs->there, sequence);
	set_histogram(&pairs->between, sequence);
	return pairs;
}

static void fill_timed_calls(struct run_service *service, struct sequence *sequence)
{
	struct run_timed_call *call =
		need(ARRAY_APPEND(service->timed_calls, service->timed_call_count));

	strcpy(call->towards, "[2001:db8::5]:9001");
	set_number(&call->serves_too, sequence);
	for (uint64_t *count = &call->connects; count <= &call->uncut[RUN_UNCUT_COUNT - 1]; count++)
		*count = next(sequence);
	set_histogram(&call->wait, sequence);
	set_histogram(&call->whole, sequence);
	set_number(&service->calls_lost, sequence);
}

static void fill_upstreams(struct run_service *service, struct sequence *sequence)
{
	struct run_upstream *upstream =
		need(ARRAY_APPEND(service->upstreams, service->upstream_count));
	struct run_call *called;

	upstream->host = text("server-3");
	upstream->reason = text("several hosts have its address");
	upstream->netns = (uint32_t)next(sequence);
	upstream->port = (uint16_t)next(sequence);
	upstream->connections = next(sequence);
	upstream->others = next(sequence);
	set_number(&upstream->serves_too, sequence);
	upstream->nested = need(calloc(1, sizeof(*upstream->nested)));
	fill_nested(upstream->nested, sequence);
	upstream->pairs = call_pairs(sequence);
	called = need(ARRAY_APPEND(service->called, service->called_count));
	strcpy(called->towards, "[2001:db8::5]:9000");
	called->connections = next(sequence);
	set_number(&called->serves_too, sequence);
	set_number(&service->older_connections, sequence);
	service->calls = text("unix:/run/app.sock");
}

static void fill_processes(struct run_service *service, struct sequence *sequence)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct run_process *process =
			need(ARRAY_APPEND(service->processes, service->process_count));

		process->pid = (uint32_t)next(sequence);
		strcpy(process->comm, "fifteen-letters");
		strcpy(process->tls, RUN_TLS_PROBED);
		set_number(&process->open_fds, sequence);
		set_number(&process->fd_limit, sequence);
	}
}

/* Unknown values stay 0, so that samples can be compared as bytes. */
static void set_known(const struct run_sample *sample, uint32_t value, uint64_t *ret_value,
		      struct sequence *sequence)
{
	if (sample->known & value)
		*ret_value = next(sequence);
}

static void fill_sample(struct run_sample *sample, struct sequence *sequence)
{
	if (sample->known & RUN_SAMPLE_PID)
		sample->pid = (uint32_t)next(sequence);
	set_known(sample, RUN_SAMPLE_BYTES_IN, &sample->bytes_in, sequence);
	set_known(sample, RUN_SAMPLE_BYTES_OUT, &sample->bytes_out, sequence);
	set_known(sample, RUN_SAMPLE_ARRIVAL, &sample->arrival_ns, sequence);
	set_known(sample, RUN_SAMPLE_RUNNING, &sample->running_ns, sequence);
	set_known(sample, RUN_SAMPLE_RUNNABLE, &sample->runnable_ns, sequence);
	set_known(sample, RUN_SAMPLE_START, &sample->start_ns, sequence);
	set_known(sample, RUN_SAMPLE_ROUND_TRIP, &sample->round_trip_ns, sequence);
	set_known(sample, RUN_SAMPLE_RESPONSE, &sample->response_ns, sequence);
	if (sample->known & RUN_SAMPLE_STEP)
		sample->step = (uint32_t)next(sequence);
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		set_known(sample, RUN_SAMPLE_STAGE(i), &sample->stage_ns[i], sequence);
}

/* Exchanges on different connections, in their order. */
static struct run_samples *fill_samples(uint32_t known, struct sequence *sequence)
{
	struct run_samples *samples = need(run_samples_new());

	samples->threshold = next(sequence);
	samples->lost = next(sequence);
	samples->inconsistent = next(sequence);
	for (unsigned int i = 0; i < 2; i++) {
		struct run_sample *sample = need(run_add_sample(samples));

		sample->flow.client[2] = htonl(0xffff);
		sample->flow.client[3] = htonl(0x7f000001 + i);
		sample->flow.server[0] = htonl(0x20010db8);
		sample->flow.client_port = (uint16_t)next(sequence);
		sample->flow.server_port = (uint16_t)next(sequence);
		sample->index = (uint32_t)next(sequence);
		sample->known = known;
		fill_sample(sample, sequence);
	}
	return samples;
}

static void fill_pushes(struct run_service *service, struct sequence *sequence)
{
	uint64_t *const counts[] = {
		&service->websocket.connections, &service->websocket.given_up,
		&service->websocket.older,	 &service->websocket.picked_up,
		&service->websocket.messages_in, &service->websocket.messages_out,
		&service->websocket.bytes_in,	 &service->websocket.bytes_out,
		&service->websocket.control_in,	 &service->websocket.control_out,
		&service->events.responses,	 &service->events.given_up,
		&service->events.count,		 &service->events.bytes,
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		*counts[i] = next(sequence);
}

static void fill_routes(struct run_routes *routes, struct sequence *sequence)
{
	routes->count = 2;
	routes->list = need(calloc(routes->count, sizeof(*routes->list)));
	for (size_t i = 0; i < routes->count; i++) {
		struct run_route *route = &routes->list[i];

		route->route = text(i ? "other" : "GET /api/*");
		route->count = next(sequence);
		set_counters(route->status, RUN_STATUS_CLASSES, sequence);
		route->errors = (struct run_number){true, next(sequence)};
		for (enum stage stage = STAGE_SOCKET_QUEUE; stage <= STAGE_RESPOND; stage++)
			set_histogram(run_route_stage(route, stage), sequence);
	}
	set_counters(routes->not_known, RUN_ROUTELESS_COUNT, sequence);
	routes->protocol = text("redis");
}

static void fill_proposed(struct run_proposed *proposed, struct sequence *sequence)
{
	proposed->most = next(sequence);
	proposed->requests = next(sequence);
	proposed->not_known = next(sequence);
	proposed->paths = next(sequence);
	proposed->count = 1;
	proposed->list = need(calloc(1, sizeof(*proposed->list)));
	proposed->list[0].route = text("/api/*");
	proposed->list[0].paths = next(sequence);
}

static void fill_http2(struct run_http2 *http2, struct sequence *sequence)
{
	http2->reason = text("none");
	set_number(&http2->connections, sequence);
	set_number(&http2->given_up, sequence);
	set_number(&http2->streams, sequence);
	set_number(&http2->reset_by_client, sequence);
	set_number(&http2->reset_by_server, sequence);
	set_counters(http2->client_resets, RUN_RESET_COUNT, sequence);
	set_counters(http2->server_resets, RUN_RESET_COUNT, sequence);
	set_number(&http2->refused, sequence);
	set_number(&http2->lost, sequence);
	set_number(&http2->goaways, sequence);
	set_number(&http2->older, sequence);
	set_number(&http2->picked_up, sequence);
	set_number(&http2->earlier, sequence);
	set_number(&http2->perhaps_grpc, sequence);
	set_number(&http2->two_way, sequence);
	set_number(&http2->ended, sequence);
	set_number(&http2->ended_streams, sequence);
	set_number(&http2->streams_highest, sequence);
	set_number(&http2->open_highest, sequence);
	set_histogram(&http2->stream_stalls, sequence);
	set_histogram(&http2->connection_stalls, sequence);
	set_histogram(&http2->pings, sequence);
}

static void fill_service(struct run_service *service, struct sequence *sequence)
{
	service->host = text("server-2");
	strcpy(service->protocol, "tcp");
	strcpy(service->address, "2001:db8::1");
	service->port = (uint16_t)next(sequence);
	service->netns = (uint32_t)next(sequence);
	strcpy(service->place.cgroup, "/kubepods.slice/web.scope");
	strcpy(service->place.container_id, "3f2a");
	strcpy(service->place.container, "web");
	strcpy(service->place.pod_uid, "6d0c");
	strcpy(service->place.pod, "web-1");
	strcpy(service->place.pod_namespace, "shop");
	service->accepted = next(sequence);
	service->exchanges = next(sequence);
	service->bytes_in = next(sequence);
	service->bytes_out = next(sequence);
	set_counters(service->closes, RUN_CLOSE_COUNT, sequence);
	set_counters(service->losses, RUN_LOSS_COUNT, sequence);
	service->first_message_ns = next(sequence);
	service->last_message_ns = next(sequence);
	fill_stages(service->stages, STAGE_COUNT, sequence);
	fill_stages(service->cpu, RUN_CPU_COUNT, sequence);
	service->accept_delayed = next(sequence);
	service->accept_delay_ns = next(sequence);
	service->transmit_followed = next(sequence);
	service->tls = next(sequence);
	set_histogram(&service->tls_handshake, sequence);
	service->looked = next(sequence);
	service->looked_requests = next(sequence);
	service->nagle_held = next(sequence);
	set_number(&service->pipelined, sequence);
	set_number(&service->pipelines_given_up, sequence);
	fill_http2(&service->http2, sequence);
	service->responses.count = next(sequence);
	set_counters(service->responses.status, RUN_STATUS_CLASSES, sequence);
	service->responses.statuses[0] = next(sequence);
	service->responses.statuses[304] = next(sequence);
	service->responses.statuses[RUN_STATUS_COUNT - 1] = next(sequence);
	set_histogram(&service->responses.service_4xx, sequence);
	set_histogram(&service->responses.service_5xx, sequence);
	service->grpc.count = next(sequence);
	set_counters(service->grpc.status, RUN_GRPC_COUNT, sequence);
	set_counters(service->grpc.kinds, RUN_GRPC_KIND_COUNT, sequence);
	service->grpc.messages_in = next(sequence);
	service->grpc.messages_out = next(sequence);
	set_histogram(&service->grpc.service_failed, sequence);
	fill_pushes(service, sequence);
	fill_routes(&service->routes, sequence);
	fill_proposed(&service->proposed, sequence);
	set_number(&service->quiet_ns, sequence);
	set_number(&service->connections, sequence);
	set_number(&service->srtt_ns, sequence);
	set_number(&service->min_rtt_ns, sequence);
	service->retransmits = next(sequence);
	set_number(&service->time_wait, sequence);
	service->time_wait_created = next(sequence);
	set_number(&service->ports.used, sequence);
	set_number(&service->ports.capacity, sequence);
	strcpy(service->ports.towards, "[2001:db8::2]:8080");
	set_number(&service->accept_queue.listeners, sequence);
	set_number(&service->accept_queue.depth, sequence);
	set_number(&service->accept_queue.depth_max, sequence);
	set_number(&service->accept_queue.limit, sequence);
	set_number(&service->accept_queue.overflows, sequence);
	set_number(&service->accept_queue.drops, sequence);
	fill_open(&service->open, sequence);
	set_histogram(&service->abandoned, sequence);
	fill_listeners(service, sequence);
	fill_processes(service, sequence);
	fill_upstreams(service, sequence);
	fill_timed_calls(service, sequence);
	service->samples = fill_samples(OBSERVERS, sequence);
	service->call_samples = fill_samples(RUN_SAMPLE_START | RUN_SAMPLE_ROUND_TRIP, sequence);
	service->series = support_series(&sequence->last);
}

static void fill_cost(struct run_cost *cost, struct sequence *sequence)
{
	cost->cpu_ns = next(sequence);
	cost->resident_bytes = next(sequence);
	cost->map_bytes = next(sequence);
	set_number(&cost->sharing_cpus, sequence);
	cost->program_count = 2;
	cost->programs = need(calloc(cost->program_count, sizeof(*cost->programs)));
	for (size_t i = 0; i < cost->program_count; i++) {
		snprintf(cost->programs[i].name, sizeof(cost->programs[i].name), "%s",
			 i ? "exchange_send" : "exchange_ready");
		set_number(&cost->programs[i].runs, sequence);
		set_number(&cost->programs[i].run_ns, sequence);
		cost->programs[i].recursion_misses = next(sequence);
	}
	cost->machine.clock_source = need(strdup("tsc"));
	cost->machine.virtualisation = need(strdup("KVM"));
	if (run_add_text(&cost->machine.mitigations, "retpolines") ||
	    run_add_text(&cost->machine.mitigations, "Safe RET"))
		abort();
}

static void fill_intervals(struct run_driver *driver, struct sequence *sequence)
{
	driver->interval_ns = next(sequence);
	driver->interval_count = 2;
	driver->intervals = need(calloc(driver->interval_count, sizeof(*driver->intervals)));
	for (struct run_interval *part = driver->intervals; part < driver->intervals + 2; part++) {
		part->begin_ns = next(sequence);
		part->duration_ns = next(sequence);
		part->requests = next(sequence);
		part->errors = next(sequence);
		part->connects = next(sequence);
		part->bytes_in = next(sequence);
		part->bytes_out = next(sequence);
		set_number(&part->ports, sequence);
		set_histogram(&part->latency, sequence);
	}
	driver->drift.known = true;
	driver->drift.value = -0.25;
}

static void fill_driver_parts(struct run_driver *driver, struct sequence *sequence)
{
	driver->part_count = 2;
	driver->parts = need(calloc(driver->part_count, sizeof(*driver->parts)));
	for (struct run_part *part = driver->parts; part < driver->parts + 2; part++) {
		part->host = text("client");
		part->target = text("http://server/");
		part->connections = (uint32_t)next(sequence);
		part->begin_ns = next(sequence);
		part->duration_ns = next(sequence);
		part->requests = next(sequence);
		part->drained = next(sequence);
		part->errors = next(sequence);
		set_histogram(&part->latency, sequence);
	}
}

static void fill_members(struct run_driver *driver, struct sequence *sequence)
{
	driver->member_count = 2;
	driver->members = need(calloc(driver->member_count, sizeof(*driver->members)));
	for (struct run_fleet_member *member = driver->members; member < driver->members + 2;
	     member++) {
		member->host = text("client");
		member->connections = (uint32_t)next(sequence);
		member->rate = next(sequence);
		member->requests = next(sequence);
		if (run_add_text(&member->sources, "10.0.0.1-10.0.0.9"))
			abort();
		member->limited = text("its loop was late");
		member->clock_offset_ns = (struct run_signed){true, -(int64_t)next(sequence)};
		set_number(&member->clock_uncertainty_ns, sequence);
		set_number(&member->start_skew_ns, sequence);
		member->lost = true;
		member->reason = text("nothing was heard of it for 5 s");
	}
}

static void fill_driver(struct run_driver *driver, struct sequence *sequence)
{
	driver->host = text("client");
	driver->target = text("http://server:8080/\"quoted\"\n\u00b5");
	driver->method = text("POST");
	if (run_add_text(&driver->sources, "10.0.0.1") || run_add_text(&driver->sources, "fd00::1"))
		abort();
	driver->connections = (uint32_t)next(sequence);
	driver->threads = (uint32_t)next(sequence);
	driver->new_connections = true;
	driver->duration_ns = next(sequence);
	driver->warmup_ns = next(sequence);
	driver->requests = next(sequence);
	driver->drained = next(sequence);
	driver->connects = next(sequence);
	driver->bytes_in = next(sequence);
	driver->bytes_out = next(sequence);
	set_counters(driver->status, ARRAY_SIZE(driver->status), sequence);
	set_counters(driver->errors, RUN_ERROR_COUNT, sequence);
	set_counters(driver->datagrams, RUN_DATAGRAM_COUNT, sequence);
	driver->cpu_user_ns = next(sequence);
	driver->cpu_system_ns = next(sequence);
	set_number(&driver->ports.used, sequence);
	set_number(&driver->ports.capacity, sequence);
	strcpy(driver->ports.towards, "192.0.2.1:8080");
	driver->cpu_wait_ns = (struct run_number){true, next(sequence)};
	set_histogram(&driver->round_trip, sequence);
	set_histogram(&driver->connect, sequence);
	driver->cooldown_ns = next(sequence);
	driver->arrival = text("constant");
	driver->rate = next(sequence);
	driver->think_ns = next(sequence);
	driver->scheduled = next(sequence);
	driver->unsent = next(sequence);
	set_histogram(&driver->response_time, sequence);
	set_histogram(&driver->schedule_delay, sequence);
	driver->processes = (uint32_t)next(sequence);
	driver->begin_ns = next(sequence);
	set_histogram(&driver->tls, sequence);
	set_histogram(&driver->first_byte, sequence);
	set_counters(driver->grpc, RUN_GRPC_STATUS_COUNT, sequence);
	driver->messages_sent = next(sequence);
	driver->messages_received = next(sequence);
	driver->streams = (uint32_t)next(sequence);
	set_number(&driver->streams_allowed, sequence);
	fill_intervals(driver, sequence);
	fill_driver_parts(driver, sequence);
	fill_members(driver, sequence);
	driver->scenario = text("shop");
	fill_rows(&driver->rows[RUN_ROWS_STEP], "create", "read", sequence);
	fill_rows(&driver->rows[RUN_ROWS_TARGET], "http://a/", "http://b/", sequence);
	fill_rows(&driver->rows[RUN_ROWS_STATUS], "200", "404", sequence);
	driver->failure_count = 1;
	driver->failures = need(calloc(1, sizeof(*driver->failures)));
	strcpy(driver->failures[0].kind, "refused");
	driver->failures[0].count = next(sequence);
	driver->failures[0].first_ns = next(sequence);
	driver->failures[0].last_ns = next(sequence);
	driver->failures[0].explanation = text("nothing listens");
	driver->limited = need(calloc(1, sizeof(*driver->limited)));
	driver->limited->by = text("cpu");
	driver->limited->why = text("its CPU was full");
	driver->interrupted = need(calloc(1, sizeof(*driver->interrupted)));
	set_number(&driver->interrupted->duration_ns, sequence);
	set_number(&driver->interrupted->requests, sequence);
	driver->expected = text("200,302");
	driver->unsampled = text("not this kind");
	driver->observer_error = text("HTTP 503");
	driver->samples = fill_samples(DRIVERS, sequence);
}

static void fill_parts(struct run_parts *parts, struct sequence *sequence)
{
	parts->wait_ns = next(sequence);
	parts->round_trip_ns = next(sequence);
	parts->network_ns = next(sequence);
	parts->overhang_ns = next(sequence);
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		set_number(&parts->stages[i], sequence);
	set_number(&parts->running_ns, sequence);
	set_number(&parts->runnable_ns, sequence);
	set_number(&parts->blocked_ns, sequence);
}

static void fill_exchange(struct run_exchange *exchange, struct sequence *sequence)
{
	strcpy(exchange->client, "[2001:db8::2]:40000");
	strcpy(exchange->server, "[2001:db8::1]:8080");
	exchange->index = (uint32_t)next(sequence);
	set_number(&exchange->pid, sequence);
	set_number(&exchange->bytes_in, sequence);
	set_number(&exchange->bytes_out, sequence);
	exchange->start_ns = next(sequence);
	exchange->arrival_ns = next(sequence);
	fill_parts(&exchange->parts, sequence);
}

static void fill_joined(struct run_joined *joined, struct sequence *sequence)
{
	joined->reason = text("some were lost");
	joined->threshold = next(sequence);
	joined->joined = next(sequence);
	joined->early = next(sequence);
	joined->repeated = next(sequence);
	joined->driver_only = next(sequence);
	joined->unknown_flow = next(sequence);
	joined->observer_only = next(sequence);
	joined->unmeasured = next(sequence);
	joined->other_clients = next(sequence);
	joined->ambiguous = next(sequence);
	joined->implausible = next(sequence);
	joined->begin_ns = next(sequence);
	fill_parts(&joined->sum, sequence);
	set_histogram(&joined->round_trip, sequence);
	set_histogram(&joined->network, sequence);
	fill_stages(joined->stages, STAGE_COUNT, sequence);
	joined->tail_count = joined->slowest_count = joined->step_count = joined->host_count = 2;
	joined->steps = need(calloc(joined->step_count, sizeof(*joined->steps)));
	joined->hosts = need(calloc(joined->host_count, sizeof(*joined->hosts)));
	joined->tail = need(calloc(joined->tail_count, sizeof(*joined->tail)));
	joined->slowest = need(calloc(joined->slowest_count, sizeof(*joined->slowest)));
	for (size_t i = 0; i < 2; i++) {
		joined->tail[i].per_mille = (uint32_t)next(sequence);
		joined->tail[i].above_ns = next(sequence);
		joined->tail[i].count = next(sequence);
		fill_parts(&joined->tail[i].sum, sequence);
		fill_exchange(&joined->slowest[i], sequence);
		joined->steps[i].name = need(strdup(i ? "read" : "create"));
		joined->steps[i].place = need(strdup("-"));
		joined->steps[i].count = next(sequence);
		fill_parts(&joined->steps[i].sum, sequence);
		joined->hosts[i].name = need(strdup(i ? "b" : "a"));
		joined->hosts[i].place = need(strdup(i ? "pod shop/web-1" : "container web"));
		joined->hosts[i].count = next(sequence);
		fill_parts(&joined->hosts[i].sum, sequence);
	}
}

struct run *support_full_run(void)
{
	char *command[] = {(char *)"nginx", (char *)"-g", (char *)"daemon off;", NULL};
	struct run *run = need(run_new("sojourn", command));
	struct sequence sequence = {.last = 100};

	run->duration_ns = next(&sequence);
	fill_service(need(ARRAY_APPEND(run->services, run->service_count)), &sequence);
	fill_service(need(ARRAY_APPEND(run->services, run->service_count)), &sequence);
	run->services_dropped = next(&sequence);
	run->cost = need(calloc(1, sizeof(*run->cost)));
	fill_cost(run->cost, &sequence);
	run->driver = need(calloc(1, sizeof(*run->driver)));
	fill_driver(run->driver, &sequence);
	run->joined = need(calloc(1, sizeof(*run->joined)));
	fill_joined(run->joined, &sequence);
	run->connections_dropped = 91;
	run->listeners_idle = 92;
	run->reclaimed = (struct run_reclaimed){93, 94, 95, 96, 97};
	run->namespaces =
		(struct run_namespaces){2981, 2982, 2983, 2984, 2985, 2986, 2987, "not permitted"};
	run->services[1].turn = 98;
	support_fill_findings(run);
	return run;
}

/* Make a document whose labels do not depend on the machine. */
static struct run *labelled_run(const char *tool, uint64_t duration_ns)
{
	struct run *run = need(calloc(1, sizeof(*run)));

	run->host = text("server");
	run->kernel = text("6.18.0");
	run->tool = text(tool);
	run->started_at = text("2026-11-21T08:00:00.000Z");
	run->duration_ns = duration_ns;
	return run;
}

static void add_process(struct run_service *service, uint32_t pid, uint64_t open_fds)
{
	struct run_process *process =
		need(ARRAY_APPEND(service->processes, service->process_count));

	process->pid = pid;
	strcpy(process->comm, "nginx");
	process->open_fds = known(open_fds);
	process->fd_limit = known(20000);
}

struct run_service *support_add_service(struct run *run, uint16_t port, unsigned int exchanges)
{
	struct run_service *service = need(ARRAY_APPEND(run->services, run->service_count));

	strcpy(service->protocol, "tcp");
	strcpy(service->address, "127.0.0.1");
	service->port = port;
	service->netns = 4026531840;
	service->accepted = 64;
	service->exchanges = exchanges;
	service->bytes_in = exchanges * 100ULL;
	service->bytes_out = exchanges * 349ULL;
	service->closes[RUN_CLOSE_BY_CLIENT] = 64;
	service->first_message_ns = 1000000000;
	service->last_message_ns = 2999640000;
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		service->stages[i].measured = i < STAGE_RESIDENCE_END;
	support_miss_stage(service, STAGE_TRANSMIT_QUEUE, "not asked for: --transmit");
	support_miss_stage(service, STAGE_ACK, "not asked for: --transmit");
	spread(&service->stages[STAGE_ACCEPT_QUEUE].histogram, 64, 12000);
	spread(&service->stages[STAGE_SOCKET_QUEUE].histogram, exchanges, 124400);
	spread(&service->stages[STAGE_SERVICE].histogram, exchanges, 6100);
	for (unsigned int i = 0; i < exchanges; i++) {
		histogram_record(&service->stages[STAGE_RECEIVE].histogram, 0);
		histogram_record(&service->stages[STAGE_RESPOND].histogram, 0);
	}
	service->connections = known(0);
	service->time_wait = known(34);
	service->time_wait_created = 34;
	service->accept_queue.depth_max = known(3);
	service->accept_queue.limit = known(1024);
	service->accept_queue.overflows = known(0);
	add_process(service, 812, 23);
	return service;
}

void support_send_stages(struct run_service *service, unsigned int samples)
{
	for (unsigned int i = STAGE_RESIDENCE_END; i < STAGE_COUNT; i++) {
		free(service->stages[i].reason);
		service->stages[i] =
			(struct run_stage){.measured = true, .source = text("sockops")};
	}
	service->stages[STAGE_ACCEPT_QUEUE].source = text("inferred");
	spread(&service->stages[STAGE_TRANSMIT_QUEUE].histogram, samples, 80000);
	spread(&service->stages[STAGE_ACK].histogram, samples, 300000);
	service->transmit_followed = samples;
	service->srtt_ns = known(310000);
	service->min_rtt_ns = known(120000);
}

void support_miss_stage(struct run_service *service, unsigned int stage, const char *reason)
{
	free(service->stages[stage].reason);
	service->stages[stage] = (struct run_stage){.reason = text(reason)};
}

struct run *support_observer_run(void)
{
	struct run *run = labelled_run("sojourn 0.1.0", 2100000000);

	support_add_service(run, 8080, 1000);
	run->cost = need(calloc(1, sizeof(*run->cost)));
	run->cost->cpu_ns = 12000000;
	run->cost->resident_bytes = 5 << 20;
	run->cost->map_bytes = 3 << 20;
	return run;
}

struct run *support_driver_run(void)
{
	struct run *run = labelled_run("sojourn-drive 0.1.0", 2000000000);
	struct run_driver *driver = need(calloc(1, sizeof(*driver)));

	run->driver = driver;
	driver->target = text("http://127.0.0.1:8080/");
	driver->method = text("GET");
	driver->connections = 64;
	driver->threads = 2;
	driver->duration_ns = 2000000000;
	driver->requests = 1000;
	driver->connects = 64;
	driver->bytes_in = 349000;
	driver->bytes_out = 100000;
	driver->status[2] = 1000;
	driver->cpu_user_ns = 2000000;
	driver->cpu_system_ns = 5000000;
	driver->cpu_wait_ns = (struct run_number){true, 250000};
	spread(&driver->round_trip, 1000, 406000);
	spread(&driver->connect, 64, 50000);
	return run;
}

void support_refuse(const char *text, size_t length, char **ret_error)
{
	struct run *run = NULL;
	int err = run_from_json(text, length, &run, ret_error);

	if (!err)
		fail_msg("accepted: %.200s", text);
	assert_null(run);
	assert_int_equal(err, -EINVAL);
	assert_non_null(*ret_error);
}

void support_refuse_member(const char *member, const char *value, const char *expected)
{
	autorun struct run *run = support_observer_run();
	autofree char *text = run_to_json(run), *absent = NULL, *damaged = NULL;
	autofree char *error = NULL, *said = NULL;
	char *at;

	assert_true(asprintf(&absent, "\"%s\":null", member) > 0);
	at = strstr(text, absent);
	assert_non_null(at);
	assert_true(asprintf(&damaged, "%.*s\"%s\":%s%s", (int)(at - text), text, member, value,
			     at + strlen(absent)) > 0);
	support_refuse(damaged, strlen(damaged), &error);
	assert_true(asprintf(&said, "services[0].%s%s", member, expected) > 0);
	assert_string_equal(error, said);
}
