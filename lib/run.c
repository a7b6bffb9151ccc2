/* SPDX-License-Identifier: MIT */
/*
 * The run document in memory: made, freed and subtracted. Neighbours: run_merge*.c (adds),
 * run_write.c and run_read.c (JSON).
 */
#include "sojourn/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "run_finding.h"
#include "run_samples.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"
#include "sojourn/sweep.h"

/* RFC 3339 in UTC with milliseconds; NULL without memory. */
char *run_format_time(uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	char date[32], *text;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	if (asprintf(&text, "%s.%03uZ", date,
		     (unsigned int)(wall_ns % NSEC_PER_SEC / NSEC_PER_MSEC)) < 0)
		return NULL;
	return text;
}

/* Reads what run_format_time() writes. */
int run_parse_time(const char *text, uint64_t *ret_wall_ns)
{
	unsigned int milliseconds;
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int end = 0;

	if (!rest || sscanf(rest, ".%3uZ%n", &milliseconds, &end) != 1 || !end || rest[end])
		return -EINVAL;
	*ret_wall_ns = (uint64_t)timegm(&tm) * NSEC_PER_SEC + milliseconds * NSEC_PER_MSEC;
	return 0;
}

static void free_strings(char **strings)
{
	for (char **string = strings; string && *string; string++)
		free(*string);
	free(strings);
}

static char **copy_strings(char **strings)
{
	size_t count = 0;
	char **copy;

	while (strings[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		copy[i] = strdup(strings[i]);
		if (!copy[i]) {
			free_strings(copy);
			return NULL;
		}
	}
	return copy;
}

struct run *run_new(const char *program, char **command)
{
	autorun struct run *run = calloc(1, sizeof(*run));
	struct utsname machine;

	if (!run)
		return NULL;
	uname(&machine);
	run->host = strdup(machine.nodename);
	run->kernel = strdup(machine.release);
	run->started_at = run_format_time(clock_wall_ns());
	if (asprintf(&run->tool, "%s %s", program, SOJOURN_VERSION) < 0)
		run->tool = NULL;
	if (!run->host || !run->kernel || !run->started_at || !run->tool)
		return NULL;
	if (command) {
		run->command = copy_strings(command);
		if (!run->command)
			return NULL;
	}
	return TAKE_PTR(run);
}

static void free_stages(struct run_stage *stages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(stages[i].source);
		free(stages[i].reason);
	}
}

static void free_services(struct run_service *services, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(services[i].host);
		free_stages(services[i].stages, STAGE_COUNT);
		free_stages(services[i].cpu, RUN_CPU_COUNT);
		free(services[i].processes);
		run_samples_free(services[i].samples);
		run_series_free(services[i].series);
	}
	free(services);
}

static void free_cost(struct run_cost *cost)
{
	if (!cost)
		return;
	free(cost->programs);
	free(cost);
}

void run_row_list_clear(struct run_row_list *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		free(rows->list[i].name);
		free(rows->list[i].target);
		free(rows->list[i].method);
	}
	free(rows->list);
	*rows = (struct run_row_list){0};
}

static void free_driver(struct run_driver *driver)
{
	if (!driver)
		return;
	free(driver->host);
	free(driver->target);
	free(driver->method);
	free(driver->arrival);
	for (size_t i = 0; i < driver->failure_count; i++)
		free(driver->failures[i].explanation);
	free(driver->failures);
	free(driver->intervals);
	for (size_t i = 0; i < driver->part_count; i++) {
		free(driver->parts[i].host);
		free(driver->parts[i].target);
	}
	free(driver->parts);
	free(driver->scenario);
	for (size_t i = 0; i < RUN_ROWS_COUNT; i++)
		run_row_list_clear(&driver->rows[i]);
	if (driver->limited) {
		free(driver->limited->by);
		free(driver->limited->why);
	}
	free(driver->limited);
	free(driver->unsampled);
	free(driver->observer_error);
	run_samples_free(driver->samples);
	free(driver);
}

void run_joined_free(struct run_joined *joined)
{
	if (!joined)
		return;
	for (size_t i = 0; i < joined->step_count; i++)
		free(joined->steps[i].name);
	free(joined->steps);
	free_stages(joined->stages, STAGE_COUNT);
	free(joined->reason);
	free(joined->tail);
	free(joined->slowest);
	free(joined);
}

void run_free(struct run *run)
{
	if (!run)
		return;
	free(run->host);
	free(run->kernel);
	free(run->connections_in);
	free(run->tool);
	free(run->started_at);
	free_strings(run->command);
	free_services(run->services, run->service_count);
	free_cost(run->cost);
	free_driver(run->driver);
	run_joined_free(run->joined);
	run_sweep_free(run->sweep);
	run_findings_free(run->findings, run->finding_count);
	free_strings(run->not_seen);
	free(run);
}

/* @list with a zeroed element appended to its @count; NULL without memory, then it is as before. */
static void *grow(void *list, size_t count, size_t size)
{
	char *grown = reallocarray(list, count + 1, size);

	if (grown)
		memset(grown + size * count, 0, size);
	return grown;
}

struct run_service *run_add_service(struct run *run)
{
	struct run_service *services = grow(run->services, run->service_count, sizeof(*services));

	if (!services)
		return NULL;
	run->services = services;
	return &services[run->service_count++];
}

struct run_process *run_add_process(struct run_service *service)
{
	struct run_process *processes =
		grow(service->processes, service->process_count, sizeof(*processes));

	if (!processes)
		return NULL;
	service->processes = processes;
	return &processes[service->process_count++];
}

/* Counters only grow; two readings that say otherwise were of different things: 0, not 2^64. */
static void subtract_count(uint64_t *count, uint64_t earlier)
{
	*count = *count > earlier ? *count - earlier : 0;
}

static void subtract_counts(uint64_t *counts, const uint64_t *earlier, size_t count)
{
	for (size_t i = 0; i < count; i++)
		subtract_count(&counts[i], earlier[i]);
}

/* A count that was not known at the beginning says nothing about the time since. */
static void subtract_number(struct run_number *number, const struct run_number *earlier)
{
	if (number->known && earlier->known)
		subtract_count(&number->value, earlier->value);
	else
		*number = (struct run_number){0};
}

/*
 * A reading keeps its first arrival for as long as the observation lasts. If that was before the
 * period, the period's own first arrival is not known.
 */
static void subtract_messages(struct run_service *service, const struct run_service *earlier)
{
	if (service->last_message_ns == earlier->last_message_ns)
		service->first_message_ns = service->last_message_ns = 0;
	else if (earlier->first_message_ns && service->first_message_ns <= earlier->last_message_ns)
		service->first_message_ns = 0;
}

static void subtract_stages(struct run_stage *stages, const struct run_stage *earlier, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (stages[i].measured && earlier[i].measured)
			histogram_subtract(&stages[i].histogram, &earlier[i].histogram);
}

static void subtract_service(struct run_service *service, const struct run_service *earlier)
{
	subtract_count(&service->accepted, earlier->accepted);
	subtract_count(&service->exchanges, earlier->exchanges);
	subtract_count(&service->bytes_in, earlier->bytes_in);
	subtract_count(&service->bytes_out, earlier->bytes_out);
	subtract_counts(service->closes, earlier->closes, RUN_CLOSE_COUNT);
	subtract_counts(service->losses, earlier->losses, RUN_LOSS_COUNT);
	subtract_messages(service, earlier);
	subtract_count(&service->accept_delayed, earlier->accept_delayed);
	subtract_count(&service->accept_delay_ns, earlier->accept_delay_ns);
	subtract_count(&service->transmit_followed, earlier->transmit_followed);
	subtract_count(&service->retransmits, earlier->retransmits);
	subtract_count(&service->time_wait_created, earlier->time_wait_created);
	subtract_number(&service->accept_queue.overflows, &earlier->accept_queue.overflows);
	subtract_stages(service->stages, earlier->stages, STAGE_COUNT);
	subtract_stages(service->cpu, earlier->cpu, RUN_CPU_COUNT);
	if (service->samples && earlier->samples)
		run_samples_subtract(service->samples, earlier->samples);
}

static void subtract_cost(struct run_cost *cost, const struct run_cost *earlier)
{
	subtract_count(&cost->cpu_ns, earlier->cpu_ns);
	for (size_t i = 0; i < cost->program_count; i++) {
		struct run_program *program = &cost->programs[i];
		const struct run_program *before = run_find_program(earlier, program->name);

		if (!before)
			continue;
		subtract_number(&program->runs, &before->runs);
		subtract_number(&program->run_ns, &before->run_ns);
		subtract_count(&program->recursion_misses, before->recursion_misses);
	}
}

/* The period begins where @earlier ends. Without memory the label stays that of the whole. */
static void subtract_time(struct run *run, const struct run *earlier)
{
	uint64_t wall_ns;
	char *text;

	subtract_count(&run->duration_ns, earlier->duration_ns);
	if (!earlier->started_at || run_parse_time(earlier->started_at, &wall_ns))
		return;
	text = run_format_time(wall_ns + earlier->duration_ns);
	if (!text)
		return;
	free(run->started_at);
	run->started_at = text;
}

void run_subtract(struct run *run, const struct run *earlier)
{
	subtract_time(run, earlier);
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *before = run_find_service(earlier, &run->services[i]);

		if (before)
			subtract_service(&run->services[i], before);
	}
	if (run->cost && earlier->cost)
		subtract_cost(run->cost, earlier->cost);
	subtract_count(&run->services_dropped, earlier->services_dropped);
}

static uint64_t sum_errors(const uint64_t errors[RUN_ERROR_COUNT])
{
	uint64_t sum = 0;

	for (size_t i = 0; i < RUN_ERROR_COUNT; i++)
		sum += errors[i];
	return sum;
}

uint64_t run_row_errors(const struct run_row *row)
{
	return sum_errors(row->errors);
}

uint64_t run_driver_errors(const struct run_driver *driver)
{
	return sum_errors(driver->errors);
}

const struct histogram *run_driver_latency(const struct run_driver *driver)
{
	return driver->rate ? &driver->response_time : &driver->round_trip;
}
