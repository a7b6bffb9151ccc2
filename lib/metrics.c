/* SPDX-License-Identifier: MIT */
/* Which metrics there are, a row each, and their text; see sojourn/metrics.h. */
#include "sojourn/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/finding.h"

/* 2^10 ns is where the first octave begins. */
#define FIRST_OCTAVE 10

const char *const metrics_types[] = {
	[METRICS_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[METRICS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

uint64_t metrics_edge_ns(unsigned int edge)
{
	uint64_t octave = 1ULL << (FIRST_OCTAVE + edge / 2);

	return (edge % 2 ? octave + octave / 2 : octave) - 1;
}

/* ---- what was exported before ---- */

struct exported {
	uint32_t netns;
	uint16_t port;
	char protocol[8];
	uint64_t edges[STAGE_COUNT][METRICS_EDGES];
};

struct metrics {
	struct exported *services;
	size_t count;
};

struct metrics *metrics_new(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *metrics)
{
	free(metrics->services);
	free(metrics);
}

static struct exported *find_exported(struct metrics *metrics, const struct run_service *service)
{
	struct exported *grown;

	for (size_t i = 0; i < metrics->count; i++) {
		struct exported *one = &metrics->services[i];

		if (one->netns == service->netns && one->port == service->port &&
		    !strcmp(one->protocol, service->protocol))
			return one;
	}
	grown = reallocarray(metrics->services, metrics->count + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	metrics->services = grown;
	grown += metrics->count++;
	*grown = (struct exported){.netns = service->netns, .port = service->port};
	memcpy(grown->protocol, service->protocol, sizeof(grown->protocol));
	return grown;
}

/* ---- text ---- */

struct writer {
	FILE *file;
	enum metrics_format format;
};

/* Text of elsewhere as a label's value. */
static void put_value(const struct writer *w, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(w->file, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", w->file);
		else
			putc(*text, w->file);
	}
}

enum type {
	COUNTER,
	GAUGE,
	HISTOGRAM,
};

static const char *const type_names[] = {"counter", "gauge", "histogram"};

/* OpenMetrics names a counter's family without the `_total` of its samples. */
static void put_head(const struct writer *w, const char *name, enum type type, const char *help)
{
	const char *suffix = type == COUNTER && w->format == METRICS_PROMETHEUS ? "_total" : "";

	fprintf(w->file, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
		type_names[type]);
}

static const char *sample_suffix(enum type type)
{
	return type == COUNTER ? "_total" : "";
}

static void put_service(const struct writer *w, const struct run_service *service)
{
	fprintf(w->file, "protocol=\"%s\",port=\"%u\",netns=\"%" PRIu32 "\"", service->protocol,
		service->port, service->netns);
}

static void put_seconds(const struct writer *w, uint64_t ns)
{
	fprintf(w->file, "%" PRIu64 ".%09" PRIu64, (uint64_t)(ns / NSEC_PER_SEC),
		(uint64_t)(ns % NSEC_PER_SEC));
}

/* ---- one number a service ---- */

static struct run_number known(uint64_t value)
{
	return (struct run_number){.known = true, .value = value};
}

#define GETTER(name, expression)                                               \
	static struct run_number get_##name(const struct run_service *service) \
	{                                                                      \
		return expression;                                             \
	}

GETTER(accepted, known(service->accepted))
GETTER(exchanges, known(service->exchanges))
GETTER(bytes_in, known(service->bytes_in))
GETTER(bytes_out, known(service->bytes_out))
GETTER(connections, service->connections)
GETTER(time_wait, service->time_wait)
GETTER(time_wait_created, known(service->time_wait_created))
GETTER(retransmits, known(service->retransmits))
GETTER(srtt, service->srtt_ns)
GETTER(min_rtt, service->min_rtt_ns)
GETTER(depth, service->accept_queue.depth)
GETTER(depth_max, service->accept_queue.depth_max)
GETTER(limit, service->accept_queue.limit)
GETTER(overflows, service->accept_queue.overflows)

/* Descriptors are a process's: those of the one that is nearest to its limit. */
static const struct run_process *fullest(const struct run_service *service)
{
	const struct run_process *found = NULL;

	for (size_t i = 0; i < service->process_count; i++) {
		const struct run_process *process = &service->processes[i];

		if (!process->open_fds.known || !process->fd_limit.known ||
		    !process->fd_limit.value)
			continue;
		if (!found || process->open_fds.value * found->fd_limit.value >
				      found->open_fds.value * process->fd_limit.value)
			found = process;
	}
	return found;
}

GETTER(open_fds, fullest(service) ? fullest(service)->open_fds : (struct run_number){0})
GETTER(fd_limit, fullest(service) ? fullest(service)->fd_limit : (struct run_number){0})
GETTER(processes, known(service->process_count))

struct metric {
	const char *name; /* a counter's without `_total` */
	enum type type;
	bool seconds; /* the value is ns, and written in seconds */
	struct run_number (*get)(const struct run_service *service);
	const char *help;
};

/* clang-format off */
static const struct metric service_metrics[] = {
	{"sojourn_exchanges", COUNTER, false, get_exchanges, "Requests whose response has begun."},
	{"sojourn_connections_accepted", COUNTER, false, get_accepted, "Connections established on the listener."},
	{"sojourn_received_bytes", COUNTER, false, get_bytes_in, "Bytes that the server's reads returned."},
	{"sojourn_sent_bytes", COUNTER, false, get_bytes_out, "Bytes that the server's writes handed to the kernel."},
	{"sojourn_connections", GAUGE, false, get_connections, "Connections established now."},
	{"sojourn_time_wait_sockets", GAUGE, false, get_time_wait, "Sockets of the port in TIME_WAIT now."},
	{"sojourn_time_wait_created", COUNTER, false, get_time_wait_created, "Sockets that the service's closes left in TIME_WAIT."},
	{"sojourn_segments_retransmitted", COUNTER, false, get_retransmits, "Segments sent again."},
	{"sojourn_smoothed_round_trip_seconds", GAUGE, true, get_srtt, "Mean of TCP's smoothed round-trip times of the connections established now."},
	{"sojourn_minimum_round_trip_seconds", GAUGE, true, get_min_rtt, "Lowest round-trip time that TCP saw on any of them."},
	{"sojourn_accept_queue_connections", GAUGE, false, get_depth, "Connections waiting for accept() now."},
	{"sojourn_accept_queue_connections_max", GAUGE, false, get_depth_max, "Most of them at any time since the observation began."},
	{"sojourn_accept_queue_limit_connections", GAUGE, false, get_limit, "listen()'s backlog, capped by somaxconn."},
	{"sojourn_accept_queue_overflows", COUNTER, false, get_overflows, "Connections that the listener dropped."},
	{"sojourn_open_descriptors", GAUGE, false, get_open_fds, "Descriptors of the service's process that is nearest to its limit."},
	{"sojourn_descriptor_limit", GAUGE, false, get_fd_limit, "Soft RLIMIT_NOFILE of that process."},
	{"sojourn_processes", GAUGE, false, get_processes, "Processes that hold the service's sockets."},
};
/* clang-format on */

static void put_metric(const struct writer *w, const struct run *run, const struct metric *metric)
{
	put_head(w, metric->name, metric->type, metric->help);
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_number value = metric->get(&run->services[i]);

		if (!value.known)
			continue;
		fprintf(w->file, "%s%s{", metric->name, sample_suffix(metric->type));
		put_service(w, &run->services[i]);
		fputs("} ", w->file);
		if (metric->seconds)
			put_seconds(w, value.value);
		else
			fprintf(w->file, "%" PRIu64, value.value);
		putc('\n', w->file);
	}
}

/* ---- one number for each of several kinds ---- */

static void put_kinds(const struct writer *w, const struct run *run, const char *name,
		      const char *label, const char *help, const char *const *names, size_t count,
		      const uint64_t *(*values)(const struct run_service *service))
{
	put_head(w, name, COUNTER, help);
	for (size_t i = 0; i < run->service_count; i++) {
		for (size_t k = 0; k < count; k++) {
			fprintf(w->file, "%s_total{", name);
			put_service(w, &run->services[i]);
			fprintf(w->file, ",%s=\"%s\"} %" PRIu64 "\n", label, names[k],
				values(&run->services[i])[k]);
		}
	}
}

static const uint64_t *get_closes(const struct run_service *service)
{
	return service->closes;
}

static const uint64_t *get_losses(const struct run_service *service)
{
	return service->losses;
}

/* ---- stages ---- */

static void fill_edges(const struct histogram *h, uint64_t edges[static METRICS_EDGES])
{
	uint64_t seen = 0;
	unsigned int bucket = 0;

	for (unsigned int edge = 0; edge < METRICS_EDGES; edge++) {
		for (; bucket <= bucket_index(metrics_edge_ns(edge)); bucket++)
			seen += h->buckets[bucket];
		if (seen > edges[edge])
			edges[edge] = seen;
	}
}

static void put_stage(const struct writer *w, const struct run_service *service, enum stage stage,
		      uint64_t edges[static METRICS_EDGES])
{
	const struct histogram *h = &service->stages[stage].histogram;
	const char *name = run_stage_names[stage];

	fill_edges(h, edges);
	for (unsigned int i = 0; i <= METRICS_EDGES; i++) {
		fputs("sojourn_stage_seconds_bucket{", w->file);
		put_service(w, service);
		fprintf(w->file, ",stage=\"%s\",le=\"", name);
		if (i < METRICS_EDGES)
			put_seconds(w, metrics_edge_ns(i));
		else
			fputs("+Inf", w->file);
		fprintf(w->file, "\"} %" PRIu64 "\n", i < METRICS_EDGES ? edges[i] : h->count);
	}
	fputs("sojourn_stage_seconds_sum{", w->file);
	put_service(w, service);
	fprintf(w->file, ",stage=\"%s\"} ", name);
	put_seconds(w, h->sum);
	fputs("\nsojourn_stage_seconds_count{", w->file);
	put_service(w, service);
	fprintf(w->file, ",stage=\"%s\"} %" PRIu64 "\n", name, h->count);
}

static void put_stages(const struct writer *w, struct metrics *metrics, const struct run *run)
{
	put_head(w, "sojourn_stage_seconds", HISTOGRAM,
		 "Time of requests in each stage; accept_queue is of connections.");
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];
		struct exported *exported = find_exported(metrics, service);

		for (enum stage stage = 0; exported && stage < STAGE_COUNT; stage++)
			if (service->stages[stage].measured)
				put_stage(w, service, stage, exported->edges[stage]);
	}
}

/* ---- names, findings, cost ---- */

static void put_info(const struct writer *w, const struct run *run)
{
	put_head(w, "sojourn_service_info", GAUGE,
		 "1; where the service listens, and the name of its first process.");
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		fputs("sojourn_service_info{", w->file);
		put_service(w, service);
		fputs(",address=\"", w->file);
		put_value(w, service->address);
		fputs("\",process=\"", w->file);
		put_value(w, service->process_count ? service->processes[0].comm : "");
		fputs("\"} 1\n", w->file);
	}
}

static void put_plain(const struct writer *w, const char *name, enum type type, const char *help,
		      uint64_t value, bool seconds)
{
	put_head(w, name, type, help);
	fprintf(w->file, "%s%s ", name, sample_suffix(type));
	if (seconds)
		put_seconds(w, value);
	else
		fprintf(w->file, "%" PRIu64, value);
	putc('\n', w->file);
}

static uint64_t count_findings(const struct run *run, const char *severity)
{
	uint64_t count = 0;

	for (size_t i = 0; i < run->finding_count; i++)
		count += !strcmp(run->findings[i].severity, severity);
	return count;
}

/* Nothing at all where nobody looked: none found would be a claim. */
static void put_findings(const struct writer *w, const struct run *run)
{
	static const char *const severities[] = {"warning", "critical"};

	if (!run->not_seen && !run->finding_count)
		return;
	put_head(w, "sojourn_findings", GAUGE, "What the doctor finds running out on this host.");
	for (size_t i = 0; i < ARRAY_SIZE(severities); i++)
		fprintf(w->file, "sojourn_findings{severity=\"%s\"} %" PRIu64 "\n", severities[i],
			count_findings(run, severities[i]));
}

static void put_cost(const struct writer *w, const struct run *run)
{
	uint64_t misses = 0;

	put_plain(w, "sojourn_services_dropped", COUNTER,
		  "Services that found no slot and were not observed.", run->services_dropped,
		  false);
	if (!run->cost)
		return;
	for (size_t i = 0; i < run->cost->program_count; i++)
		misses += run->cost->programs[i].recursion_misses;
	put_plain(w, "sojourn_observer_events_missed", COUNTER,
		  "Events that a BPF program did not see, because it was running already.", misses,
		  false);
	put_plain(w, "sojourn_observer_cpu_seconds", COUNTER,
		  "The observer's CPU time in user space and system calls.", run->cost->cpu_ns,
		  true);
	put_plain(w, "sojourn_observer_resident_bytes", GAUGE, "The observer's peak resident set.",
		  run->cost->resident_bytes, false);
	put_plain(w, "sojourn_observer_map_bytes", GAUGE, "Memory of its BPF maps.",
		  run->cost->map_bytes, false);
}

char *metrics_text(struct metrics *metrics, const struct run *run, enum metrics_format format)
{
	char *text = NULL;
	size_t size;
	struct writer w = {.file = open_memstream(&text, &size), .format = format};

	if (!w.file)
		return NULL;
	put_info(&w, run);
	for (size_t i = 0; i < ARRAY_SIZE(service_metrics); i++)
		put_metric(&w, run, &service_metrics[i]);
	put_kinds(&w, run, "sojourn_connections_closed", "how", "Connections that ended.",
		  run_close_names, RUN_CLOSE_COUNT, get_closes);
	put_kinds(&w, run, "sojourn_lost", "what",
		  "What could not be seen or enters no stage; see docs/run-document.md.",
		  run_loss_names, RUN_LOSS_COUNT, get_losses);
	put_stages(&w, metrics, run);
	put_findings(&w, run);
	put_cost(&w, run);
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", w.file);
	if (fclose(w.file)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- which format ---- */

/* q of "type/subtype; version=…; q=0.5", in thousandths. */
static unsigned int quality_of(const char *item, size_t length)
{
	const char *q = memmem(item, length, "q=", 2);
	double value = q ? strtod(q + 2, NULL) : 1;

	return value > 0 && value <= 1 ? (unsigned int)(value * 1000) : 0;
}

enum metrics_format metrics_choose(const char *accept)
{
	static const char open[] = "application/openmetrics-text", plain[] = "text/plain";
	unsigned int open_quality = 0, plain_quality = 0;

	for (; accept && *accept; accept += *accept == ',') {
		size_t length = strcspn(accept, ",");
		const char *item = accept + strspn(accept, " \t");

		if (!strncasecmp(item, open, strlen(open)))
			open_quality = quality_of(accept, length);
		else if (!strncasecmp(item, plain, strlen(plain)))
			plain_quality = quality_of(accept, length);
		accept += length;
	}
	return open_quality && open_quality >= plain_quality ? METRICS_OPENMETRICS
							     : METRICS_PROMETHEUS;
}
