// SPDX-License-Identifier: MIT
/*
 * Adds up the copies of a service's slot. The kernel goes on writing meanwhile. So the reading may be off by the
 * exchanges that are under way on the CPUs at this moment, never by more.
 */
#include "source.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/tables/commands.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

_Static_assert(STATUS_LEAST == RUN_STATUS_LEAST && STATUS_COUNT == RUN_STATUS_COUNT,
	       "the kernel's statuses are the document's");
_Static_assert(RESET_ERRORS == RUN_RESET_COUNT, "the same error codes");
_Static_assert(GRPC_COUNT == RUN_GRPC_COUNT && GRPC_OTHER == RUN_GRPC_STATUS_COUNT - 1 &&
		       GRPC_MISSING == RUN_GRPC_MISSING && GRPC_NOT_KNOWN == RUN_GRPC_NOT_KNOWN,
	       "the kernel's statuses of gRPC are the document's");
_Static_assert(SPLIT_RUNNING == (int)RUN_CPU_RUNNING && SPLIT_COUNT == (int)RUN_CPU_COUNT &&
		       SPLIT_BLOCKED == (int)RUN_CPU_BLOCKED,
	       "the kernel's parts are the document's");

static const enum counter loss_counters[RUN_LOSS_COUNT] = {
	[RUN_LOSS_OVERLAPPED] = COUNTER_OVERLAPPED,
	[RUN_LOSS_UNSOLICITED] = COUNTER_UNSOLICITED,
	[RUN_LOSS_UNANSWERED] = COUNTER_UNANSWERED,
	[RUN_LOSS_PREEXISTING] = COUNTER_PREEXISTING,
	[RUN_LOSS_CUT_OFF] = COUNTER_CUT_OFF,
	[RUN_LOSS_UNTIMED] = COUNTER_UNTIMED,
	[RUN_LOSS_ACCEPT_UNSEEN] = COUNTER_ACCEPT_UNSEEN,
	[RUN_LOSS_MULTIPLEXED] = COUNTER_MULTIPLEXED,
	[RUN_LOSS_DROPPED] = COUNTER_DROPPED,
	[RUN_LOSS_UNMATCHED] = COUNTER_UNMATCHED,
	[RUN_LOSS_TRANSMIT_UNSEEN] = COUNTER_TRANSMIT_UNSEEN,
	[RUN_LOSS_ACK_UNSEEN] = COUNTER_ACK_UNSEEN,
	[RUN_LOSS_STORAGE_FAILED] = COUNTER_STORAGE_FAILED,
	[RUN_LOSS_TLS_UNKNOWN] = COUNTER_TLS_UNKNOWN,
	[RUN_LOSS_UNRECOGNISED] = COUNTER_UNRECOGNISED,
	[RUN_LOSS_PERHAPS_WEBSOCKET] = COUNTER_PERHAPS_WEBSOCKET,
	[RUN_LOSS_ONEWAY] = COUNTER_ONEWAY,
	[RUN_LOSS_GOODBYES] = COUNTER_GOODBYES,
	[RUN_LOSS_TRAILING] = COUNTER_TRAILING,
	[RUN_LOSS_INCONSISTENT] = COUNTER_INCONSISTENT,
	[RUN_LOSS_UNSEEN_READS] = COUNTER_UNSEEN_READS,
	[RUN_LOSS_BLOCKED] = COUNTER_BLOCKED,
	[RUN_LOSS_MPTCP] = COUNTER_MPTCP,
	[RUN_LOSS_CARRIED] = COUNTER_CARRIED,
	[RUN_LOSS_TIME_WAIT_UNSURE] = COUNTER_TIME_WAIT_UNSURE,
	[RUN_LOSS_AMBIGUOUS_REPLIES] = COUNTER_AMBIGUOUS_REPLIES,
	[RUN_LOSS_UNTRACKED] = COUNTER_UNTRACKED,
};

static const enum counter close_counters[RUN_CLOSE_COUNT] = {
	[RUN_CLOSE_BY_SERVER] = COUNTER_CLOSED_BY_SERVER,
	[RUN_CLOSE_BY_CLIENT] = COUNTER_CLOSED_BY_CLIENT,
	[RUN_RESET_BY_SERVER] = COUNTER_RESET_BY_SERVER,
	[RUN_RESET_BY_CLIENT] = COUNTER_RESET_BY_CLIENT,
	[RUN_TIMED_OUT] = COUNTER_TIMED_OUT,
};

static uint64_t counter_sum(const struct loader *loader, uint32_t index, enum counter counter)
{
	uint64_t sum = 0;

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++)
		sum += loader_slot(loader, copy, index)->counters[counter];
	return sum;
}

uint64_t source_slots_lost(const struct loader *loader, uint32_t index)
{
	return counter_sum(loader, index, COUNTER_SAMPLES_LOST);
}

uint64_t source_slots_unanswered(const struct loader *loader, const struct service_key *keys,
				 size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		if (keys[i].port && keys[i].protocol == IPPROTO_TCP)
			sum += counter_sum(loader, (uint32_t)i, COUNTER_UNANSWERED);
	return sum;
}

void source_slots_accepted(const struct loader *loader, const struct service_key *keys,
			   size_t count, uint64_t *ret_accepted)
{
	for (size_t i = 0; i < count; i++)
		ret_accepted[i] =
			keys[i].port ? counter_sum(loader, (uint32_t)i, COUNTER_ACCEPTED) : 0;
}

struct counted {
	struct run_number *number;
	enum counter counter;
};

static void read_known(const struct loader *loader, uint32_t index, const struct counted *counts,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		*counts[i].number = (struct run_number){
			.known = true, .value = counter_sum(loader, index, counts[i].counter)};
}

static void read_http2(const struct loader *loader, uint32_t index, struct run_http2 *http2)
{
	const struct counted counts[] = {
		{&http2->connections, COUNTER_HTTP2},
		{&http2->given_up, COUNTER_HTTP2_GIVEN_UP},
		{&http2->streams, COUNTER_STREAMS},
		{&http2->reset_by_client, COUNTER_STREAMS_BY_CLIENT},
		{&http2->reset_by_server, COUNTER_STREAMS_BY_SERVER},
		{&http2->refused, COUNTER_STREAMS_REFUSED},
		{&http2->lost, COUNTER_STREAMS_LOST},
		{&http2->goaways, COUNTER_GOAWAYS},
		{&http2->older, COUNTER_HTTP2_OLDER},
		{&http2->picked_up, COUNTER_HTTP2_PICKED_UP},
		{&http2->earlier, COUNTER_STREAMS_EARLIER},
		{&http2->ended, COUNTER_HTTP2_ENDED},
		{&http2->ended_streams, COUNTER_HTTP2_ENDED_STREAMS},
	};

	if (loader_config(loader)->streams)
		read_known(loader, index, counts, ARRAY_SIZE(counts));
}

static void read_calls(const struct loader *loader, uint32_t index, struct run_service *service)
{
	const struct counted lost = {&service->calls_lost, COUNTER_CALLS_LOST};

	if (loader_config(loader)->calls)
		read_known(loader, index, &lost, 1);
}

/* Counts of what only --http looks at. */
static void read_http(const struct loader *loader, uint32_t index, struct run_service *service)
{
	const struct counted counts[] = {
		{&service->http2.perhaps_grpc, COUNTER_GRPC_UNSURE},
		{&service->http2.two_way, COUNTER_STREAMS_TWO_WAY},
		{&service->pipelined, COUNTER_PIPELINED},
		{&service->pipelines_given_up, COUNTER_PIPELINES_GIVEN_UP},
	};

	if (loader_config(loader)->http)
		read_known(loader, index, counts, ARRAY_SIZE(counts));
}

/* The kernel side counts cut responses apart (wire/counters.h). They were answered, and nothing else is known of them. */
static uint64_t exchanges_sum(const struct loader *loader, uint32_t index)
{
	return counter_sum(loader, index, COUNTER_EXCHANGES) +
	       counter_sum(loader, index, COUNTER_CUT_RESPONSES);
}

static uint64_t bytes_out_sum(const struct loader *loader, uint32_t index)
{
	return counter_sum(loader, index, COUNTER_BYTES_OUT) +
	       counter_sum(loader, index, COUNTER_CUT_BYTES);
}

static void read_counters(const struct loader *loader, uint32_t index, struct run_service *service)
{
	service->accepted = counter_sum(loader, index, COUNTER_ACCEPTED);
	service->exchanges = exchanges_sum(loader, index);
	service->bytes_in = counter_sum(loader, index, COUNTER_BYTES_IN);
	service->bytes_out = bytes_out_sum(loader, index);
	service->time_wait_created = counter_sum(loader, index, COUNTER_TIME_WAIT_CREATED);
	service->retransmits = counter_sum(loader, index, COUNTER_RETRANSMITS);
	service->accept_delayed = counter_sum(loader, index, COUNTER_ACCEPT_DELAYED);
	service->accept_delay_ns = counter_sum(loader, index, COUNTER_ACCEPT_DELAY_NS);
	service->transmit_followed = counter_sum(loader, index, COUNTER_TRANSMIT_FOLLOWED);
	service->tls = counter_sum(loader, index, COUNTER_TLS);
	service->looked = counter_sum(loader, index, COUNTER_LOOKED);
	service->looked_requests = counter_sum(loader, index, COUNTER_LOOKED_REQUESTS);
	service->nagle_held = counter_sum(loader, index, COUNTER_NAGLE_HELD);
	read_http2(loader, index, &service->http2);
	read_http(loader, index, service);
	read_calls(loader, index, service);
	for (enum run_loss loss = 0; loss < RUN_LOSS_COUNT; loss++)
		service->losses[loss] = counter_sum(loader, index, loss_counters[loss]);
	for (enum run_close close = 0; close < RUN_CLOSE_COUNT; close++)
		service->closes[close] = counter_sum(loader, index, close_counters[close]);
	service->losses[RUN_LOSS_UNTIMED] += counter_sum(loader, index, COUNTER_CUT_RESPONSES);
}

/* Every value but 0 is in the sum, which a move may lower again, and in the maximum. */
static bool is_empty(const struct stage_histogram *part)
{
	return !part->sum_ns && !part->max_ns && !part->buckets[0];
}

static void add_part(struct histogram *h, const struct stage_histogram *part)
{
	if (is_empty(part))
		return;
	h->sum += part->sum_ns;
	if (part->max_ns > h->max)
		h->max = part->max_ns;
	for (uint32_t i = 0; i < BUCKET_COUNT; i++)
		h->buckets[i] += part->buckets[i];
}

/*
 * Make @ret_histogram, a zeroed one or an earlier reading, from the sum of its parts. It is written only where there are
 * counts: a page that is never written takes neither memory nor time.
 *
 * One copy's bucket may be "negative": RESPOND moves exchanges between buckets, and they change CPUs. Only the sum
 * over the copies counts. Read during a move, it can be -1, and then counts as 0.
 *
 * The kernel side writes the maximum after the bucket, and may miss one where several CPUs write it (bpf/copies.h).
 * Then derive it from the buckets.
 */
static void count_parts(const struct histogram *sum, struct histogram *ret_histogram)
{
	uint64_t earlier = ret_histogram->count;
	uint32_t highest = 0;

	if (!sum->sum && !sum->max && !sum->buckets[0])
		return;
	ret_histogram->sum = sum->sum;
	ret_histogram->max = sum->max;
	ret_histogram->count = 0;
	for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
		bool counted = (int64_t)sum->buckets[i] > 0;

		if (!counted && !earlier)
			continue;
		ret_histogram->buckets[i] = counted ? sum->buckets[i] : 0;
		ret_histogram->count += ret_histogram->buckets[i];
		highest = counted ? i : highest;
	}
	if (ret_histogram->max < bucket_lower(highest))
		ret_histogram->max = bucket_upper(highest);
}

/* The kernel leaves out zeros (wire/counters.h): every timed exchange that is missing is one. */
static void fill_zeros(struct histogram *h, uint64_t timed)
{
	if (timed <= h->count)
		return;
	h->buckets[0] += timed - h->count;
	h->count = timed;
}

void source_histogram_read(const struct stage_histogram *all, struct histogram *ret_histogram)
{
	struct histogram sum = {};

	add_part(&sum, all);
	count_parts(&sum, ret_histogram);
}

static void read_span(const struct loader *loader, uint32_t index, enum span span,
		      struct histogram *ret_histogram)
{
	source_histogram_read(&loader_spans(loader, index)->spans[span], ret_histogram);
}

static void read_windows(const struct loader *loader, uint32_t index, struct run_http2 *http2)
{
	const struct service_windows *windows = loader_windows(loader, index);

	if (!windows)
		return;
	source_histogram_read(&windows->stalls[WINDOW_STREAM], &http2->stream_stalls);
	source_histogram_read(&windows->stalls[WINDOW_CONNECTION], &http2->connection_stalls);
	source_histogram_read(&windows->pings, &http2->pings);
	http2->streams_highest = (struct run_number){true, windows->streams_most};
	http2->open_highest = (struct run_number){true, windows->open_most};
	for (unsigned int i = 0; i < RESET_ERRORS; i++) {
		http2->client_resets[i] = windows->resets[RESET_BY_CLIENT][i];
		http2->server_resets[i] = windows->resets[RESET_BY_SERVER][i];
	}
}

static void read_split(const struct loader *loader, uint32_t index, struct run_stage *parts)
{
	for (enum split_part part = 0; part < SPLIT_COUNT; part++) {
		struct histogram sum = {}, *h = &parts[part].histogram;

		for (uint32_t copy = 0;
		     loader_split(loader, copy, index) && copy < loader_copies(loader); copy++)
			add_part(&sum, &loader_split(loader, copy, index)->parts[part]);
		count_parts(&sum, h);
		fill_zeros(h, parts[RUN_CPU_RUNNING].histogram.count);
	}
}

static void add_status(struct run_responses *responses, uint32_t place, uint64_t count)
{
	responses->statuses[place] += count;
	responses->status[(STATUS_LEAST + place) / 100] += count;
	responses->count += count;
}

/*
 * Add a copy's statuses, and the service times of failed requests to @sums. Read each number once,
 * so that the sums agree while the kernel side counts on.
 */
static void add_statuses(struct run_responses *responses, const struct service_statuses *all,
			 struct histogram sums[static STATUS_FAILED_COUNT])
{
	uint64_t unknown = __atomic_load_n(&all->unknown, __ATOMIC_RELAXED);

	responses->status[0] += unknown;
	responses->count += unknown;
	for (uint32_t i = 0; i < STATUS_COUNT; i++)
		add_status(responses, i, __atomic_load_n(&all->counts[i], __ATOMIC_RELAXED));
	for (uint32_t i = 0; i < STATUS_FAILED_COUNT; i++)
		add_part(&sums[i], &all->failed[i]);
}

_Static_assert(GRPC_KIND_COUNT == (int)RUN_GRPC_KIND_COUNT &&
		       GRPC_KIND_UNDECIDED == (int)RUN_GRPC_UNDECIDED &&
		       GRPC_KIND_NOT_KNOWN == (int)RUN_GRPC_KIND_NOT_KNOWN,
	       "the kernel's kinds of calls are the document's");

static void add_grpc(struct run_grpc *grpc, const struct service_statuses *all)
{
	for (uint32_t i = 0; i < GRPC_COUNT; i++) {
		uint64_t count = __atomic_load_n(&all->grpc[i], __ATOMIC_RELAXED);

		if (!count)
			continue;
		grpc->status[i] += count;
		grpc->count += count;
	}
	for (uint32_t i = 0; i < GRPC_KIND_COUNT; i++)
		grpc->kinds[i] += __atomic_load_n(&all->kinds[i], __ATOMIC_RELAXED);
	grpc->messages_in += __atomic_load_n(&all->messages[GRPC_IN], __ATOMIC_RELAXED);
	grpc->messages_out += __atomic_load_n(&all->messages[GRPC_OUT], __ATOMIC_RELAXED);
}

/* Add what a copy has counted of WebSocket and of server-sent events. */
static void add_pushes(struct run_service *service, const struct service_statuses *all)
{
	struct run_websocket *websocket = &service->websocket;
	struct run_events *events = &service->events;
	uint64_t *const sums[PUSHED_COUNT] = {
		[PUSHED_WEBSOCKETS] = &websocket->connections,
		[PUSHED_WEBSOCKETS_LOST] = &websocket->given_up,
		[PUSHED_WEBSOCKETS_OLDER] = &websocket->older,
		[PUSHED_WEBSOCKETS_PICKED_UP] = &websocket->picked_up,
		[PUSHED_MESSAGES_IN] = &websocket->messages_in,
		[PUSHED_MESSAGES_OUT] = &websocket->messages_out,
		[PUSHED_BYTES_IN] = &websocket->bytes_in,
		[PUSHED_BYTES_OUT] = &websocket->bytes_out,
		[PUSHED_CONTROL_IN] = &websocket->control_in,
		[PUSHED_CONTROL_OUT] = &websocket->control_out,
		[PUSHED_STREAMS] = &events->responses,
		[PUSHED_STREAMS_LOST] = &events->given_up,
		[PUSHED_EVENTS] = &events->count,
		[PUSHED_EVENT_BYTES] = &events->bytes,
	};

	for (uint32_t i = 0; i < PUSHED_COUNT; i++)
		*sums[i] += __atomic_load_n(&all->pushed[i], __ATOMIC_RELAXED);
}

static void read_responses(const struct loader *loader, uint32_t index, struct run_service *service)
{
	struct run_responses *responses = &service->responses;
	struct histogram sums[STATUS_FAILED_COUNT] = {};
	uint64_t cut = counter_sum(loader, index, COUNTER_CUT_HTTP);

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_statuses *all = loader_statuses(loader, copy, index);

		if (!all)
			continue;
		add_statuses(responses, all, sums);
		add_grpc(&service->grpc, all);
	}
	if (loader_config(loader)->http) {
		responses->status[0] += cut;
		responses->count += cut;
	}
	count_parts(&sums[STATUS_FAILED_4XX], &responses->service_4xx);
	count_parts(&sums[STATUS_FAILED_5XX], &responses->service_5xx);
	count_parts(&sums[STATUS_FAILED_GRPC], &service->grpc.service_failed);
}

_Static_assert(ROUTE_UNKNOWN_COUNT == (int)RUN_ROUTELESS_COUNT &&
		       ROUTE_PIPELINED == (int)RUN_ROUTELESS_PIPELINED &&
		       ROUTE_CLASSES == RUN_STATUS_CLASSES && ROUTES_MOST + 1 == RUN_ROUTES_MOST &&
		       COMMAND_ROWS == RUN_ROUTES_MOST,
	       "the kernel's routes are the document's");

/* loader_route_row() or loader_command_row(). */
typedef const struct service_route *(*row_of)(const struct loader *loader, uint32_t copy,
					      uint32_t index, uint32_t row);

static void read_times(const struct loader *loader, row_of of, uint32_t index, uint32_t row,
		       struct run_route *route)
{
	uint64_t timed;

	for (enum stage stage = STAGE_SOCKET_QUEUE; stage <= STAGE_RESPOND; stage++) {
		struct histogram sum = {};

		for (uint32_t copy = 0; copy < loader_copies(loader); copy++)
			add_part(&sum,
				 &of(loader, copy, index, row)->stages[stage - ROUTE_STAGE_FIRST]);
		count_parts(&sum, run_route_stage(route, stage));
	}
	timed = route->service.count;
	if (timed) {
		fill_zeros(&route->receive, timed);
		fill_zeros(&route->respond, timed);
	}
}

static uint64_t read_responses_of(const struct loader *loader, row_of of, uint32_t index,
				  uint32_t row, uint32_t place)
{
	uint64_t sum = 0;

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++)
		sum += __atomic_load_n(&of(loader, copy, index, row)->responses[place],
				       __ATOMIC_RELAXED);
	return sum;
}

static void read_route(const struct loader *loader, uint32_t index, uint32_t row,
		       struct run_route *route)
{
	for (uint32_t i = 0; i < ROUTE_CLASSES; i++) {
		route->status[i] = read_responses_of(loader, loader_route_row, index, row, i);
		route->count += route->status[i];
	}
	read_times(loader, loader_route_row, index, row, route);
}

/* An error counts after its reply: read the errors first, so that they are never more. */
static void read_command(const struct loader *loader, uint32_t index, uint32_t row,
			 struct run_route *route)
{
	route->errors.known = true;
	route->errors.value =
		read_responses_of(loader, loader_command_row, index, row, COMMAND_ERRORS);
	route->count = read_responses_of(loader, loader_command_row, index, row, COMMAND_REPLIES);
	read_times(loader, loader_command_row, index, row, route);
}

/* Make the list of @rows. NULL in @names: the row of others. 0 or -ENOMEM. */
static int make_list(struct run_routes *routes, const char *const *names, uint32_t rows)
{
	routes->list = calloc(rows, sizeof(*routes->list));
	if (!routes->list)
		return -ENOMEM;
	routes->count = rows;
	for (uint32_t row = 0; row < rows; row++) {
		routes->list[row].route = strdup(names[row] ? names[row] : RUN_ROUTE_OTHER);
		if (!routes->list[row].route)
			return -ENOMEM;
	}
	return 0;
}

/* Others come first: commands that have not come yet have no row, and get one after all others. */
static int read_commands(const struct loader *loader, uint32_t index, uint16_t protocol,
			 struct run_routes *routes)
{
	const char *names[COMMAND_ROWS];
	uint32_t rows = commands_rows(protocol, loader_command_places(loader), names);
	int r = make_list(routes, names, rows);

	routes->protocol = strdup(commands_protocol(protocol));
	if (r < 0 || !routes->protocol)
		return -ENOMEM;
	for (uint32_t row = 0; row < rows; row++)
		read_command(loader, index, row, &routes->list[row]);
	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_unnamed *unnamed = loader_unnamed(loader, copy, index);

		for (uint32_t i = 0; i < ROUTE_UNKNOWN_COUNT; i++)
			routes->not_known[i] +=
				__atomic_load_n(&unnamed->exchanges[i], __ATOMIC_RELAXED);
	}
	return 0;
}

static int read_routes(const struct loader *loader, uint32_t index, uint16_t port,
		       struct run_routes *routes)
{
	uint32_t rows = loader_config(loader)->route_rows;
	uint16_t protocol = commands_at(loader_config(loader), port);
	const char *names[RUN_ROUTES_MOST] = {};
	int r;

	if (protocol)
		return read_commands(loader, index, protocol, routes);
	if (!rows)
		return 0;
	for (uint32_t row = 0; row < rows; row++)
		names[row] = loader_route(loader, row);
	r = make_list(routes, names, rows);
	for (uint32_t row = 0; !r && row < rows; row++)
		read_route(loader, index, row, &routes->list[row]);
	routes->not_known[RUN_ROUTELESS_UNSEEN] = counter_sum(loader, index, COUNTER_CUT_HTTP);
	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_statuses *all = loader_statuses(loader, copy, index);

		for (uint32_t i = 0; all && i < ROUTE_UNKNOWN_COUNT; i++)
			routes->not_known[i] +=
				__atomic_load_n(&all->routeless[i], __ATOMIC_RELAXED);
	}
	return r;
}

static void read_messages(const struct loader *loader, uint32_t index, struct run_service *service)
{
	uint64_t depth_max = 0;

	service->last_message_ns = source_slots_last_message(loader, index);
	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_slot *slot = loader_slot(loader, copy, index);

		if (slot->depth_max > depth_max)
			depth_max = slot->depth_max;
	}
	service->accept_queue.depth_max = (struct run_number){true, depth_max};
	service->accept_queue.drops =
		(struct run_number){true, counter_sum(loader, index, COUNTER_LISTEN_DROPS)};
}

static void add_stage(const struct loader *loader, uint32_t copy, uint32_t index, enum stage stage,
		      struct histogram *h)
{
	const struct service_transmit *transmit = loader_transmit(loader, copy, index);

	if (stage < STAGE_RESIDENCE_END)
		add_part(h, &loader_slot(loader, copy, index)->stages[stage]);
	else if (transmit)
		add_part(h, &transmit->stages[stage - STAGE_RESIDENCE_END]);
}

static void read_slots(const struct loader *loader, uint32_t index, struct run_service *service)
{
	uint64_t timed;

	read_counters(loader, index, service);
	read_messages(loader, index, service);
	for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
		struct histogram sum = {};

		for (uint32_t copy = 0; copy < loader_copies(loader); copy++)
			add_stage(loader, copy, index, stage, &sum);
		count_parts(&sum, &service->stages[stage].histogram);
	}
	read_split(loader, index, service->cpu);
	read_span(loader, index, SPAN_ABANDONED, &service->abandoned);
	read_span(loader, index, SPAN_TLS_HANDSHAKE, &service->tls_handshake);
	read_windows(loader, index, &service->http2);
	timed = service->stages[STAGE_SERVICE].histogram.count;
	fill_zeros(&service->stages[STAGE_RECEIVE].histogram, timed);
	fill_zeros(&service->stages[STAGE_RESPOND].histogram, timed);
}

static uint64_t count_responses(const struct loader *loader, uint32_t index)
{
	uint64_t sum = 0;

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_statuses *all = loader_statuses(loader, copy, index);

		if (!all)
			continue;
		sum += __atomic_load_n(&all->unknown, __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < STATUS_COUNT; i++)
			sum += __atomic_load_n(&all->counts[i], __ATOMIC_RELAXED);
	}
	return sum;
}

/* Count what happens to connections: it changes with each that comes or ends. */
static uint64_t count_connections(const struct loader *loader, uint32_t index)
{
	uint64_t sum = counter_sum(loader, index, COUNTER_ACCEPTED);

	for (enum run_close close = 0; close < RUN_CLOSE_COUNT; close++)
		sum += counter_sum(loader, index, close_counters[close]);
	return sum;
}

/* Read what each exchange is counted in; @again: in place of an earlier reading. */
static int read_exchanges(const struct loader *loader, uint32_t index,
			  const struct service_key *key, bool again, struct run_service *service)
{
	if (again) {
		run_routes_clear(&service->routes);
		service->responses = (struct run_responses){};
		service->grpc = (struct run_grpc){};
	}
	read_slots(loader, index, service);
	if (key->protocol != IPPROTO_TCP)
		return 0;
	read_responses(loader, index, service);
	return read_routes(loader, index, key->port, &service->routes);
}

/*
 * An exchange is in several counts, which add up, and so is a connection. If one came while they were read, they are
 * read again. At a high rate one always does; then hardly any may have come, unless another process had the CPU.
 */
#define TOGETHER_TRIES 8
#define TOGETHER_LEAST 5
#define TOGETHER_NS    NSEC_PER_MSEC

int source_slots_read(const struct loader *loader, uint32_t index, const struct service_key *key,
		      struct run_service *service)
{
	for (unsigned int i = 1; i <= TOGETHER_TRIES; i++) {
		uint64_t begin_ns = clock_now_ns();
		uint64_t exchanges = exchanges_sum(loader, index);
		uint64_t responses = count_responses(loader, index);
		uint64_t connections = count_connections(loader, index);
		int r = read_exchanges(loader, index, key, i > 1, service);

		if (r < 0)
			return r;
		if (exchanges_sum(loader, index) == exchanges &&
		    count_responses(loader, index) == responses &&
		    count_connections(loader, index) == connections)
			break;
		if (i >= TOGETHER_LEAST && clock_now_ns() - begin_ns < TOGETHER_NS)
			break;
	}
	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_statuses *all = loader_statuses(loader, copy, index);

		if (all)
			add_pushes(service, all);
	}
	return 0;
}

void source_slots_conclude(const struct loader *loader, uint32_t index, struct run_service *service)
{
	int64_t outstanding = (int64_t)counter_sum(loader, index, COUNTER_OUTSTANDING);
	uint64_t known =
		service->stages[STAGE_SERVICE].histogram.count + service->losses[RUN_LOSS_UNTIMED];

	/* The sum may be negative for a moment: the copies change while they are added up. */
	if (outstanding > 0)
		service->losses[RUN_LOSS_UNANSWERED] += (uint64_t)outstanding;
	if (service->exchanges > known)
		service->losses[RUN_LOSS_UNTIMED] += service->exchanges - known;
}

/* The most frequent reason why replies are not matched, over the whole observation. */
static const char *doubtful_pattern(const struct loader *loader, uint32_t index)
{
	uint64_t ambiguous = counter_sum(loader, index, COUNTER_AMBIGUOUS_REPLIES);

	if (counter_sum(loader, index, COUNTER_NAMELESS_REPLIES) > ambiguous / 2)
		return "the server replies by calls whose receiver cannot be read (io_uring, "
		       "32-bit programs)";
	if (counter_sum(loader, index, COUNTER_UNTRACKED) > ambiguous / 2)
		return "more requests are without a reply at a time than are remembered";
	return "clients have several requests under way from one port, and the first two bytes of "
	       "a "
	       "reply do not show which one it answers";
}

void source_slots_doubt(const struct loader *loader, uint32_t index, struct run_service *service)
{
	struct run_stage *stage = &service->stages[STAGE_SERVICE];
	uint64_t ambiguous = service->losses[RUN_LOSS_AMBIGUOUS_REPLIES];
	char count[32], all[32];

	if (!stage->measured || !run_service_is_doubtful(service))
		return;
	run_stage_forget(stage,
			 text_format("%s of %s replies cannot be matched: %s",
				     units_format_count(ambiguous, count, sizeof(count)),
				     units_format_count(service->exchanges, all, sizeof(all)),
				     doubtful_pattern(loader, index)));
}

uint64_t source_slots_first_message(const struct loader *loader, uint32_t index)
{
	uint64_t first = 0;

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		uint64_t one = loader_first_message(loader, copy, index);

		if (one && (!first || one < first))
			first = one;
	}
	return first;
}

uint64_t source_slots_last_message(const struct loader *loader, uint32_t index)
{
	uint64_t last = 0;

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++) {
		const struct service_slot *slot = loader_slot(loader, copy, index);

		if (slot->last_message_ns > last)
			last = slot->last_message_ns;
	}
	return last;
}

bool source_slots_remains(const struct loader *loader, uint32_t index,
			  struct run_reclaimed *ret_remains)
{
	bool any = false;

	for (enum counter counter = 0; counter < COUNTER_COUNT && !any; counter++)
		any = counter_sum(loader, index, counter);
	*ret_remains = (struct run_reclaimed){
		.services = any,
		.accepted = counter_sum(loader, index, COUNTER_ACCEPTED),
		.exchanges = exchanges_sum(loader, index),
		.bytes_in = counter_sum(loader, index, COUNTER_BYTES_IN),
		.bytes_out = bytes_out_sum(loader, index),
	};
	return any;
}
