// SPDX-License-Identifier: MIT
/* The list's columns and the numbers in them; see view.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view.h"
#include "sojourn/units.h"

/* ---- text ---- */

char *live_format_port(const struct run_service *service, char *buffer, size_t size)
{
	snprintf(buffer, size, "%u%s", service->port, strcmp(service->protocol, "udp") ? "" : "u");
	return buffer;
}

/* A process may call itself anything, escape sequences for our terminal too. */
static void copy_printable(const char *text, size_t length, char *buffer, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < length && text[i] && used + 1 < size; i++)
		buffer[used++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	buffer[used] = 0;
}

char *live_format_process(const struct run_service *service, char *buffer, size_t size)
{
	const struct run_process *first = service->processes;
	char comm[sizeof(first->comm) + 1];

	if (!service->process_count) {
		snprintf(buffer, size, "-");
		return buffer;
	}
	copy_printable(first->comm, sizeof(first->comm), comm, sizeof(comm));
	if (service->process_count > 1)
		snprintf(buffer, size, "%.*s+%zu", 6, comm, service->process_count - 1);
	else
		snprintf(buffer, size, "%s", comm);
	return buffer;
}

char *live_format_count(double value, char *buffer, size_t size)
{
	if (isnan(value))
		snprintf(buffer, size, "-");
	else if (value > 0 && value < 9.95)
		snprintf(buffer, size, value == floor(value) ? "%.0f" : "%.1f", value);
	else if (value < 99999.5)
		snprintf(buffer, size, "%.0f", value);
	else if (value < 999.5e3)
		snprintf(buffer, size, "%.0fk", value / 1e3);
	else if (value < 99.95e6)
		snprintf(buffer, size, "%.1fM", value / 1e6);
	else
		snprintf(buffer, size, "%.0fM", value / 1e6);
	return buffer;
}

char *live_format_time(double ns, char *buffer, size_t size)
{
	if (!isnan(ns))
		return units_format_time(ns, buffer, size);
	snprintf(buffer, size, "-");
	return buffer;
}

/* ---- numbers ---- */

static double known(struct run_number number)
{
	return number.known ? (double)number.value : NAN;
}

static double rate(uint64_t count, double seconds)
{
	return seconds > 0 ? (double)count / seconds : NAN;
}

static double quantile(const struct live_row *row, enum stage stage, double q)
{
	const struct run_stage *found = &row->service->stages[stage];

	if (!found->measured || !found->histogram.count)
		return NAN;
	return (double)histogram_quantile(&found->histogram, q);
}

static double value_port(const struct live_row *row)
{
	return row->service->port;
}

static double value_requests(const struct live_row *row)
{
	return rate(row->service->exchanges, row->seconds);
}

static double value_accepts(const struct live_row *row)
{
	return strcmp(row->service->protocol, "udp") ? rate(row->service->accepted, row->seconds)
						     : NAN;
}

/* Print "-" without requests, and "unknown" if the stage is not measured. */
static char *format_stage(const struct live_row *row, enum stage stage, double q, char *buffer,
			  size_t size)
{
	if (row->service->stages[stage].measured)
		return live_format_time(quantile(row, stage, q), buffer, size);
	snprintf(buffer, size, "unknown");
	return buffer;
}

#define OF_STAGE(name, stage, q)                                                          \
	static double value_##name(const struct live_row *row)                            \
	{                                                                                 \
		return quantile(row, stage, q);                                           \
	}                                                                                 \
	static char *format_##name(const struct live_row *row, char *buffer, size_t size) \
	{                                                                                 \
		return format_stage(row, stage, q, buffer, size);                         \
	}

OF_STAGE(queue_p50, STAGE_SOCKET_QUEUE, 0.5)
OF_STAGE(queue_p99, STAGE_SOCKET_QUEUE, 0.99)
OF_STAGE(service_p50, STAGE_SERVICE, 0.5)
OF_STAGE(service_p99, STAGE_SERVICE, 0.99)

static double value_open(const struct live_row *row)
{
	return row->open.known ? (double)row->open.count : NAN;
}

static double value_oldest(const struct live_row *row)
{
	return row->open.known && row->open.oldest_ns ? (double)row->open.oldest_ns : NAN;
}

static double value_accept_queue(const struct live_row *row)
{
	return known(row->service->accept_queue.depth);
}

static double value_time_wait(const struct live_row *row)
{
	return known(row->service->time_wait);
}

static double value_fds(const struct live_row *row)
{
	const struct run_process *fullest = run_fullest(row->service);

	return fullest ? known(fullest->open_fds) : NAN;
}

/* Return the percentage of @limit that @used leaves. */
static double left(double used, double limit)
{
	return limit > 0 ? fmax(0, 100 * (1 - used / limit)) : NAN;
}

static double value_headroom(const struct live_row *row)
{
	const struct run_accept_queue *queue = &row->service->accept_queue;
	const struct run_process *fullest = run_fullest(row->service);
	double accept = left(known(queue->depth), known(queue->limit));
	double fds = fullest ? left(known(fullest->open_fds), known(fullest->fd_limit)) : NAN;

	return fmin(accept, fds); /* of a number and NAN: the number */
}

bool live_waits(const struct run_service *service)
{
	const struct run_stage *queue = &service->stages[STAGE_SOCKET_QUEUE];
	const struct run_stage *own = &service->stages[STAGE_SERVICE];
	uint64_t waiting_ns = histogram_quantile(&queue->histogram, 0.99);

	return queue->measured && own->measured && waiting_ns > LIVE_WAIT_FLOOR_NS &&
	       waiting_ns > histogram_quantile(&own->histogram, 0.99);
}

double live_series_value(const struct live_row *row, enum live_series series)
{
	static double (*const values[LIVE_SERIES])(const struct live_row *row) = {
		[LIVE_REQUESTS] = value_requests,
		[LIVE_ACCEPTS] = value_accepts,
		[LIVE_QUEUE_P99] = value_queue_p99,
		[LIVE_SERVICE_P99] = value_service_p99,
		[LIVE_ACCEPT_QUEUE] = value_accept_queue,
		[LIVE_TIME_WAIT] = value_time_wait,
		[LIVE_FDS] = value_fds,
	};

	return values[series](row);
}

/* ---- columns ---- */

static char *format_port(const struct live_row *row, char *buffer, size_t size)
{
	return live_format_port(row->service, buffer, size);
}

static char *format_process(const struct live_row *row, char *buffer, size_t size)
{
	return live_format_process(row->service, buffer, size);
}

static char *format_oldest(const struct live_row *row, char *buffer, size_t size)
{
	return live_format_time(value_oldest(row), buffer, size);
}

static char *format_headroom(const struct live_row *row, char *buffer, size_t size)
{
	double percent = value_headroom(row);

	snprintf(buffer, size, isnan(percent) ? "-" : "%.0f%%", percent);
	return buffer;
}

/*
 * At 80 columns, a mark and these widths with a blank between them fill the line exactly. On a narrower screen columns
 * are left out, from the right, but the times stay: from 56 columns on they have room.
 */
/* clang-format off */
const struct live_column live_columns[] = {
	{NULL, "PORT", 6, true, 0, value_port, format_port,
	 "local port, u: UDP"},
	{NULL, "PROCESS", 9, true, 0, NULL, format_process,
	 "who serves it, and how many processes more"},
	{NULL, "REQ/S", 6, false, 0, value_requests, NULL,
	 "requests answered per second"},
	{NULL, "ACC/S", 5, false, 62, value_accepts, NULL,
	 "connections established per second"},
	{"SOCKET QUEUE", "p50", 7, false, 0, value_queue_p50, format_queue_p50,
	 "request readable until read: waiting at the server, median"},
	{NULL, "p99", 7, false, 0, value_queue_p99, format_queue_p99,
	 "the same, 99th percentile"},
	{"SERVICE", "p50", 7, false, 0, value_service_p50, format_service_p50,
	 "last read until first write: the server's own time, median"},
	{NULL, "p99", 7, false, 0, value_service_p99, format_service_p99,
	 "the same, 99th percentile"},
	{"OPEN", "now", 5, false, 94, value_open, NULL,
	 "requests that wait for an answer now, read or unread"},
	{NULL, "oldest", 7, false, 94, value_oldest, format_oldest,
	 "for how long the oldest of them has waited"},
	{"ACCEPT", "QUEUE", 6, false, 69, value_accept_queue, NULL,
	 "connections that wait for accept() now"},
	{"TIME", "WAIT", 5, false, 75, value_time_wait, NULL,
	 "TIME_WAIT sockets on the port now"},
	{NULL, "FDS", 4, false, 80, value_fds, NULL,
	 "descriptors of the process nearest to its limit"},
	{NULL, "ROOM", 4, false, 99, value_headroom, format_headroom,
	 "what is left of accept queue and descriptors, the lower"},
};
/* clang-format on */
const size_t live_column_count = ARRAY_SIZE(live_columns);

char *live_column_format(const struct live_column *column, const struct live_row *row, char *buffer,
			 size_t size)
{
	if (column->format)
		return column->format(row, buffer, size);
	return live_format_count(column->value(row), buffer, size);
}

/* ±2 if one of them is not known, so that the caller can distinguish it. */
static int compare_values(double a, double b, bool ascending)
{
	if (isnan(a) || isnan(b))
		return 2 * (isnan(a) - isnan(b));
	return ascending ? (a > b) - (a < b) : (a < b) - (a > b);
}

int live_column_compare(const struct live_column *column, const struct live_row *a,
			const struct live_row *b)
{
	int order;

	if (column->value)
		return compare_values(column->value(a), column->value(b), column->left);
	order = strcasecmp(column->format(a, UNITS_ROOM, UNITS_TEXT),
			   column->format(b, UNITS_ROOM, UNITS_TEXT));
	return (order > 0) - (order < 0);
}
