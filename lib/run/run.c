// SPDX-License-Identifier: MIT
/*
 * The run document in memory: create, append, subtract, free. Neighbours: fields.c (by the tables
 * of members), merge.c (merging documents), json/write.c and json/read.c (JSON).
 */
#include "sojourn/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "members.h"
#include "samples.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/run_sum.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"

/* Format RFC 3339 in UTC with milliseconds; NULL without memory. */
char *run_format_time(uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	char date[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	return text_format("%s.%03uZ", date,
			   (unsigned int)(wall_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
}

/* Parse the format of run_format_time(). */
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
	run->tool = text_format("%s %s", program, SOJOURN_VERSION);
	if (!run->host || !run->kernel || !run->started_at || !run->tool)
		return NULL;
	if (command) {
		run->command = run_strings_copy(command);
		if (!run->command)
			return NULL;
	}
	return TAKE_PTR(run);
}

/* ---- free ---- */

void run_free(struct run *run)
{
	members_free_list(&run_document_members, run, run != NULL);
}

void run_joined_free(struct run_joined *joined)
{
	members_free_list(&run_joined_members, joined, joined != NULL);
}

void run_routes_clear(struct run_routes *routes)
{
	members_free(&run_routes_members, routes);
	*routes = (struct run_routes){};
}

void run_row_list_clear(struct run_row_list *rows)
{
	members_free_list(&run_row_members, rows->list, rows->count);
	*rows = (struct run_row_list){0};
}

void run_sweep_step_clear(struct run_sweep_step *step)
{
	members_free(&run_sweep_step_members, step);
}

uint64_t run_cost_misses(const struct run_cost *cost)
{
	uint64_t misses = 0;

	for (size_t i = 0; cost && i < cost->program_count; i++)
		misses += cost->programs[i].recursion_misses;
	return misses;
}

const struct run_process *run_fullest(const struct run_service *service)
{
	const struct run_process *worst = NULL;

	for (size_t i = 0; i < service->process_count; i++) {
		const struct run_process *p = &service->processes[i];

		if (p->open_fds.known && p->fd_limit.known && p->fd_limit.value &&
		    (!worst || p->open_fds.value * worst->fd_limit.value >
				       worst->open_fds.value * p->fd_limit.value))
			worst = p;
	}
	return worst;
}

/* ---- append ---- */

int run_make_services(struct run *run, size_t count)
{
	run->services = calloc(count ? count : 1, sizeof(*run->services));
	if (!run->services)
		return -ENOMEM;
	run->service_count = count;
	return 0;
}

int run_add_text(char ***list, const char *text)
{
	size_t count = 0;
	char **more;

	while (*list && (*list)[count])
		count++;
	more = reallocarray(*list, count + 2, sizeof(*more));
	if (!more)
		return -ENOMEM;
	*list = more;
	more[count + 1] = NULL;
	more[count] = strdup(text);
	return more[count] ? 0 : -ENOMEM;
}

int run_add_text_once(char ***list, const char *text)
{
	for (char **at = *list; at && *at; at++)
		if (!strcmp(*at, text))
			return 0;
	return run_add_text(list, text);
}

const char *run_place_name(const struct run_place *place, char buffer[static RUN_PLACE_NAME])
{
	*buffer = 0;
	if (place->pod[0])
		snprintf(buffer, RUN_PLACE_NAME, "pod %s/%s", place->pod_namespace, place->pod);
	else if (place->pod_uid[0])
		snprintf(buffer, RUN_PLACE_NAME, "pod %s", place->pod_uid);
	else if (place->container[0])
		snprintf(buffer, RUN_PLACE_NAME, "container %s", place->container);
	else if (place->container_id[0])
		snprintf(buffer, RUN_PLACE_NAME, "container %.12s", place->container_id);
	return buffer;
}

/* Cut the last "-part" if it has @least to @most characters, all of @allowed. Return whether it had. */
static bool cut_part(char *text, const char *allowed, size_t least, size_t most)
{
	char *part = strrchr(text, '-');
	size_t length = part ? strlen(part + 1) : 0;

	if (!length || part == text || part[-1] == '/' || length < least || length > most ||
	    strspn(part + 1, allowed) != length)
		return false;
	*part = '\0';
	return true;
}

const char *run_place_workload(const struct run_place *place, char buffer[static RUN_PLACE_NAME])
{
	static const char digits[] = "0123456789", random[] = "bcdfghjklmnpqrstvwxz2456789";

	if (place->pod[0])
		snprintf(buffer, RUN_PLACE_NAME, "%s/%s", place->pod_namespace, place->pod);
	else if (place->container[0] && !place->pod_uid[0])
		snprintf(buffer, RUN_PLACE_NAME, "%s", place->container);
	else
		snprintf(buffer, RUN_PLACE_NAME, "%s",
			 place->pod_uid[0]	  ? "a pod"
			 : place->container_id[0] ? "a container"
						  : "");
	if (!place->pod[0] || !cut_part(buffer, random, 5, 5))
		cut_part(buffer, digits, 1, 9);
	else
		cut_part(buffer, random, 6, 10); /* of the ReplicaSet */
	return buffer;
}

const char *run_host_of(const struct run *run, const struct run_service *service)
{
	return service->host ? service->host : run->host;
}

bool run_same_instance(const struct run_service *a, const struct run_service *b)
{
	char place[RUN_PLACE_NAME], other[RUN_PLACE_NAME];

	return text_same(a->host, b->host) &&
	       !strcmp(run_place_name(&a->place, place), run_place_name(&b->place, other));
}

/* ---- subtract and add ---- */

bool run_same_port(const struct run_service *a, const struct run_service *b)
{
	return a->netns == b->netns && a->port == b->port && !strcmp(a->protocol, b->protocol);
}

bool run_same_service(const struct run_service *a, const struct run_service *b)
{
	return a->turn == b->turn && run_same_port(a, b);
}

struct run_service *run_find_service(const struct run *run, const struct run_service *like)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (run_same_service(&run->services[i], like))
			return &run->services[i];
	return NULL;
}

double run_stage_mean(const struct run_service *service, enum stage stage)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;

	if (!service->stages[stage].measured)
		return 0;
	if (stage != STAGE_ACCEPT_QUEUE)
		return histogram_mean(&service->stages[stage].histogram);
	return timed ? (double)service->accept_delay_ns / (double)timed : 0;
}

double run_residence_mean(const struct run_service *service)
{
	double sum = 0;

	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++)
		sum += run_stage_mean(service, stage);
	return sum;
}

int run_route_compare(const void *a, const void *b)
{
	const struct run_route *one = *(const struct run_route *const *)a;
	const struct run_route *other = *(const struct run_route *const *)b;

	if (one->service.sum != other->service.sum)
		return one->service.sum < other->service.sum ? 1 : -1;
	if (one->count != other->count)
		return one->count < other->count ? 1 : -1;
	return one < other ? -1 : one > other;
}

static struct run_program *find_program(const struct run_cost *cost, const char *name)
{
	for (size_t i = 0; i < cost->program_count; i++)
		if (!strcmp(cost->programs[i].name, name))
			return &cost->programs[i];
	return NULL;
}

void run_cost_share(struct run_cost *cost, const struct run_cost *other)
{
	if (other->sharing_cpus.value > cost->sharing_cpus.value)
		cost->sharing_cpus = other->sharing_cpus;
}

int run_cost_add_programs(struct run_cost *cost, const struct run_cost *other)
{
	for (size_t i = 0; i < other->program_count; i++) {
		struct run_program *program = find_program(cost, other->programs[i].name);

		if (program) {
			members_add(&run_program_members, program, &other->programs[i]);
			continue;
		}
		program = ARRAY_APPEND(cost->programs, cost->program_count);
		if (!program)
			return -ENOMEM;
		*program = other->programs[i];
	}
	return 0;
}

void run_service_add(struct run_service *service, struct run_service *earlier)
{
	/* The observations ended responses after different pauses. */
	if (service->quiet_ns.value != earlier->quiet_ns.value)
		service->quiet_ns = (struct run_number){0};
	members_add(&run_service_members, service, earlier);
}

void run_reclaimed_add(struct run_reclaimed *sum, const struct run_reclaimed *other)
{
	sum->services += other->services;
	sum->accepted += other->accepted;
	sum->exchanges += other->exchanges;
	sum->bytes_in += other->bytes_in;
	sum->bytes_out += other->bytes_out;
}

static void take_out(uint64_t *count, uint64_t part)
{
	*count -= part < *count ? part : *count;
}

/* The sum includes what @earlier counted for services that were reclaimed since: subtract it. */
static void subtract_reclaimed(struct run *run, const struct run *earlier)
{
	for (size_t i = 0; run->reclaimed.services && i < earlier->service_count; i++) {
		const struct run_service *before = &earlier->services[i];

		if (run_find_service(run, before))
			continue;
		take_out(&run->reclaimed.accepted, before->accepted);
		take_out(&run->reclaimed.exchanges, before->exchanges);
		take_out(&run->reclaimed.bytes_in, before->bytes_in);
		take_out(&run->reclaimed.bytes_out, before->bytes_out);
	}
}

/* Let the period begin at the end of @earlier. Without memory the old start stays. */
static void subtract_time(struct run *run, const struct run *earlier)
{
	uint64_t wall_ns;
	char *text;

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
	members_subtract(&run_document_members, run, earlier);
	subtract_reclaimed(run, earlier);
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];
		const struct run_service *before = run_find_service(earlier, service);

		if (!before)
			continue;
		/*
		 * A reading keeps its first arrival for the whole observation. If that was before
		 * the period, the period's own is not known.
		 */
		if (service->last_message_ns == before->last_message_ns)
			service->first_message_ns = service->last_message_ns = 0;
		else if (before->first_message_ns &&
			 service->first_message_ns <= before->last_message_ns)
			service->first_message_ns = 0;
		members_subtract(&run_service_members, service, before);
		if (service->samples && before->samples)
			run_samples_subtract(service->samples, before->samples);
		if (service->call_samples && before->call_samples)
			run_samples_subtract(service->call_samples, before->call_samples);
		run_calls_subtract(service, before);
	}
	if (!run->cost || !earlier->cost)
		return;
	members_subtract(&run_cost_members, run->cost, earlier->cost);
	for (size_t i = 0; i < run->cost->program_count; i++) {
		struct run_program *program = &run->cost->programs[i];
		const struct run_program *before = find_program(earlier->cost, program->name);

		if (before)
			members_subtract(&run_program_members, program, before);
	}
}

void run_drop_idle(struct run *run)
{
	struct run_service *left;
	size_t kept = 0;

	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];

		if (service->last_message_ns || service->samples ||
		    !members_are_zero(&run_service_members, service)) {
			if (kept != i)
				run->services[kept] = *service;
			kept++;
		} else {
			members_free(&run_service_members, service);
		}
	}
	run->service_count = kept;
	left = kept ? realloc(run->services, kept * sizeof(*left)) : NULL;
	if (!kept)
		free(run->services);
	if (left || !kept)
		run->services = left;
}

uint64_t run_row_errors(const struct run_row *row)
{
	return run_counts_sum(row->errors, RUN_ERROR_COUNT);
}

uint64_t run_driver_errors(const struct run_driver *driver)
{
	return run_counts_sum(driver->errors, RUN_ERROR_COUNT);
}

const struct histogram *run_driver_latency(const struct run_driver *driver)
{
	return driver->rate ? &driver->response_time : &driver->round_trip;
}
