// SPDX-License-Identifier: MIT
/* Interval lines; see term.h. The summary at the end is lib's report. */
#include "term.h"

#include <errno.h>
#include <string.h>

#include "model/interval.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

#define HEADER_EVERY 20

struct sink_term {
	struct sink sink;
	const struct snapshot_source *source;
	FILE *file;
	struct run *previous;
	unsigned int lines;
};

static void print_header(struct sink_term *sink)
{
	if (sink->lines++ % HEADER_EVERY)
		return;
	fprintf(sink->file, "%8s %-5s %8s %8s  %-17s  %-17s %6s %9s\n", "", "", "", "",
		"socket queue", "service", "TIME_", "accept");
	fprintf(sink->file, "%8s %-5s %8s %8s  %8s %8s  %8s %8s %6s %9s %11s %5s\n", "time", "port",
		"req/s", "accept/s", "mean", "p99", "mean", "p99", "WAIT", "queue", "fds", "lost");
}

/* Numbers that may be missing are shown as "-". */
static void format_pair(const struct run_number *used, const struct run_number *limit, char *buffer,
			size_t size)
{
	if (!used->known)
		snprintf(buffer, size, "-");
	else if (!limit->known)
		snprintf(buffer, size, "%llu", (unsigned long long)used->value);
	else
		snprintf(buffer, size, "%llu/%llu", (unsigned long long)used->value,
			 (unsigned long long)limit->value);
}

static void print_stage(FILE *file, const struct run_stage *stage)
{
	const struct histogram *h = &stage->histogram;
	const char *none = stage->measured ? "-" : "unknown";
	bool timed = stage->measured && h->count;
	const char *mean = timed ? as_time(histogram_mean(h)) : none;
	const char *p99 = timed ? as_time((double)histogram_quantile(h, 0.99)) : none;

	/* "µ" takes two bytes and one column. */
	fprintf(file, " %*s %*s ", 8 + !!strstr(mean, "µ"), mean, 8 + !!strstr(p99, "µ"), p99);
}

static void print_service(struct sink_term *sink, const struct run *run,
			  const struct run_service *service)
{
	double seconds = (double)run->duration_ns / (double)NSEC_PER_SEC;
	char clock[16], queue[48], fds[48], waiting[24];
	const struct run_process *worst = run_fullest(service);
	const struct run_number none = {};
	time_t now = time(NULL);
	struct tm tm;

	print_header(sink);
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	format_pair(&service->accept_queue.depth, &service->accept_queue.limit, queue,
		    sizeof(queue));
	format_pair(&service->time_wait, &none, waiting, sizeof(waiting));
	format_pair(worst ? &worst->open_fds : &none, worst ? &worst->fd_limit : &none, fds,
		    sizeof(fds));
	fprintf(sink->file, "%8s %-5u %8.0f %8.0f ", clock, service->port,
		seconds > 0 ? (double)service->exchanges / seconds : 0,
		seconds > 0 ? (double)service->accepted / seconds : 0);
	print_stage(sink->file, &service->stages[STAGE_SOCKET_QUEUE]);
	print_stage(sink->file, &service->stages[STAGE_SERVICE]);
	fprintf(sink->file, "%6s %9s %11s %5llu\n", waiting, queue, fds,
		(unsigned long long)report_lost(run, service));
}

/* Print the events since the last call, or since the sink was opened. */
static int interval(struct sink *base)
{
	struct sink_term *sink = (struct sink_term *)base;
	autorun struct run *now = NULL, *between = NULL;
	int r = sink->source->brief(sink->source->context, &now);

	if (!r)
		r = interval_between(now, sink->previous, &between);
	if (r < 0)
		return r;
	for (size_t i = 0; between && i < between->service_count; i++)
		print_service(sink, between, &between->services[i]);
	if (fflush(sink->file))
		return -errno;
	run_free(sink->previous);
	sink->previous = TAKE_PTR(now);
	return 0;
}

static void close_sink(struct sink *base)
{
	run_free(((struct sink_term *)base)->previous);
	free(base);
}

static const struct sink_operations operations = {.interval = interval, .close = close_sink};

int sink_term_open(const struct snapshot_source *source, FILE *file, struct sink **ret_sink)
{
	struct sink_term *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
	*sink = (struct sink_term){.sink.operations = &operations, .source = source, .file = file};
	r = source->brief(source->context, &sink->previous);
	if (r < 0)
		sink_close(&sink->sink);
	else
		*ret_sink = &sink->sink;
	return r;
}
