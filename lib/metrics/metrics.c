// SPDX-License-Identifier: MIT
/* The metrics, a row each; see sojourn/metrics.h. Formats: text.c, otlp.c. */
#include "sojourn/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

/* ---- values exported before ---- */

struct exported {
	uint64_t turn;
	uint32_t netns;
	uint16_t port;
	char protocol[8];
	struct exported_stage {
		uint64_t count;
		uint64_t edges[METRICS_EDGES_MAX];
	} stages[STAGE_COUNT];
	struct exported_stage *routes; /* RUN_ROUTE_STAGES of each; NULL: there was none yet */
};

struct metrics {
	enum metrics_buckets buckets;
	struct exported *services;
	size_t count;
};

struct metrics *metrics_new(enum metrics_buckets buckets)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics)
		metrics->buckets = buckets;
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->count; i++)
		free(metrics->services[i].routes);
	free(metrics->services);
	free(metrics);
}

/* Restart at 0: the service had lost its slot, or its network namespace's number was reused. */
static struct exported *begin_again(struct exported *one, uint64_t turn)
{
	memset(one->stages, 0, sizeof(one->stages));
	free(one->routes);
	one->routes = NULL;
	one->turn = turn;
	return one;
}

static struct exported *find_exported(struct metrics *metrics, const struct run_service *service)
{
	struct exported *added;

	for (size_t i = 0; i < metrics->count; i++) {
		struct exported *one = &metrics->services[i];

		if (one->netns == service->netns && one->port == service->port &&
		    !strcmp(one->protocol, service->protocol))
			return one->turn == service->turn ? one : begin_again(one, service->turn);
	}
	added = ARRAY_APPEND(metrics->services, metrics->count);
	if (!added)
		return NULL;
	added->turn = service->turn;
	added->netns = service->netns;
	added->port = service->port;
	memcpy(added->protocol, service->protocol, sizeof(added->protocol));
	return added;
}

/* ---- one number per service ---- */

enum source {
	SOURCE_COUNT,	/* a uint64_t, always known */
	SOURCE_ANY,	/* likewise, known unless 0 */
	SOURCE_STREAM,	/* likewise, known if the streams of HTTP/2 are */
	SOURCE_NUMBER,	/* a struct run_number */
	SOURCE_FULLEST, /* likewise, of the process whose descriptors are nearest to their limit */
};

struct metric {
	struct metrics_family family;
	enum source source;
	size_t offset;
};

#define OF(source, member) SOURCE_##source, offsetof(struct run_service, member)
#define OF_FULLEST(member) SOURCE_FULLEST, offsetof(struct run_process, member)

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "process_count is read as a uint64_t");

/* clang-format off */
static const struct metric service_metrics[] = {
	{{"sojourn_exchanges", METRICS_COUNTER, METRICS_ONE, "Requests whose response has begun."}, OF(COUNT, exchanges)},
	{{"sojourn_connections_accepted", METRICS_COUNTER, METRICS_ONE, "Connections established on the listener."}, OF(COUNT, accepted)},
	{{"sojourn_received_bytes", METRICS_COUNTER, METRICS_BYTES, "Bytes that the server's reads returned."}, OF(COUNT, bytes_in)},
	{{"sojourn_sent_bytes", METRICS_COUNTER, METRICS_BYTES, "Bytes that the server's writes handed to the kernel."}, OF(COUNT, bytes_out)},
	{{"sojourn_tls_connections", METRICS_COUNTER, METRICS_ONE, "Connections that speak TLS."}, OF(COUNT, tls)},
	{{"sojourn_pipelined_connections", METRICS_COUNTER, METRICS_ONE, "Connections of HTTP/1 whose pipelined requests are exchanges of their own (--http)."}, OF(NUMBER, pipelined)},
	{{"sojourn_websocket_connections", METRICS_COUNTER, METRICS_ONE, "Connections of HTTP/1 that have become WebSocket's (--http)."}, OF(ANY, websocket.connections)},
	{{"sojourn_websocket_given_up", METRICS_COUNTER, METRICS_ONE, "Of these: those whose messages are not counted any more."}, OF(ANY, websocket.given_up)},
	{{"sojourn_websocket_older_connections", METRICS_COUNTER, METRICS_ONE, "Connections older than the observer that seem to be WebSocket's (--http)."}, OF(ANY, websocket.older)},
	{{"sojourn_websocket_picked_up_connections", METRICS_COUNTER, METRICS_ONE, "Of these: those whose frames have proved it, and whose messages are counted."}, OF(ANY, websocket.picked_up)},
	{{"sojourn_events", METRICS_COUNTER, METRICS_ONE, "Server-sent events in HTTP/1 (--http)."}, OF(ANY, events.count)},
	{{"sojourn_pipelines_given_up", METRICS_COUNTER, METRICS_ONE, "Connections of HTTP/1 where pipelined requests are not looked for (--http)."}, OF(NUMBER, pipelines_given_up)},
	{{"sojourn_http2_connections", METRICS_COUNTER, METRICS_ONE, "Connections whose HTTP/2 streams are exchanges."}, OF(NUMBER, http2.connections)},
	{{"sojourn_http2_streams", METRICS_COUNTER, METRICS_ONE, "Streams that clients opened on them."}, OF(NUMBER, http2.streams)},
	{{"sojourn_http2_streams_reset_by_client", METRICS_COUNTER, METRICS_ONE, "Open streams that the client reset."}, OF(NUMBER, http2.reset_by_client)},
	{{"sojourn_http2_streams_reset_by_server", METRICS_COUNTER, METRICS_ONE, "Open streams that the server reset."}, OF(NUMBER, http2.reset_by_server)},
	{{"sojourn_http2_streams_refused", METRICS_COUNTER, METRICS_ONE, "Streams for which the server said that it did nothing."}, OF(NUMBER, http2.refused)},
	{{"sojourn_http2_streams_lost", METRICS_COUNTER, METRICS_ONE, "Streams whose end is not known."}, OF(NUMBER, http2.lost)},
	{{"sojourn_http2_older_connections", METRICS_COUNTER, METRICS_ONE, "Connections with HTTP/2 from before streams were followed."}, OF(NUMBER, http2.older)},
	{{"sojourn_http2_picked_up_connections", METRICS_COUNTER, METRICS_ONE, "Of these: those whose streams are exchanges from some frame on."}, OF(NUMBER, http2.picked_up)},
	{{"sojourn_http2_earlier_streams", METRICS_COUNTER, METRICS_ONE, "Streams on them that began before and have ended since."}, OF(NUMBER, http2.earlier)},
	{{"sojourn_http2_two_way", METRICS_COUNTER, METRICS_ONE, "Responses, not of gRPC, under way while the server still read data of their request."}, OF(NUMBER, http2.two_way)},
	{{"sojourn_http2_perhaps_grpc", METRICS_COUNTER, METRICS_ONE, "Responses of which it is not known whether they are of gRPC."}, OF(NUMBER, http2.perhaps_grpc)},
	{{"sojourn_http2_stream_stalls", METRICS_COUNTER, METRICS_ONE, "Times that responses had to wait for their stream's window."}, OF(STREAM, http2.stream_stalls.count)},
	{{"sojourn_http2_stream_stall_seconds", METRICS_COUNTER, METRICS_SECONDS, "How long they did."}, OF(STREAM, http2.stream_stalls.sum)},
	{{"sojourn_http2_connection_stalls", METRICS_COUNTER, METRICS_ONE, "Times that responses had to wait for their connection's window."}, OF(STREAM, http2.connection_stalls.count)},
	{{"sojourn_http2_connection_stall_seconds", METRICS_COUNTER, METRICS_SECONDS, "How long they did."}, OF(STREAM, http2.connection_stalls.sum)},
	{{"sojourn_http2_pings", METRICS_COUNTER, METRICS_ONE, "PINGs of the server whose round trip was timed."}, OF(STREAM, http2.pings.count)},
	{{"sojourn_http2_ping_seconds", METRICS_COUNTER, METRICS_SECONDS, "Their round trips."}, OF(STREAM, http2.pings.sum)},
	{{"sojourn_connections", METRICS_GAUGE, METRICS_ONE, "Connections open now: established, or closed by the client alone."}, OF(NUMBER, connections)},
	{{"sojourn_time_wait_sockets", METRICS_GAUGE, METRICS_ONE, "Sockets of the port in TIME_WAIT now."}, OF(NUMBER, time_wait)},
	{{"sojourn_time_wait_created", METRICS_COUNTER, METRICS_ONE, "Sockets that the service's closes left in TIME_WAIT."}, OF(COUNT, time_wait_created)},
	{{"sojourn_ephemeral_ports_used", METRICS_GAUGE, METRICS_ONE, "Ephemeral ports in use towards the most used destination, in the service's network namespace now."}, OF(NUMBER, ports.used)},
	{{"sojourn_ephemeral_ports", METRICS_GAUGE, METRICS_ONE, "Ephemeral ports available for each destination and source address."}, OF(NUMBER, ports.capacity)},
	{{"sojourn_segments_retransmitted", METRICS_COUNTER, METRICS_ONE, "Segments sent again."}, OF(COUNT, retransmits)},
	{{"sojourn_smoothed_round_trip_seconds", METRICS_GAUGE, METRICS_SECONDS, "Mean of TCP's smoothed round-trip times of the connections open now."}, OF(NUMBER, srtt_ns)},
	{{"sojourn_minimum_round_trip_seconds", METRICS_GAUGE, METRICS_SECONDS, "Lowest round-trip time that TCP saw on any of them."}, OF(NUMBER, min_rtt_ns)},
	{{"sojourn_accept_queue_connections", METRICS_GAUGE, METRICS_ONE, "Connections waiting for accept() now."}, OF(NUMBER, accept_queue.depth)},
	{{"sojourn_accept_queue_connections_max", METRICS_GAUGE, METRICS_ONE, "Maximum of waiting connections since the observation began."}, OF(NUMBER, accept_queue.depth_max)},
	{{"sojourn_accept_queue_limit_connections", METRICS_GAUGE, METRICS_ONE, "listen()'s backlog, capped by somaxconn."}, OF(NUMBER, accept_queue.limit)},
	{{"sojourn_accept_queue_overflows", METRICS_COUNTER, METRICS_ONE, "Connections dropped because the accept queue was full."}, OF(NUMBER, accept_queue.overflows)},
	{{"sojourn_open_requests_read", METRICS_GAUGE, METRICS_ONE, "Requests that the server has read and not answered now."}, OF(NUMBER, open.read)},
	{{"sojourn_open_requests_unread", METRICS_GAUGE, METRICS_ONE, "Requests that wait unread in their sockets now."}, OF(NUMBER, open.unread)},
	{{"sojourn_open_request_oldest_seconds", METRICS_GAUGE, METRICS_SECONDS, "Age of the oldest open request, read or unread."}, OF(NUMBER, open.oldest_ns)},
	{{"sojourn_unread_bytes", METRICS_GAUGE, METRICS_BYTES, "Bytes that wait unread in the service's sockets now."}, OF(NUMBER, open.unread_bytes)},
	{{"sojourn_closing_bytes", METRICS_GAUGE, METRICS_BYTES, "Bytes still to be sent on connections that the server has closed."}, OF(NUMBER, open.closing_bytes)},
	{{"sojourn_open_descriptors", METRICS_GAUGE, METRICS_ONE, "Descriptors of the service's process that is nearest to its limit."}, OF_FULLEST(open_fds)},
	{{"sojourn_descriptor_limit", METRICS_GAUGE, METRICS_ONE, "Soft RLIMIT_NOFILE of that process."}, OF_FULLEST(fd_limit)},
	{{"sojourn_processes", METRICS_GAUGE, METRICS_ONE, "Processes that hold the service's sockets."}, OF(COUNT, process_count)},
};
/* clang-format on */

static struct run_number value_of(const struct run_service *service, const struct metric *metric)
{
	const bool fullest = metric->source == SOURCE_FULLEST;
	const void *owner = fullest ? (const void *)run_fullest(service) : service;
	const void *member = owner ? (const char *)owner + metric->offset : NULL;
	struct run_number number = {.known = true};

	if (!member)
		return (struct run_number){0};
	if (fullest || metric->source == SOURCE_NUMBER)
		return *(const struct run_number *)member;
	number.value = *(const uint64_t *)member;
	if (metric->source == SOURCE_ANY)
		number.known = number.value;
	if (metric->source == SOURCE_STREAM)
		number.known = service->http2.streams.known;
	return number;
}

static void tell_metric(const struct metrics_output *out, const struct run *run,
			const struct metric *metric)
{
	out->family(out->context, &metric->family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		struct run_number value = value_of(&run->services[i], metric);
		struct metrics_numbers numbers;
		struct metrics_labels labels = metrics_labels_of(&run->services[i], &numbers);

		if (value.known)
			out->number(out->context, &labels, value.value);
	}
}

/* ---- one number per kind ---- */

enum which {
	WHICH_ALL,	/* also zeros */
	WHICH_LOST,	/* likewise, of losses */
	WHICH_COVERAGE, /* likewise, the others of them */
	WHICH_OCCURRED, /* all but zeros */
};

struct kinds {
	struct metrics_family family;
	const char *label;
	const char *const *names;
	size_t count;
	size_t offset; /* of as many uint64_t in struct run_service */
	enum which which;
};

static const char *const directions[] = {"in", "out"};

#define DIRECTIONS(member) \
	"direction", directions, 2, offsetof(struct run_service, member), WHICH_OCCURRED
#define KINDS(label, names, count, member, which) \
	label, names, count, offsetof(struct run_service, member), WHICH_##which

/* clang-format off */
static const struct kinds kinds_metrics[] = {
	{{"sojourn_connections_closed", METRICS_COUNTER, METRICS_ONE, "Connections that ended."}, KINDS("how", run_close_names, RUN_CLOSE_COUNT, closes, ALL)},
	{{"sojourn_lost", METRICS_COUNTER, METRICS_ONE, "Events that were missed."}, KINDS("what", run_loss_names, RUN_LOSS_COUNT, losses, LOST)},
	{{"sojourn_coverage", METRICS_COUNTER, METRICS_ONE, "Events that are no exchange or not timed; see docs/run-document.md."}, KINDS("what", run_loss_names, RUN_LOSS_COUNT, losses, COVERAGE)},
};

/* Of HTTP and what it carries. */
static const struct kinds http_metrics[] = {
	{{"sojourn_http2_client_resets", METRICS_COUNTER, METRICS_ONE, "Open streams that the client reset, by error code."}, KINDS("error", run_reset_names, RUN_RESET_COUNT, http2.client_resets, OCCURRED)},
	{{"sojourn_http2_server_resets", METRICS_COUNTER, METRICS_ONE, "Open streams that the server reset, by error code."}, KINDS("error", run_reset_names, RUN_RESET_COUNT, http2.server_resets, OCCURRED)},
	{{"sojourn_grpc_responses", METRICS_COUNTER, METRICS_ONE, "Responses of gRPC by status (--http); missing: they ended without one."}, KINDS("status", run_grpc_status_names, RUN_GRPC_COUNT, grpc.status, OCCURRED)},
	{{"sojourn_grpc_calls", METRICS_COUNTER, METRICS_ONE, "Calls of gRPC by kind (--http); undecided: over before they showed it."}, KINDS("kind", run_grpc_kind_names, RUN_GRPC_KIND_COUNT, grpc.kinds, OCCURRED)},
	{{"sojourn_grpc_messages", METRICS_COUNTER, METRICS_ONE, "Messages of gRPC that the server read (in) and wrote (out)."}, DIRECTIONS(grpc.messages_in)},
	{{"sojourn_websocket_messages", METRICS_COUNTER, METRICS_ONE, "Messages of WebSocket that the server read (in) and wrote (out) (--http)."}, DIRECTIONS(websocket.messages_in)},
	{{"sojourn_websocket_bytes", METRICS_COUNTER, METRICS_BYTES, "Their payload."}, DIRECTIONS(websocket.bytes_in)},
	{{"sojourn_websocket_control_frames", METRICS_COUNTER, METRICS_ONE, "Control frames of WebSocket: ping, pong, close."}, DIRECTIONS(websocket.control_in)},
};

static const struct kinds routeless_metric = {
	{"sojourn_routes_unknown", METRICS_COUNTER, METRICS_ONE, "Responses to requests whose route is not known (--route), by reason."}, KINDS("reason", run_routeless_names, RUN_ROUTELESS_COUNT, routes.not_known, OCCURRED)
};
/* clang-format on */

static bool is_wanted(enum which which, size_t kind, uint64_t count)
{
	switch (which) {
	case WHICH_LOST:
		return run_loss_is_lost[kind];
	case WHICH_COVERAGE:
		return !run_loss_is_lost[kind];
	case WHICH_OCCURRED:
		return count;
	default:
		return true;
	}
}

static void tell_kinds(const struct metrics_output *out, const struct run *run,
		       const struct kinds *kinds)
{
	out->family(out->context, &kinds->family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const char *service = (const char *)&run->services[i];
		const uint64_t *counts = (const void *)(service + kinds->offset);

		for (size_t k = 0; k < kinds->count; k++) {
			struct metrics_numbers numbers;
			struct metrics_labels labels =
				metrics_labels_of(&run->services[i], &numbers);

			metrics_add_label(&labels, kinds->label, kinds->names[k]);
			if (is_wanted(kinds->which, k, counts[k]))
				out->number(out->context, &labels, counts[k]);
		}
	}
}

/* ---- statuses ---- */

/* Print the count of responses with one label more, of @route (NULL: of any). Zeros are left out. */
static void tell_count(const struct metrics_output *out, const struct run_service *service,
		       const char *route, const char *label, const char *value, uint64_t count)
{
	struct metrics_numbers numbers;
	struct metrics_labels labels = metrics_labels_of(service, &numbers);

	if (route)
		metrics_add_label(&labels, "route", route);
	metrics_add_label(&labels, label, value);
	if (count)
		out->number(out->context, &labels, count);
}

/* Print the statuses that occurred: at most 500 per service. */
static void tell_statuses(const struct metrics_output *out, const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_responses", METRICS_COUNTER, METRICS_ONE,
		"Responses of HTTP by status (--http); unknown: in TLS, by sendfile, by io_uring."};

	out->family(out->context, &family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const struct run_responses *responses = &run->services[i].responses;
		char status[16];

		tell_count(out, &run->services[i], NULL, "status", "unknown", responses->status[0]);
		for (unsigned int k = 0; k < RUN_STATUS_COUNT; k++) {
			snprintf(status, sizeof(status), "%u", RUN_STATUS_LEAST + k);
			tell_count(out, &run->services[i], NULL, "status", status,
				   responses->statuses[k]);
		}
	}
}

/* ---- stages ---- */

/*
 * A growing edge raises all later ones, so that neither cumulative counts nor single buckets ever
 * fall. The total growth is at most that of the count.
 */
static void fill_edges(enum metrics_buckets buckets, const struct histogram *h,
		       struct exported_stage *exported)
{
	uint64_t room = h->count > exported->count ? h->count - exported->count : 0;
	uint64_t below[METRICS_EDGES_MAX], grown = 0;

	metrics_count_edges(buckets, h, below);
	for (unsigned int edge = 0; edge < metrics_edge_count(buckets); edge++) {
		uint64_t have = exported->edges[edge] + grown;
		uint64_t more = below[edge] > have ? below[edge] - have : 0;

		grown += more < room - grown ? more : room - grown;
		exported->edges[edge] += grown;
	}
	exported->count += room;
}

/* @route: NULL: of all requests. */
static void tell_stage(const struct metrics_output *out, enum metrics_buckets buckets,
		       const struct run_service *service, struct run_route *route, enum stage stage,
		       struct exported_stage *exported)
{
	/* `accept_queue` is of connections. A sample only has the part of that wait which delayed its request. */
	bool of_requests = !route && stage != STAGE_ACCEPT_QUEUE;
	const struct metrics_edges edges = {buckets, metrics_edge_count(buckets), exported->edges,
					    stage, of_requests ? service->newest : NULL};
	const struct histogram *h = &service->stages[stage].histogram;
	struct metrics_numbers numbers;
	struct metrics_labels labels = metrics_labels_of(service, &numbers);

	if (route) {
		h = run_route_stage(route, stage);
		metrics_add_label(&labels, "route", route->route);
	}
	metrics_add_label(&labels, "stage", run_stage_names[stage]);
	fill_edges(buckets, h, exported);
	out->histogram(out->context, &labels, &edges, h);
}

/* A reading has not passed run_doubt(), so exclude doubtful `service` stages here. */
static bool is_known(const struct run_service *service, enum stage stage)
{
	return service->stages[stage].measured &&
	       !(stage == STAGE_SERVICE && run_service_is_doubtful(service));
}

/* Services whose stages are passed on at a time: they are most of all metrics. */
#define STAGES_AT_ONCE 8

/* Go on at *@service. False: these were the last. */
static bool tell_stages(const struct metrics_output *out, struct metrics *metrics,
			const struct run *run, size_t *service)
{
	static const struct metrics_family family = {
		"sojourn_stage_seconds", METRICS_HISTOGRAM, METRICS_SECONDS,
		"Time of requests in each stage; accept_queue is of connections."};

	if (!*service)
		out->family(out->context, &family);
	for (size_t i = 0; i < STAGES_AT_ONCE; i++, ++*service) {
		const struct run_service *of;
		struct exported *exported;

		if (!metrics_next_service(run, service))
			return false;
		of = &run->services[*service];
		exported = find_exported(metrics, of);
		for (enum stage stage = 0; exported && stage < STAGE_COUNT; stage++)
			if (is_known(of, stage))
				tell_stage(out, metrics->buckets, of, NULL, stage,
					   &exported->stages[stage]);
	}
	return true;
}

/* Print the classes of statuses that occurred: at most 6 per route. */
static void tell_route_responses(const struct metrics_output *out, const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_route_responses", METRICS_COUNTER, METRICS_ONE,
		"Responses by route and class of status (--route); unknown: not seen."};
	static const char *const classes[] = {"unknown", "1xx", "2xx", "3xx", "4xx", "5xx"};

	out->family(out->context, &family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const struct run_routes *routes = &run->services[i].routes;

		for (size_t k = 0; k < routes->count * RUN_STATUS_CLASSES; k++) {
			const struct run_route *route = &routes->list[k / RUN_STATUS_CLASSES];

			tell_count(out, &run->services[i], route->route, "status",
				   classes[k % RUN_STATUS_CLASSES],
				   route->status[k % RUN_STATUS_CLASSES]);
		}
	}
}

/* Print the replies to commands: at most 2 per command. */
static void tell_commands(const struct metrics_output *out, const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_command_replies", METRICS_COUNTER, METRICS_ONE,
		"Replies by command (--protocol); result is ok or error."};

	out->family(out->context, &family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const struct run_routes *routes = &run->services[i].routes;

		for (size_t k = 0; routes->protocol && k < routes->count; k++) {
			const struct run_route *command = &routes->list[k];
			uint64_t errors = command->errors.value;

			tell_count(out, &run->services[i], command->route, "result", "ok",
				   command->count > errors ? command->count - errors : 0);
			tell_count(out, &run->services[i], command->route, "result", "error",
				   errors);
		}
	}
}

static void tell_routes(const struct metrics_output *out, struct metrics *metrics,
			const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_route_stage_seconds", METRICS_HISTOGRAM, METRICS_SECONDS,
		"Time of the requests of a route in each stage (--route)."};

	tell_route_responses(out, run);
	tell_commands(out, run);
	tell_kinds(out, run, &routeless_metric);
	out->family(out->context, &family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const struct run_service *service = &run->services[i];
		struct exported *exported = find_exported(metrics, service);

		if (exported && service->routes.count && !exported->routes)
			exported->routes = calloc(RUN_ROUTES_MOST * RUN_ROUTE_STAGES,
						  sizeof(*exported->routes));
		if (!exported || !exported->routes)
			continue;
		for (size_t k = 0; k < service->routes.count * RUN_ROUTE_STAGES; k++) {
			struct run_route *route = &service->routes.list[k / RUN_ROUTE_STAGES];
			enum stage stage = STAGE_SOCKET_QUEUE + k % RUN_ROUTE_STAGES;

			if (service->stages[stage].measured && route->count)
				tell_stage(out, metrics->buckets, service, route, stage,
					   &exported->routes[k]);
		}
	}
}

/* ---- names, findings, cost ---- */

static void tell_info(const struct metrics_output *out, const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_service_info", METRICS_GAUGE, METRICS_ONE,
		"1; where the service listens, the name of its first process, and where its "
		"processes run."};

	out->family(out->context, &family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const struct run_service *service = &run->services[i];
		struct metrics_numbers numbers;
		struct metrics_labels labels = metrics_labels_of(service, &numbers);
		char comm[sizeof(service->processes->comm)] = "";

		if (service->process_count)
			memcpy(comm, service->processes[0].comm, sizeof(comm));
		text_make_utf8(comm);
		metrics_add_label(&labels, "address", service->address);
		metrics_add_label(&labels, "process", comm);
		metrics_add_known(&labels, "cgroup", service->place.cgroup);
		metrics_add_known(&labels, "pod_uid", service->place.pod_uid);
		out->number(out->context, &labels, 1);
	}
}

/* Export nothing if the doctor did not look: 0 would be a claim. */
static void tell_findings(const struct metrics_output *out, const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_findings", METRICS_GAUGE, METRICS_ONE,
		"Resources that the doctor finds running out on this host."};
	static const char *const severities[] = {"notice", "warning", "critical"};

	if (!run->not_seen && !run->finding_count)
		return;
	out->family(out->context, &family);
	for (size_t i = 0; i < ARRAY_SIZE(severities); i++) {
		struct metrics_labels labels = {.count = 0};
		uint64_t count = 0;

		for (size_t k = 0; k < run->finding_count; k++)
			count += !strcmp(run->findings[k].severity, severities[i]);
		metrics_add_label(&labels, "severity", severities[i]);
		out->number(out->context, &labels, count);
	}
}

/* Count by rule, for alerts that name it: rules are few, objects may be many. */
static void tell_rules(const struct metrics_output *out, const struct run *run)
{
	static const struct metrics_family family = {
		"sojourn_finding_objects", METRICS_GAUGE, METRICS_ONE,
		"Resources that a rule of the doctor finds running out; see docs/diagnoses.md."};

	if (run->finding_count)
		out->family(out->context, &family);
	for (size_t i = 0; i < run->finding_count; i++) {
		const struct run_finding *finding = &run->findings[i];
		struct metrics_labels labels = {.count = 0};
		uint64_t count = 0;
		bool told = false;

		for (size_t k = 0; k < run->finding_count; k++) {
			if (strcmp(run->findings[k].id, finding->id) != 0 ||
			    strcmp(run->findings[k].severity, finding->severity) != 0)
				continue;
			told |= k < i;
			count++;
		}
		metrics_add_label(&labels, "id", finding->id);
		metrics_add_label(&labels, "severity", finding->severity);
		if (!told)
			out->number(out->context, &labels, count);
	}
}

static void tell_build(const struct metrics_output *out)
{
	static const struct metrics_family family = {"sojourn_build_info", METRICS_GAUGE,
						     METRICS_ONE, "1; the observer's version."};
	struct metrics_labels labels = {.count = 0};

	metrics_add_label(&labels, "version", SOJOURN_VERSION);
	out->family(out->context, &family);
	out->number(out->context, &labels, 1);
}

/* Families of which none takes long, before and after those of stages. */
static void tell_first(const struct metrics_output *out, const struct run *run)
{
	tell_info(out, run);
	tell_statuses(out, run);
	for (size_t i = 0; i < ARRAY_SIZE(http_metrics); i++)
		tell_kinds(out, run, &http_metrics[i]);
}

static void tell_last(const struct metrics_output *out, const struct run *run)
{
	tell_findings(out, run);
	tell_rules(out, run);
	tell_build(out);
	metrics_tell_plain(run, out);
}

bool metrics_tell_part(struct metrics *metrics, const struct run *run, struct metrics_place *place,
		       const struct metrics_output *out)
{
	const size_t kinds = 1 + ARRAY_SIZE(service_metrics);
	const size_t stages = kinds + ARRAY_SIZE(kinds_metrics);
	size_t part = place->part;

	if (part == stages && tell_stages(out, metrics, run, &place->service))
		return true;
	place->part++;
	if (part == 0)
		tell_first(out, run);
	else if (part < kinds)
		tell_metric(out, run, &service_metrics[part - 1]);
	else if (part < stages)
		tell_kinds(out, run, &kinds_metrics[part - kinds]);
	else if (part == stages + 1)
		tell_routes(out, metrics, run);
	else if (part == stages + 2)
		metrics_tell_calls(run, metrics->buckets, out);
	else if (part > stages + 2)
		tell_last(out, run);
	return part <= stages + 2;
}
