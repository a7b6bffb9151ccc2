// SPDX-License-Identifier: MIT
/*
 * Figures as comma-separated values (RFC 4180). Of the driver: a row per interval, per step of a
 * sweep, and per kind of latency of the run, its steps, targets and statuses. Of the observer: a row
 * per route of each service. Times are in ns, except the first columns, which spreadsheets use as an
 * axis. Unknown values are empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/parts.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/outcome.h"
#include "sojourn/report.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"

struct row {
	const char *part;    /* "interval", "overall", "step" */
	const char *latency; /* source of the percentiles */
	const uint64_t *load;
	const uint64_t *begin_ns;
	uint64_t duration_ns;
	uint64_t requests;
	uint64_t drained; /* of these: excluded from the rate */
	uint64_t errors;
	bool no_errors; /* they are not known */
	const uint64_t *connects, *bytes_in, *bytes_out;
	const struct histogram *h;
	const char *name; /* of the step, target or status; NULL: none */
	const struct run_number *ports;
	const struct run_number *good; /* NULL: not known */
	const char *service;	       /* of the route; NULL: none */
};

static const struct {
	const char *name;
	double quantile;
} quantiles[] = {
	{"p50_ns", 0.5},    {"p90_ns", 0.9},	  {"p99_ns", 0.99},
	{"p999_ns", 0.999}, {"p9999_ns", 0.9999}, {"p99999_ns", 0.99999},
};

static void print_number(const uint64_t *number, FILE *file)
{
	fputc(',', file);
	if (number)
		fprintf(file, "%" PRIu64, *number);
}

/* Print to the nanosecond. */
static void print_seconds(const uint64_t *ns, FILE *file)
{
	fputc(',', file);
	if (ns)
		fprintf(file, "%" PRIu64 ".%09" PRIu64, (uint64_t)(*ns / NSEC_PER_SEC),
			(uint64_t)(*ns % NSEC_PER_SEC));
}

static void print_latency(const struct row *row, FILE *file)
{
	fprintf(file, ",%s,%" PRIu64, row->latency, row->h->count);
	if (!row->h->count) {
		for (size_t i = 0; i < ARRAY_SIZE(quantiles) + 3; i++)
			fputc(',', file);
		return;
	}
	fprintf(file, ",%.0f,%.0f", histogram_mean(row->h), histogram_stddev(row->h));
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		fprintf(file, ",%" PRIu64, histogram_quantile(row->h, quantiles[i].quantile));
	fprintf(file, ",%" PRIu64, row->h->max);
}

/* Quote if needed, and double quotes inside. */
static void print_text(const char *text, FILE *file)
{
	bool quoted = text && strpbrk(text, ",\"\r\n");

	fputs(quoted ? ",\"" : ",", file);
	for (; text && *text; text++)
		fprintf(file, *text == '"' ? "\"%c" : "%c", *text);
	if (quoted)
		fputc('"', file);
}

static void print_row(const struct row *row, FILE *file)
{
	fputs(row->part, file);
	print_number(row->load, file);
	print_seconds(row->begin_ns, file);
	print_seconds(&row->duration_ns, file);
	print_number(&row->requests, file);
	fputc(',', file);
	if (row->duration_ns)
		fprintf(file, "%.3f",
			(double)run_timely(row->requests, row->drained) * (double)NSEC_PER_SEC /
				(double)row->duration_ns);
	print_number(row->no_errors ? NULL : &row->errors, file);
	print_number(row->connects, file);
	print_number(row->bytes_in, file);
	print_number(row->bytes_out, file);
	print_latency(row, file);
	print_text(row->name, file);
	print_number(row->ports && row->ports->known ? &row->ports->value : NULL, file);
	print_number(row->good && row->good->known ? &row->good->value : NULL, file);
	print_text(row->service, file);
	fputs("\r\n", file);
}

static void print_intervals(const struct run_driver *driver, FILE *file)
{
	for (size_t i = 0; i < driver->interval_count; i++) {
		const struct run_interval *interval = &driver->intervals[i];

		print_row(
			&(struct row){
				.part = "interval",
				.latency = driver->rate ? "response_time" : "round_trip",
				.begin_ns = &interval->begin_ns,
				.duration_ns = interval->duration_ns,
				.requests = interval->requests,
				.errors = interval->errors,
				.connects = &interval->connects,
				.bytes_in = &interval->bytes_in,
				.bytes_out = &interval->bytes_out,
				.h = &interval->latency,
				.ports = &interval->ports,
			},
			file);
	}
}

static void print_overall(const struct run_driver *driver, FILE *file)
{
	const struct run_number good = {true, run_driver_outcome(driver).good};
	const struct {
		const char *name;
		const struct histogram *h;
	} kinds[] = {
		{"response_time", &driver->response_time},
		{"round_trip", &driver->round_trip},
		{"first_byte", &driver->first_byte},
		{"connect", &driver->connect},
		{"tls", &driver->tls},
		{"schedule_delay", &driver->schedule_delay},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kinds[i].h->count && kinds[i].h != &driver->round_trip)
			continue;
		print_row(
			&(struct row){
				.part = "overall",
				.latency = kinds[i].name,
				.duration_ns = driver->duration_ns,
				.requests = driver->requests,
				.drained = driver->drained,
				.errors = run_driver_errors(driver),
				.connects = &driver->connects,
				.bytes_in = &driver->bytes_in,
				.bytes_out = &driver->bytes_out,
				.h = kinds[i].h,
				.good = &good,
			},
			file);
	}
}

/* Print a step, a target or a status. */
static void print_part(const struct run_driver *driver, const char *part, const char *latency,
		       const struct run_row *row, const struct histogram *h, FILE *file)
{
	const struct run_number good = {true, run_row_outcome(row).good};

	print_row(
		&(struct row){
			.part = part,
			.latency = latency,
			.duration_ns = driver->duration_ns,
			.requests = row->requests,
			.drained = row->drained,
			.errors = run_row_errors(row),
			.bytes_in = &row->bytes_in,
			.bytes_out = &row->bytes_out,
			.h = h,
			.name = row->name,
			.good = &good,
		},
		file);
}

static void print_parts(const struct run_driver *driver, enum run_rows_by by, FILE *file)
{
	const struct run_row_list *rows = &driver->rows[by];

	for (size_t i = 0; i < rows->count; i++) {
		const struct run_row *row = &rows->list[i];

		if (row->response_time.count)
			print_part(driver, run_row_names[by], "response_time", row,
				   &row->response_time, file);
		print_part(driver, run_row_names[by], "round_trip", row, &row->round_trip, file);
	}
}

/* Print a mean only: joined exchanges keep sums. */
static void print_mean(const struct run_joined_step *step, const char *of, uint64_t sum_ns,
		       FILE *file)
{
	fprintf(file, "joined,,,,%" PRIu64 ",,,,,,%s,%" PRIu64 ",%.0f,", step->count, of,
		step->count, (double)sum_ns / (double)step->count);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles) + 1; i++)
		fputc(',', file);
	print_text(step->name, file);
	fputs(",,,\r\n", file);
}

/* wait, round_trip = network + stages - overhang; running, runnable and blocked divide service. */
static void print_joined(const struct run_joined_step *step, FILE *file)
{
	const struct run_parts *sum = &step->sum;
	const struct {
		const char *name;
		struct run_number ns;
	} parts[] = {
		{"wait", {sum->wait_ns != 0, sum->wait_ns}},
		{"round_trip", {true, sum->round_trip_ns}},
		{"network", {true, sum->network_ns}},
		{"overhang", {sum->overhang_ns != 0, sum->overhang_ns}},
		{"running", sum->running_ns},
		{"runnable", sum->runnable_ns},
		{"blocked", sum->blocked_ns},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].ns.known)
			print_mean(step, parts[i].name, parts[i].ns.value, file);
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		if (sum->stages[i].known && i != STAGE_ACK)
			print_mean(step, run_stage_names[i], sum->stages[i].value, file);
}

/* Print a step, and its counts for each of several targets. */
static void print_step(const char *const parts[2], const char *latency,
		       const struct run_sweep_step *step, FILE *file)
{
	struct row row = {
		.part = parts[0],
		.latency = latency,
		.load = &step->load,
		.duration_ns = step->duration_ns,
		.requests = step->requests,
		.drained = step->drained,
		.errors = step->errors,
		.h = &step->latency,
		.good = &step->good,
	};

	print_row(&row, file);
	row.part = parts[1];
	for (size_t i = 0; i < step->target_count; i++) {
		row.requests = step->targets[i].requests;
		row.drained = step->targets[i].drained;
		row.errors = step->targets[i].errors;
		row.good = &step->targets[i].good;
		row.h = &step->targets[i].latency;
		row.name = step->targets[i].name;
		print_row(&row, file);
	}
}

static void print_sweep(const struct run_sweep *sweep, FILE *file)
{
	static const char *const of_step[] = {"step", "step_target"};
	static const char *const of_three[] = {"three_quarters", "three_quarters_target"};
	bool rated = sweep->over && !strcmp(sweep->over, "rate");

	for (size_t i = 0; i < sweep->step_count; i++)
		print_step(of_step, rated ? "response_time" : "round_trip", &sweep->steps[i], file);
	if (sweep->three_quarters)
		print_step(of_three, "response_time", sweep->three_quarters, file);
}

/* Print a route, or a command. A route's errors are not known if the status of a response is not. */
static void print_route(const struct run *run, const struct run_service *service,
			const struct run_route *route, FILE *file)
{
	const uint64_t errors =
		route->errors.known ? route->errors.value : route->status[4] + route->status[5];
	char name[REPORT_NAME];

	print_row(
		&(struct row){
			.part = "route",
			.latency = "service",
			.duration_ns = report_span(run, service),
			.requests = route->count,
			.errors = errors,
			.no_errors = route->status[0] != 0,
			.h = &route->service,
			.name = route->route,
			.service = report_name(service, name),
		},
		file);
}

static bool has_routes(const struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].routes.count)
			return true;
	return false;
}

static void print_routes(const struct run *run, FILE *file)
{
	for (size_t i = 0; i < run->service_count; i++)
		for (size_t k = 0; k < run->services[i].routes.count; k++)
			print_route(run, &run->services[i], &run->services[i].routes.list[k], file);
}

static int print_all(const void *what, FILE *file)
{
	const struct run *run = what;

	fputs("part,load,begin_s,duration_s,requests,requests_per_s,errors,connects,bytes_in,"
	      "bytes_out,latency,latency_count,mean_ns,stddev_ns",
	      file);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		fprintf(file, ",%s", quantiles[i].name);
	fputs(",max_ns,name,ports,good,service\r\n", file);
	if (run->driver) {
		print_intervals(run->driver, file);
		print_overall(run->driver, file);
		for (enum run_rows_by by = 0; by < RUN_ROWS_COUNT; by++)
			print_parts(run->driver, by, file);
	}
	for (size_t i = 0; run->joined && i < run->joined->step_count; i++)
		if (run->joined->steps[i].count)
			print_joined(&run->joined->steps[i], file);
	if (run->sweep)
		print_sweep(run->sweep, file);
	print_routes(run, file);
	return ferror(file) ? -EIO : 0;
}

/* Print a line and its end, which may be that of RFC 4180. Return what follows it. */
static char *put_line(char *line, FILE *file)
{
	size_t length = strcspn(line, "\n"), shown = length;
	bool is_last = !line[length];

	if (!is_last && length && line[length - 1] == '\r')
		shown--;
	line[shown] = '\0';
	text_make_printable(line, '?');
	fputs(line, file);
	if (!is_last)
		fputs(shown < length ? "\r\n" : "\n", file);
	return line + length + !is_last;
}

/*
 * Print what @print writes to its file. Foreign text, as in names of processes, could hold controls of a terminal: replace
 * them by '?'. -EIO, -ENOMEM, or what @print returns.
 */
static int print_plain(int (*print)(const void *what, FILE *file), const void *what, FILE *file)
{
	autofree char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int r = memory ? print(what, memory) : -errno;

	if (memory && fclose(memory) && !r)
		r = -errno;
	for (char *line = text; !r && line && *line;)
		line = put_line(line, file);
	return !r && ferror(file) ? -EIO : r;
}

int report_csv(const struct run *run, FILE *file)
{
	if (!run->driver && !run->sweep && !has_routes(run))
		return -ENODATA;
	return print_plain(print_all, run, file);
}
