/* SPDX-License-Identifier: MIT */
/* One service as the observer saw it: who it is, its state, its stages, its connections. */
#include <string.h>

#include "report_parts.h"

#include "sojourn/report.h"
#include "sojourn/run_sum.h"

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
	struct items items;

	page_style(page, STYLE_BOLD);
	items = items_begin(page, "", 0);
	items_add(&items, "%s %s%s%s:%u", service->protocol, open, service->address, close,
		  service->port);
	page_style(page, STYLE_PLAIN);
	if (service->host)
		items_add(&items, "host %s", service->host);
	add_processes(&items, service);
	if (remark)
		items_add(&items, "%s", remark);
	items_end(&items);
}

static void add_throughput(struct items *items, const struct run *run,
			   const struct run_service *service)
{
	uint64_t ns = service->last_message_ns - service->first_message_ns;
	bool known =
		service->first_message_ns && service->last_message_ns > service->first_message_ns;
	char rate[SHORT_TEXT];

	if (!service->exchanges || (!known && !run->duration_ns))
		return;
	if (!known)
		ns = run->duration_ns;
	page_rate(service->exchanges, ns, rate);
	items_add(items, "server throughput %s/s (%s)", rate,
		  known ? "first to last request" : "over the whole period");
}

static double fd_share(const struct run_process *process)
{
	if (!process->open_fds.known || !process->fd_limit.known || !process->fd_limit.value)
		return -1;
	return (double)process->open_fds.value / (double)process->fd_limit.value;
}

/* The process that is nearest to its limit is the one that matters. */
static void add_fds(struct items *items, const struct run_service *service)
{
	const struct run_process *fullest = NULL;

	for (size_t i = 0; i < service->process_count; i++) {
		const struct run_process *process = &service->processes[i];

		if (fd_share(process) >= 0 && (!fullest || fd_share(process) > fd_share(fullest)))
			fullest = process;
	}
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
	char text[SHORT_TEXT];

	if (queue->depth_max.known && queue->limit.known)
		items_add(items, "accept queue max %ju/%ju", (uintmax_t)queue->depth_max.value,
			  (uintmax_t)queue->limit.value);
	else if (queue->depth_max.known)
		items_add(items, "accept queue max %ju", (uintmax_t)queue->depth_max.value);
	if (queue->overflows.known && queue->overflows.value)
		items_add(items, "accept queue overflows %s",
			  page_count(queue->overflows.value, text));
}

/* Only where they are used: most servers connect to nobody. */
static void add_ports(struct items *items, const struct run_ports *ports)
{
	char used[SHORT_TEXT], capacity[SHORT_TEXT];

	if (ports->used.known && ports->used.value && ports->capacity.known)
		items_add(items, "ports %s/%s towards %s", page_count(ports->used.value, used),
			  page_count(ports->capacity.value, capacity), ports->towards);
}

void report_state(const struct page *page, const struct run *run, const struct run_service *service)
{
	struct items items = items_begin(page, "", 0);
	char text[SHORT_TEXT];

	add_throughput(&items, run, service);
	if (service->time_wait.known)
		items_add(&items, "TIME_WAIT %s", page_count(service->time_wait.value, text));
	add_ports(&items, &service->ports);
	add_fds(&items, service);
	add_accept_queue(&items, &service->accept_queue);
	items_add(&items, "lost %s", page_count(report_lost(run, service), text));
	items_end(&items);
}

struct column {
	const char *label;
	double quantile;
	bool wide; /* left out on a narrow page */
};

static const struct column columns[] = {
	{"p50", 0.5, false},	{"p90", 0.9, true},  {"p99", 0.99, false},
	{"p99.9", 0.999, true}, {"max", 1.0, false},
};

#define STAGE_COLUMNS 16
#define COUNT_COLUMNS 14
#define TIME_COLUMNS  11
#define FULL_COLUMNS  (STAGE_COLUMNS + COUNT_COLUMNS + (1 + ARRAY_SIZE(columns)) * TIME_COLUMNS)

static bool shows(const struct page *page, const struct column *column)
{
	return !column->wide || page->width >= FULL_COLUMNS;
}

static void print_header(const struct page *page)
{
	page_style(page, STYLE_DIM);
	page_left(page, STAGE_COLUMNS, "stage");
	page_right(page, COUNT_COLUMNS, "count");
	page_right(page, TIME_COLUMNS, "mean");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (shows(page, &columns[i]))
			page_right(page, TIME_COLUMNS, "%s", columns[i].label);
	page_style(page, STYLE_PLAIN);
	fputc('\n', page->file);
}

static void print_histogram(const struct page *page, const struct histogram *h)
{
	char text[SHORT_TEXT];

	page_right(page, COUNT_COLUMNS, "%s", page_count(h->count, text));
	if (!h->count)
		return;
	page_right(page, TIME_COLUMNS, "%s", page_time(histogram_mean(h), text));
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		uint64_t value = histogram_quantile(h, columns[i].quantile);

		if (shows(page, &columns[i]))
			page_right(page, TIME_COLUMNS, "%s", page_time((double)value, text));
	}
}

const char *report_missing(const struct run_stage *stage, enum stage which)
{
	if (!stage->measured)
		return stage->reason ? stage->reason : "no reason given";
	return which >= STAGE_RESIDENCE_END && !stage->histogram.count ? "no exchange was sampled"
								       : NULL;
}

/* What service divides into, below it; without, it says so in one line. */
static void print_split(const struct page *page, const struct run_service *service)
{
	const struct run_stage *parts = service->cpu;

	for (unsigned int i = 0; parts->measured && i < RUN_CPU_COUNT; i++) {
		page_left(page, STAGE_COLUMNS, "  %s", run_cpu_names[i]);
		print_histogram(page, &parts[i].histogram);
		fputc('\n', page->file);
	}
	if (parts->measured || !parts->reason)
		return;
	page_style(page, STYLE_DIM);
	page_left(page, STAGE_COLUMNS, "  CPU/waiting");
	page_wrap(page, STAGE_COLUMNS, "not measured: %s", parts->reason);
	page_style(page, STYLE_PLAIN);
}

static void print_stage(const struct page *page, const struct run_service *service,
			enum stage which)
{
	const struct run_stage *stage = &service->stages[which];
	const char *missing = report_missing(stage, which);
	char text[SHORT_TEXT];

	page_left(page, STAGE_COLUMNS, "%s", page_words(run_stage_names[which], text));
	if (missing) {
		page_wrap(page, STAGE_COLUMNS, "not measured: %s", missing);
		return;
	}
	print_histogram(page, &stage->histogram);
	fputc('\n', page->file);
}

/* The mean of the whole residence, of the exchanges that were timed. */
static void print_residence(const struct page *page, const struct run_service *service)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;
	double mean_ns = 0;
	char text[SHORT_TEXT];

	for (unsigned int i = 0; i < STAGE_RESIDENCE_END; i++) {
		if (!service->stages[i].measured)
			return;
		mean_ns += run_stage_mean(service, i);
	}
	if (!timed)
		return;
	page_left(page, STAGE_COLUMNS, "residence");
	page_right(page, COUNT_COLUMNS, "%s", page_count(timed, text));
	page_right(page, TIME_COLUMNS, "%s", page_time(mean_ns, text));
	page_left(page, 3, "%s", "");
	page_wrap(page, STAGE_COLUMNS + COUNT_COLUMNS + TIME_COLUMNS + 3,
		  "the stages' sum per exchange, with %s of accept queue",
		  page_time(run_stage_mean(service, STAGE_ACCEPT_QUEUE), text));
}

/* The stages on the response's way; optional, so that their absence is nothing to look at. */
static void print_way_out(const struct page *page, const struct run_service *service)
{
	for (unsigned int i = STAGE_RESIDENCE_END; i < STAGE_COUNT; i++) {
		page_style(page, report_missing(&service->stages[i], i) ? STYLE_DIM : STYLE_PLAIN);
		print_stage(page, service, i);
		page_style(page, STYLE_PLAIN);
	}
}

void report_stages(const struct page *page, const struct run_service *service)
{
	print_header(page);
	for (unsigned int i = 0; i < STAGE_RESIDENCE_END; i++) {
		print_stage(page, service, i);
		if (i == STAGE_SERVICE)
			print_split(page, service);
	}
	print_residence(page, service);
	print_way_out(page, service);
}

/* How the end of a stage was told, where there are several ways. */
static void add_source(struct items *items, const char *what, const struct run_stage *stage)
{
	if (stage->measured && stage->source)
		items_add(items, "%s %s", what, stage->source);
}

static void report_connections(const struct page *page, const struct run_service *service)
{
	struct items items = items_begin(page, "connections", LABEL_COLUMNS);
	char text[SHORT_TEXT], words[SHORT_TEXT];

	items_add(&items, "accepted %s", page_count(service->accepted, text));
	add_source(&items, "accept source", &service->stages[STAGE_ACCEPT_QUEUE]);
	if (service->connections.known)
		items_add(&items, "established now %s",
			  page_count(service->connections.value, text));
	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		if (service->closes[i])
			items_add(&items, "%s %s", page_words(run_close_names[i], words),
				  page_count(service->closes[i], text));
	if (service->retransmits)
		items_add(&items, "retransmits %s", page_count(service->retransmits, text));
	if (service->srtt_ns.known && service->min_rtt_ns.known)
		items_add(&items, "srtt %s (min %s)",
			  page_time((double)service->srtt_ns.value, text),
			  page_time((double)service->min_rtt_ns.value, words));
	items_add(&items, "TIME_WAIT created %s", page_count(service->time_wait_created, text));
	items_end(&items);
}

static void report_bytes(const struct page *page, const struct run_service *service)
{
	struct items items = items_begin(page, "bytes", LABEL_COLUMNS);
	char text[SHORT_TEXT];

	items_add(&items, "in %s", page_bytes(service->bytes_in, text));
	items_add(&items, "out %s", page_bytes(service->bytes_out, text));
	items_end(&items);
}

/* A stage that is no part of the breakdown: one line, @label is all of it that is not numbers. */
static struct items begin_beside(const struct page *page, const char *label,
				 const struct histogram *h)
{
	struct items items = items_begin(page, label, LABEL_COLUMNS);
	char text[SHORT_TEXT];

	items.column += page_columns(label) - LABEL_COLUMNS;
	items_add(&items, "%s", page_count(h->count, text));
	items_add(&items, "mean %s", page_time(histogram_mean(h), text));
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		uint64_t value = histogram_quantile(h, columns[i].quantile);

		if (!columns[i].wide)
			items_add(&items, "%s %s", columns[i].label,
				  page_time((double)value, text));
	}
	return items;
}

static void report_accept_wait(const struct page *page, const struct run_service *service)
{
	const struct run_stage *stage = &service->stages[STAGE_ACCEPT_QUEUE];
	struct items items;

	if (!stage->measured || !stage->histogram.count)
		return;
	items = begin_beside(page, "accept queue wait (per connection) ", &stage->histogram);
	items_end(&items);
}

/* Read it beside srtt and min RTT, which stand on the next line. */
static void report_ack(const struct page *page, const struct run_service *service)
{
	const struct run_stage *stage = &service->stages[STAGE_ACK];
	const char *missing = report_missing(stage, STAGE_ACK);
	struct items items;

	if (missing) {
		page_style(page, STYLE_DIM);
		page_left(page, LABEL_COLUMNS, "%s", run_stage_names[STAGE_ACK]);
		page_wrap(page, LABEL_COLUMNS, "not measured: %s", missing);
		page_style(page, STYLE_PLAIN);
	} else {
		items = begin_beside(page, "ack (overlaps the network) ", &stage->histogram);
		items_end(&items);
	}
}

/* "service 1.2 ms: running 0.3 ms, runnable 0.5 ms, blocked 0.4 ms": means, which add up. */
static void report_split(const struct page *page, const struct run_service *service)
{
	const struct run_stage *parts = service->cpu;
	double count = (double)parts[RUN_CPU_RUNNING].histogram.count, sum = 0;
	uint64_t all = service->stages[STAGE_SERVICE].histogram.count;
	char text[SHORT_TEXT];
	struct items items;

	if (!parts->measured || !all)
		return;
	if (count == 0) {
		page_left(page, LABEL_COLUMNS, "service");
		page_wrap(page, LABEL_COLUMNS,
			  "CPU or waiting is not known: other threads answer than read");
		return;
	}
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		sum += (double)parts[i].histogram.sum;
	items = items_begin(page, "service", LABEL_COLUMNS);
	items_add(&items, "mean %s", page_time(sum / count, text));
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		items_add(&items, "%s %s", run_cpu_names[i],
			  page_time((double)parts[i].histogram.sum / count, text));
	if (parts->histogram.count < all)
		items_add(&items, "not divided %s", page_count(all - parts->histogram.count, text));
	items_end(&items);
}

void report_beside(const struct page *page, const struct run_service *service)
{
	report_split(page, service);
	report_accept_wait(page, service);
	report_ack(page, service);
}

/* Of how many exchanges the stages behind the residence tell, and how many of these did not end. */
static void report_followed(const struct page *page, const struct run_service *service)
{
	uint64_t followed = service->transmit_followed;
	uint64_t ended = service->stages[STAGE_TRANSMIT_QUEUE].histogram.count +
			 service->losses[RUN_LOSS_TRANSMIT_UNSEEN];
	char text[SHORT_TEXT], all[SHORT_TEXT];
	struct items items;

	if (!service->stages[STAGE_TRANSMIT_QUEUE].measured)
		return;
	items = items_begin(page, "transmit", LABEL_COLUMNS);
	items_add(&items, "followed %s of %s exchanges", page_count(followed, text),
		  page_count(service->exchanges, all));
	add_source(&items, "by", &service->stages[STAGE_TRANSMIT_QUEUE]);
	if (ended < followed)
		items_add(&items, "not yet over %s", page_count(followed - ended, text));
	items_end(&items);
}

void report_details(const struct page *page, const struct run_service *service)
{
	report_connections(page, service);
	report_bytes(page, service);
	report_followed(page, service);
	report_caveats(page, service);
}
