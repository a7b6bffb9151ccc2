// SPDX-License-Identifier: MIT
/* One observed service: its identity, state, stages and connections. */
#include <string.h>

#include "means.h"
#include "parts.h"

#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

#define MAX_NAMED_PROCESSES 6

static void add_processes(struct items *items, const struct run_service *service)
{
	size_t named = service->process_count;

	if (named > MAX_NAMED_PROCESSES)
		named = MAX_NAMED_PROCESSES;
	for (size_t i = 0; i < named; i++)
		items_add(items, "%.*s %u", (int)sizeof(service->processes[i].comm),
			  service->processes[i].comm, service->processes[i].pid);
	if (named < service->process_count)
		items_add(items, "%zu processes more", service->process_count - named);
}

void report_identity(const struct page *page, const struct run_service *service, const char *remark)
{
	const char *open = strchr(service->address, ':') ? "[" : "", *close = *open ? "]" : "";
	char place[RUN_PLACE_NAME];
	autoitems struct items items = items_begin(page, "", 0);

	page_style(page, STYLE_BOLD);
	items_add(&items, "%s %s%s%s:%u", service->protocol, open, service->address, close,
		  service->port);
	page_style(page, STYLE_PLAIN);
	if (service->host)
		items_add(&items, "host %s", service->host);
	if (*run_place_name(&service->place, place))
		items_add(&items, "%s", place);
	add_processes(&items, service);
	if (remark)
		items_add(&items, "%s", remark);
}

/* With fewer, the time from first to last says little: two requests a millisecond apart are no 2,000 per second. */
#define SPAN_EXCHANGES 30

static bool has_own_span(const struct run_service *service)
{
	return service->exchanges >= SPAN_EXCHANGES && service->first_message_ns &&
	       service->last_message_ns > service->first_message_ns;
}

uint64_t report_span(const struct run *run, const struct run_service *service)
{
	return has_own_span(service) ? service->last_message_ns - service->first_message_ns
				     : run->duration_ns;
}

static void add_throughput(struct items *items, const struct run *run,
			   const struct run_service *service, bool verbose)
{
	uint64_t ns = report_span(run, service);
	const char *rate = as_rate(service->exchanges, ns);

	if (!service->exchanges || !ns)
		return;
	if (has_own_span(service) && !verbose)
		items_add(items, "server throughput %s/s", rate);
	else
		items_add(items, "server throughput %s/s (%s)", rate,
			  has_own_span(service) ? "first to last request"
						: "over the whole period");
}

static bool has_connections(const struct run_service *service)
{
	return strcmp(service->protocol, "udp") != 0;
}

/* Show the process nearest to its limit. */
static void add_fds(struct items *items, const struct run_service *service)
{
	const struct run_process *fullest = run_fullest(service);

	if (!fullest)
		return;
	if (service->process_count > 1)
		items_add(items, "fds %ju/%ju (process %u)", (uintmax_t)fullest->open_fds.value,
			  (uintmax_t)fullest->fd_limit.value, fullest->pid);
	else
		items_add(items, "fds %ju/%ju", (uintmax_t)fullest->open_fds.value,
			  (uintmax_t)fullest->fd_limit.value);
}

static void add_accept_queue(struct items *items, const struct run_accept_queue *queue)
{
	/* The maximum is one listener's, the limit is the sum of all: print no ratio. */
	if (queue->depth_max.known && queue->listeners.known && queue->listeners.value > 1)
		items_add(items, "accept queue max %ju, of %ju listeners",
			  (uintmax_t)queue->depth_max.value, (uintmax_t)queue->listeners.value);
	else if (queue->depth_max.known && queue->limit.known)
		items_add(items, "accept queue max %ju/%ju", (uintmax_t)queue->depth_max.value,
			  (uintmax_t)queue->limit.value);
	else if (queue->depth_max.known)
		items_add(items, "accept queue max %ju", (uintmax_t)queue->depth_max.value);
	if (queue->overflows.known && queue->overflows.value)
		items_count(items, "accept queue overflows", queue->overflows.value);
}

/* A hung server shows here first. */
static void add_open(struct items *items, const struct run_open *open)
{
	uint64_t count = open->read.value + open->unread.value;

	if (!open->read.known || !count)
		return;
	if (open->oldest_ns.value)
		items_add(items, "open %s (oldest %s)", as_count(count),
			  as_time((double)open->oldest_ns.value));
	else
		items_count(items, "open", count);
}

uint64_t report_not_timed(const struct run_service *service)
{
	return service->losses[RUN_LOSS_UNTIMED] + service->losses[RUN_LOSS_CUT_OFF];
}

void report_state(const struct page *page, const struct run *run, const struct run_service *service)
{
	autoitems struct items items = items_begin(page, "", 0);

	add_throughput(&items, run, service, page->verbose);
	add_open(&items, &service->open);
	if (service->time_wait.known && has_connections(service))
		items_count(&items, "TIME_WAIT", service->time_wait.value);
	add_fds(&items, service);
	if (has_connections(service))
		add_accept_queue(&items, &service->accept_queue);
	items_count(&items, "lost", report_lost(run, service));
	items_some(&items, "not timed", report_not_timed(service));
}

struct column {
	const char *label;
	double quantile;
	unsigned int rank; /* time columns that must fit beyond the count; 0: always shown */
};

static const struct column columns[] = {
	{"p50", 0.5, 0}, {"p90", 0.9, 2}, {"p99", 0.99, 0}, {"p99.9", 0.999, 3}, {"max", 1.0, 1},
};

#define STAGE_COLUMNS 16
#define COUNT_COLUMNS 12
#define TIME_COLUMNS  10
/* The longer name of an inferred accept queue. */
#define STAGE_COLUMNS_INFERRED 23

static unsigned int stage_columns(const struct run_service *service)
{
	return run_accept_is_inferred(service->stages) ? STAGE_COLUMNS_INFERRED : STAGE_COLUMNS;
}

/* A narrow page keeps mean, p50 and p99. A wider one adds the count, then max, p90 and p99.9. */
static unsigned int room_for(const struct page *page, const struct run_service *service)
{
	unsigned int used = stage_columns(service) + 3 * TIME_COLUMNS;

	return page->width > used ? page->width - used : 0;
}

static unsigned int count_columns(const struct page *page, const struct run_service *service)
{
	return room_for(page, service) >= COUNT_COLUMNS ? COUNT_COLUMNS : 0;
}

static bool shows(const struct page *page, const struct run_service *service,
		  const struct column *column)
{
	return room_for(page, service) >= COUNT_COLUMNS + column->rank * TIME_COLUMNS;
}

static void print_header(const struct page *page, const struct run_service *service)
{
	page_style(page, STYLE_DIM);
	page_left(page, stage_columns(service), "stage");
	if (count_columns(page, service))
		page_right(page, COUNT_COLUMNS, "count");
	page_right(page, TIME_COLUMNS, "mean");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (!columns[i].rank || shows(page, service, &columns[i]))
			page_right(page, TIME_COLUMNS, "%s", columns[i].label);
	page_style(page, STYLE_PLAIN);
	fputc('\n', page->file);
}

static void print_histogram(const struct page *page, const struct run_service *service,
			    const struct histogram *h)
{
	if (count_columns(page, service))
		page_right(page, COUNT_COLUMNS, "%s", as_count(h->count));
	if (!h->count) {
		if (!count_columns(page, service))
			page_right(page, TIME_COLUMNS, "none");
		return;
	}
	page_right(page, TIME_COLUMNS, "%s", as_time(histogram_mean(h)));
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		uint64_t value = histogram_quantile(h, columns[i].quantile);

		if (!columns[i].rank || shows(page, service, &columns[i]))
			page_right(page, TIME_COLUMNS, "%s", as_time((double)value));
	}
}

const char *report_missing(const struct run_stage *stage, enum stage which)
{
	if (!stage->measured)
		return stage->reason ? stage->reason : "no reason given";
	return which >= STAGE_RESIDENCE_END && !stage->histogram.count ? "no exchange was sampled"
								       : NULL;
}

bool report_has_stage(const struct run_service *service, enum stage which)
{
	return has_connections(service) || service->stages[which].measured ||
	       which == STAGE_SOCKET_QUEUE || which == STAGE_SERVICE;
}

static const char unasked[] = "not asked for: ";

bool report_is_unasked(const struct run_stage *stage)
{
	return !stage->measured && stage->reason &&
	       !strncmp(stage->reason, unasked, strlen(unasked));
}

static void print_unasked(const struct page *page, const struct run_service *service)
{
	const struct {
		const struct run_stage *stage;
		const char *name;
	} stages[] = {
		{&service->stages[STAGE_TRANSMIT_QUEUE], "transmit queue"},
		{&service->stages[STAGE_ACK], "ack"},
		{&service->cpu[0], "CPU or waiting"},
	};
	autoitems struct items items = items_begin(page, unasked, sizeof(unasked) - 1);

	for (size_t i = 0; i < ARRAY_SIZE(stages) && page->verbose; i++)
		if (report_is_unasked(stages[i].stage))
			items_add(&items, "%s (%s)", stages[i].name,
				  stages[i].stage->reason + strlen(unasked));
}

/* Print the parts of service below it, or one line why there are none. */
static void print_split(const struct page *page, const struct run_service *service)
{
	const struct run_stage *parts = service->cpu;

	for (unsigned int i = 0; parts->measured && i < RUN_CPU_COUNT; i++) {
		page_left(page, stage_columns(service), "  %s", run_cpu_names[i]);
		print_histogram(page, service, &parts[i].histogram);
		fputc('\n', page->file);
	}
	if (parts->measured || !parts->reason || report_is_unasked(parts))
		return;
	page_style(page, STYLE_DIM);
	page_left(page, stage_columns(service), "  CPU/waiting");
	page_wrap(page, stage_columns(service), "not measured: %s", parts->reason);
	page_style(page, STYLE_PLAIN);
}

static void print_stage(const struct page *page, const struct run_service *service,
			enum stage which)
{
	const struct run_stage *stage = &service->stages[which];
	const char *missing = report_missing(stage, which);

	page_left(page, stage_columns(service), "%s",
		  as_words(run_stage_label(service->stages, which)));
	if (missing) {
		page_wrap(page, stage_columns(service), "not measured: %s", missing);
		return;
	}
	print_histogram(page, service, &stage->histogram);
	fputc('\n', page->file);
}

/* Print the mean residence of the timed exchanges. */
static void print_residence(const struct page *page, const struct run_service *service)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;

	for (unsigned int i = 0; i < STAGE_RESIDENCE_END; i++)
		if (!service->stages[i].measured)
			return;
	if (!timed)
		return;
	page_left(page, stage_columns(service), "residence");
	if (count_columns(page, service))
		page_right(page, COUNT_COLUMNS, "%s", as_count(timed));
	page_right(page, TIME_COLUMNS, "%s", as_time(run_residence_mean(service)));
	page_left(page, 3, "%s", "");
	if (!page->verbose) {
		page_wrap(page, 0, "their sum");
		return;
	}
	page_wrap(page, stage_columns(service) + count_columns(page, service) + TIME_COLUMNS + 3,
		  "the stages' sum per exchange, with %s of %s",
		  as_time(run_stage_mean(service, STAGE_ACCEPT_QUEUE)),
		  as_words(run_stage_label(service->stages, STAGE_ACCEPT_QUEUE)));
}

void report_stages(const struct page *page, const struct run_service *service)
{
	print_header(page, service);
	for (unsigned int i = 0; i < STAGE_RESIDENCE_END; i++) {
		if (report_has_stage(service, i))
			print_stage(page, service, i);
		if (i == STAGE_SERVICE)
			print_split(page, service);
	}
	print_residence(page, service);
	/* Stages on the response's way are optional: dim missing ones. */
	for (unsigned int i = STAGE_RESIDENCE_END; i < STAGE_COUNT; i++) {
		if (report_is_unasked(&service->stages[i]) || !report_has_stage(service, i))
			continue;
		page_style(page, report_missing(&service->stages[i], i) ? STYLE_DIM : STYLE_PLAIN);
		print_stage(page, service, i);
		page_style(page, STYLE_PLAIN);
	}
}

/* Ways to detect the end of a stage: a word of the document, and its meaning. */
static const struct {
	const char *source;
	const char *meaning;
} sources[] = {
	{"inferred", "from the first read"},
	{"syscall", "when accept() returned"},
	{"accept", "when accept() returned"},
	{"sockops", "the kernel's time stamps"},
};

static const char *source_meaning(const char *source)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (!strcmp(source, sources[i].source))
			return sources[i].meaning;
	return NULL;
}

static void add_source(struct items *items, const char *what, const struct run_stage *stage)
{
	const char *meaning;

	if (!stage->measured || !stage->source)
		return;
	meaning = source_meaning(stage->source);
	if (meaning)
		items_add(items, "%s %s (%s)", what, stage->source, meaning);
	else
		items_add(items, "%s %s", what, stage->source);
}

/* The usual one is not worth a line. */
static void add_quiet(struct items *items, const struct run_number *quiet_ns)
{
	if (quiet_ns->known && quiet_ns->value != REPORT_USUAL_QUIET_NS)
		items_time(items, "responses end with a pause of", (double)quiet_ns->value);
}

static void report_connections(const struct page *page, const struct run_service *service)
{
	autoitems struct items items = items_begin(page, "connections", LABEL_COLUMNS);

	if (!has_connections(service))
		return;
	items_count(&items, "accepted", service->accepted);
	add_source(&items, "accept source", &service->stages[STAGE_ACCEPT_QUEUE]);
	add_quiet(&items, &service->quiet_ns);
	if (service->connections.known)
		items_count(&items, "open now", service->connections.value);
	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		if (service->closes[i])
			items_add(&items, "%s %s", as_words(run_close_names[i]),
				  as_count(service->closes[i]));
	items_some(&items, "retransmits", service->retransmits);
	if (service->srtt_ns.known && service->min_rtt_ns.known)
		items_add(&items, "srtt %s (min %s)", as_time((double)service->srtt_ns.value),
			  as_time((double)service->min_rtt_ns.value));
	items_some(&items, "TLS", service->tls);
	items_count(&items, "TIME_WAIT created", service->time_wait_created);
}

static void report_open(const struct page *page, const struct run_service *service)
{
	const struct run_open *open = &service->open;
	autoitems struct items items = items_begin(page, "open now", LABEL_COLUMNS);

	if (!open->read.known)
		return;
	items_count(&items, "read, not answered", open->read.value);
	items_count(&items, "unread", open->unread.value);
	items_some(&items, "not accepted", open->unaccepted.value);
	if (open->oldest_ns.value)
		items_time(&items, "oldest", (double)open->oldest_ns.value);
	if (open->unread_bytes.value)
		items_add(&items, "unread bytes %s", as_bytes(open->unread_bytes.value));
	if (open->closing_bytes.value)
		items_add(&items, "closed, not yet sent %s in %s",
			  as_bytes(open->closing_bytes.value), as_count(open->closing.value));
}

static void report_bytes(const struct page *page, const struct run_service *service)
{
	autoitems struct items items = items_begin(page, "bytes", LABEL_COLUMNS);

	items_add(&items, "in %s", as_bytes(service->bytes_in));
	items_add(&items, "out %s", as_bytes(service->bytes_out));
}

/* Print the line of a stage outside the breakdown, if it has values; @label precedes the numbers. */
static void report_values(const struct page *page, const char *label, const struct histogram *h)
{
	autoitems struct items items = items_begin(page, label, LABEL_COLUMNS);

	if (!h->count)
		return;
	items.column += text_columns(label) - LABEL_COLUMNS;
	items_add(&items, "%s", as_count(h->count));
	items_time(&items, "mean", histogram_mean(h));
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		uint64_t value = histogram_quantile(h, columns[i].quantile);

		if (columns[i].rank < 2)
			items_add(&items, "%s %s", columns[i].label, as_time((double)value));
	}
}

/* Print for how long clients kept responses waiting, and their answers to the server's PINGs. */
static void report_windows(const struct page *page, const struct run_http2 *http2)
{
	report_values(page, "closed windows of streams ", &http2->stream_stalls);
	report_values(page, "closed windows of connections ", &http2->connection_stalls);
	report_values(page, "PING round trip ", &http2->pings);
}

/* Return whether something is not known because TLS hides it, though --tls was given. Streams may not be wanted. */
static bool is_hidden(const struct run_service *service, bool probed)
{
	return service->tls &&
	       (service->responses.status[0] || service->routes.not_known[RUN_ROUTELESS_TLS] ||
		service->losses[RUN_LOSS_TLS_UNKNOWN] ||
		(service->losses[RUN_LOSS_MULTIPLEXED] && !probed));
}

/* Print what --tls has found in the processes, if it did not see all of their text. Many have the same. */
static void report_libraries(const struct page *page, const struct run_service *service)
{
	const struct run_process *last = NULL;

	for (size_t i = 0; i < service->process_count; i++) {
		const struct run_process *process = &service->processes[i];
		bool probed = !strcmp(process->tls, RUN_TLS_PROBED);

		if (!process->tls[0] || !is_hidden(service, probed) ||
		    (last && !strcmp(last->tls, process->tls)))
			continue;
		page_left(page, LABEL_COLUMNS, "%s", last ? "" : "inside TLS");
		page_wrap(page, LABEL_COLUMNS, "not all is known of %.*s %u: %s",
			  (int)sizeof(process->comm), process->comm, process->pid,
			  !probed ? process->tls
				  : "its library is probed, but its text is not seen on buffers in "
				    "memory, nor on connections from before");
		last = process;
	}
}

/* Print responses by status, and the service time of failed ones. */
static void report_statuses(const struct page *page, const struct run_service *service)
{
	const struct run_responses *responses = &service->responses;
	const struct {
		const char *label;
		const struct histogram *histogram;
	} failed[] = {
		{"service of 4xx ", &responses->service_4xx},
		{"service of 5xx ", &responses->service_5xx},
		{"service of failed gRPC ", &service->grpc.service_failed},
	};

	if (page->tight != TIGHT_MOST)
		report_http_statuses(page, responses);
	report_libraries(page, service);
	/* Routes do not show failed calls: their responses have the status 200. */
	if (page->tight != TIGHT_MOST || service->grpc.service_failed.count)
		report_grpc_statuses(page, &service->grpc);
	if (page->tight != TIGHT_MOST) {
		report_grpc_calls(page, &service->grpc);
		report_grpc_unsure(page, &service->http2);
		report_pushes(page, service);
	}
	for (size_t i = 0; i < ARRAY_SIZE(failed) && !page->tight; i++)
		report_values(page, failed[i].label, failed[i].histogram);
}

static void report_accept_wait(const struct page *page, const struct run_service *service)
{
	const struct run_stage *stage = &service->stages[STAGE_ACCEPT_QUEUE];
	char label[2 * SHORT_TEXT];

	if (!stage->measured)
		return;
	snprintf(label, sizeof(label), "%s wait (per connection) ",
		 as_words(run_stage_label(service->stages, STAGE_ACCEPT_QUEUE)));
	report_values(page, label, &stage->histogram);
}

/* Print the ack stage, which people compare with srtt and min RTT among the connections. */
static void report_ack(const struct page *page, const struct run_service *service)
{
	const struct run_stage *stage = &service->stages[STAGE_ACK];
	const char *missing = report_missing(stage, STAGE_ACK);

	if (report_is_unasked(stage) || !report_has_stage(service, STAGE_ACK))
		return;
	if (missing) {
		page_style(page, STYLE_DIM);
		page_left(page, LABEL_COLUMNS, "%s", run_stage_names[STAGE_ACK]);
		page_wrap(page, LABEL_COLUMNS, "not measured: %s", missing);
		page_style(page, STYLE_PLAIN);
	} else {
		report_values(page, "ack (overlaps the network) ", &stage->histogram);
	}
}

/* Print "service 1.2 ms: running 0.3 ms, runnable 0.5 ms, blocked 0.4 ms": means, which add up. */
static void report_split(const struct page *page, const struct run_service *service)
{
	const struct run_stage *parts = service->cpu;
	double count = (double)parts[RUN_CPU_RUNNING].histogram.count, sum = 0;
	uint64_t all = service->stages[STAGE_SERVICE].histogram.count;
	autoitems struct items items = items_begin(page, "service", LABEL_COLUMNS);

	if (!parts->measured || !all)
		return;
	if (count == 0) {
		page_left(page, LABEL_COLUMNS, "service");
		page_wrap(page, LABEL_COLUMNS,
			  "CPU or waiting is not known: the threads that answer are not those that "
			  "read");
		return;
	}
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		sum += (double)parts[i].histogram.sum;
	items_time(&items, "mean", sum / count);
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		items_add(&items, "%s %s", run_cpu_names[i],
			  as_time((double)parts[i].histogram.sum / count));
	if (parts->histogram.count < all)
		items_count(&items, "not divided", all - parts->histogram.count);
}

void report_beside(const struct page *page, const struct run_service *service)
{
	report_split(page, service);
	report_accept_wait(page, service);
	report_ack(page, service);
}

/* Print how many exchanges were followed beyond the residence, and how many did not end. */
static void report_followed(const struct page *page, const struct run_service *service)
{
	uint64_t followed = service->transmit_followed;
	uint64_t ended = service->stages[STAGE_TRANSMIT_QUEUE].histogram.count +
			 service->losses[RUN_LOSS_TRANSMIT_UNSEEN];
	autoitems struct items items = items_begin(page, "transmit", LABEL_COLUMNS);

	if (!service->stages[STAGE_TRANSMIT_QUEUE].measured)
		return;
	items_add(&items, "followed %s of %s exchanges", as_count(followed),
		  as_count(service->exchanges));
	add_source(&items, "by", &service->stages[STAGE_TRANSMIT_QUEUE]);
	if (ended < followed)
		items_count(&items, "not yet over", followed - ended);
}

/* Print where the service's processes run. */
static void report_where(const struct page *page, const struct run_service *service)
{
	const struct run_place *place = &service->place;
	autoitems struct items items = items_begin(page, "runs in", LABEL_COLUMNS);

	if (!place->cgroup[0])
		return;
	if (place->container[0] && place->pod[0])
		items_add(&items, "container %s", place->container);
	if (place->container_id[0])
		items_add(&items, "id %s", place->container_id);
	if (place->pod[0] && place->pod_uid[0])
		items_add(&items, "pod uid %s", place->pod_uid);
	if (place->cgroup[0])
		items_add(&items, "cgroup %s", place->cgroup);
	items_add(&items, "network namespace %u", service->netns);
}

void report_server_name(const struct run_service *service, char ret_name[static SHORT_TEXT])
{
	bool one = service->process_count;

	for (size_t i = 1; i < service->process_count; i++)
		one &= !strcmp(service->processes[0].comm, service->processes[i].comm);
	snprintf(ret_name, SHORT_TEXT, "%s", one ? service->processes[0].comm : "the server");
}

void report_details(const struct page *page, const struct run *run,
		    const struct run_service *service)
{
	if (!page->verbose) {
		report_pipelines(page, service);
		report_http2(page, service);
		if (!page->tight)
			report_windows(page, &service->http2);
		report_statuses(page, service);
		report_routes(page, service, report_span(run, service));
		report_proposed(page, service);
		if (page->tight != TIGHT_MOST)
			report_calls(page, service);
		report_caveats(page, service);
		return;
	}
	report_where(page, service);
	print_unasked(page, service);
	report_connections(page, service);
	report_pipelines(page, service);
	report_http2(page, service);
	report_windows(page, &service->http2);
	report_statuses(page, service);
	report_routes(page, service, report_span(run, service));
	report_proposed(page, service);
	report_calls(page, service);
	report_listeners(page, service);
	report_open(page, service);
	report_values(page, "TLS handshake ", &service->tls_handshake);
	/* A censored time: the requests would have waited longer. */
	report_values(page, "unanswered (waited at least) ", &service->abandoned);
	report_bytes(page, service);
	report_followed(page, service);
	report_caveats(page, service);
}
