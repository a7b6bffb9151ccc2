// SPDX-License-Identifier: MIT
/* Converts the workers' counts to the driver's part of the run document. */
#include "result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/target.h"
#include "host/explain.h"
#include "host/limited.h"
#include "load/share.h"
#include "transport/source.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/text.h"

/* A phase limited by requests ends with the last response or failure. */
static uint64_t end_of(const struct stats *stats, const struct result_phase *phase)
{
	return phase->stop_ns ? phase->stop_ns : stats->last_ns;
}

uint64_t result_duration_ns(const struct stats *stats, const struct result_phase *phase)
{
	uint64_t end = end_of(stats, phase);

	return end > phase->begin_ns ? end - phase->begin_ns : 0;
}

static void fill_counts(const struct stats *stats, struct run_driver *driver)
{
	driver->requests = stats->requests;
	driver->connects = stats->connects;
	driver->bytes_in = stats->bytes_in;
	driver->bytes_out = stats->bytes_out;
	memcpy(driver->grpc, stats->grpc, sizeof(driver->grpc));
	driver->messages_sent = stats->messages_sent;
	driver->messages_received = stats->messages_received;
	if (stats->streams)
		driver->streams_allowed = (struct run_number){true, stats->streams};
	memcpy(driver->status, stats->status, sizeof(driver->status));
	memcpy(driver->errors, stats->errors, sizeof(driver->errors));
	memcpy(driver->datagrams, stats->datagrams, sizeof(driver->datagrams));
	driver->round_trip = stats->round_trip;
	driver->connect = stats->connect;
	driver->tls = stats->tls;
	driver->first_byte = stats->first_byte;
	driver->scheduled = stats->scheduled;
	driver->unsent = stats->unsent;
	driver->response_time = stats->response_time;
	driver->schedule_delay = stats->schedule_delay;
}

static uint64_t since(uint64_t now_ns, uint64_t begin_ns)
{
	return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

static struct run_row_list *rows_of(struct run_driver *driver, const struct drive_rows *rows)
{
	return &driver->rows[rows->kind == DRIVE_TARGETS ? RUN_ROWS_TARGET : RUN_ROWS_STEP];
}

/* Return the target with most of these errors. */
static const struct target *target_of(const struct drive_rows *rows, struct run_driver *driver,
				      unsigned int error)
{
	const struct target *target = rows->targets[0];
	uint64_t most = 0;

	for (size_t i = 0; rows->kind != DRIVE_ONE && i < rows->count; i++) {
		const struct run_row *row = &rows_of(driver, rows)->list[i];

		if (row->errors[error] <= most)
			continue;
		most = row->errors[error];
		target = rows->targets[i];
	}
	return target;
}

/* One entry for each kind that occurred, in the order of enum run_error. */
static int fill_failures(const struct stats *stats, const struct result_phase *phase,
			 struct run_driver *driver)
{
	driver->failures = calloc(RUN_ERROR_COUNT, sizeof(*driver->failures));
	if (!driver->failures)
		return -ENOMEM;
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++) {
		struct run_failure *failure = &driver->failures[driver->failure_count];

		if (!stats->errors[i])
			continue;
		driver->failure_count++;
		snprintf(failure->kind, sizeof(failure->kind), "%s", run_error_names[i]);
		failure->count = stats->errors[i];
		failure->first_ns = since(stats->first_error_ns[i], phase->begin_ns);
		failure->last_ns = since(stats->last_error_ns[i], phase->begin_ns);
	}
	return 0;
}

/* After fill_failures(): the same kinds in the same order. */
static void explain_failures(const struct drive_job *job, const struct stats *stats,
			     struct run_driver *driver)
{
	struct explain_run run = {.link = job->link,
				  .connections = job->load->connections,
				  .silent = !stats->bytes_in};
	struct run_failure *failure = driver->failures;

	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++) {
		if (!stats->errors[i])
			continue;
		run.target = target_of(job->rows, driver, i);
		failure->explanation =
			explain_failure((enum run_error)i, stats->error_detail[i], &run);
		failure++;
	}
}

/* Describe a step's request and target. A target has a name only, as all send the same. */
static int describe_row(const struct drive_rows *rows, uint32_t i, struct run_row *row)
{
	const struct drive_row *from = &rows->list[i];
	const struct target *target = rows->targets[i];
	const struct engine *engine = target->engine;

	row->name = strdup(from->name);
	if (rows->kind == DRIVE_TARGETS)
		return row->name ? 0 : -ENOMEM;
	row->method = from->method ? strdup(from->method) : NULL;
	if (!row->name || (from->method && !row->method))
		return -ENOMEM;
	row->target = text_format("%s%s%s%s", target->engine->scheme,
				  engine_has(engine, ENGINE_LOCAL) ? ":" : "://", target->authority,
				  engine_has(engine, ENGINE_PLAIN) ? "" : target->path);
	return row->target ? 0 : -ENOMEM;
}

static int fill_rows(const struct drive_rows *asked, const struct result_phase *phase,
		     struct run_driver *driver)
{
	struct run_row_list *rows = rows_of(driver, asked);
	int err = 0;

	rows->list = calloc(asked->count, sizeof(*rows->list));
	if (!rows->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < asked->count && !err; i++) {
		struct run_row *row = &rows->list[rows->count++];

		row_table_add(&phase->steps, i, row);
		err = describe_row(asked, i, row);
	}
	if (asked->kind == DRIVE_TARGETS)
		return err;
	driver->scenario = strdup(asked->scenario);
	return err || !driver->scenario ? -ENOMEM : 0;
}

/* Divide the responses excluded from rates among the rows, by their late responses. */
static void share_drained(uint64_t late, struct run_driver *driver)
{
	for (size_t by = 0; late && by < ARRAY_SIZE(driver->rows); by++)
		for (size_t i = 0; i < driver->rows[by].count; i++) {
			uint64_t *drained = &driver->rows[by].list[i].drained;

			*drained = (*drained * driver->drained + late / 2) / late;
		}
}

static void fill_phase(const struct crew_result *result, const struct result_phase *phase,
		       struct run_driver *driver)
{
	driver->begin_ns = phase->begin_wall_ns;
	driver->duration_ns = result_duration_ns(&result->stats, phase);
	driver->drained = stats_drained(&result->stats, driver->duration_ns);
	driver->warmup_ns = phase->warmup_ns;
	driver->cpu_user_ns = result->cpu.user_ns;
	driver->cpu_system_ns = result->cpu.system_ns;
	driver->cpu_wait_ns.known = !result->cpu.wait_unknown;
	driver->cpu_wait_ns.value = result->cpu.wait_ns;
}

/* Return "constant", "poisson along 100..1k" or "closed, connections along 1..64", or NULL. */
static char *describe_arrival(const struct load_settings *load)
{
	const char *name = schedule_arrival_names[load->schedule.arrival];

	if (load->ramp.count)
		return text_format("%s, connections along %s", name, load->connections_text);
	if (!load->schedule.shape.count)
		return strdup(name);
	return text_format("%s along %s", name, load->rate_text);
}

int result_set_interrupted(const struct load_settings *load, struct run_driver *driver)
{
	driver->interrupted = calloc(1, sizeof(*driver->interrupted));
	if (!driver->interrupted)
		return -ENOMEM;
	driver->interrupted->duration_ns =
		(struct run_number){load->duration_ns != 0, load->duration_ns};
	driver->interrupted->requests = (struct run_number){load->requests != 0, load->requests};
	return 0;
}

/* Without a route there is no connection. */
static int add_route(const struct target *target, struct run_driver *driver)
{
	sa_family_t family = target->address.ss_family;
	char text[SOURCE_TEXT];

	if ((family != AF_INET && family != AF_INET6) || source_of_route(&target->address, text))
		return 0;
	return run_add_text_once(&driver->sources, text);
}

static int describe_sources(const struct drive_job *job, struct run_driver *driver)
{
	const struct source_set *set = &job->link->sources;
	char text[SOURCE_TEXT];
	int err = 0;

	for (size_t i = 0; i < set->count && !err;) {
		i = source_print(set, i, text);
		err = run_add_text(&driver->sources, text);
	}
	for (uint32_t i = 0; !set->count && i < job->rows->count && !err; i++)
		err = add_route(job->rows->targets[i], driver);
	return err;
}

static int describe(const struct drive_job *job, struct run *run)
{
	struct run_driver *driver = calloc(1, sizeof(*driver));
	const struct drive_rows *rows = job->rows;
	const char *method = rows->kind == DRIVE_STEPS ? NULL : rows->list[0].method;
	const struct load_member *member = &job->load->member;

	if (!driver)
		return -ENOMEM;
	run->driver = driver;
	driver->target = job->url ? strdup(job->url) : NULL;
	driver->method = method ? strdup(method) : NULL;
	driver->connections = job->load->connections;
	driver->streams = job->link->streams;
	driver->processes = 1;
	driver->threads = job->settings->threads;
	driver->new_connections = job->link->new_connections;
	driver->arrival = describe_arrival(job->load);
	driver->rate = job->load->schedule.rate;
	if (member->count) /* all drivers' shares add up to it */
		driver->rate = share_of_count(driver->rate, member->count, member->index);
	driver->think_ns = job->load->schedule.think_ns;
	driver->cooldown_ns = job->load->cooldown_ns;
	driver->expected = job->expected ? strdup(job->expected) : NULL;
	if ((job->url && !driver->target) || (method && !driver->method) || !driver->arrival ||
	    (job->expected && !driver->expected))
		return -ENOMEM;
	return describe_sources(job, driver);
}

int result_so_far(const struct drive_job *job, const struct stats *stats,
		  const struct result_phase *phase, struct run *run)
{
	int err = describe(job, run);

	if (err)
		return err;
	fill_counts(stats, run->driver);
	run->driver->begin_ns = phase->begin_wall_ns;
	run->driver->warmup_ns = phase->warmup_ns;
	run->driver->duration_ns = since(clock_now_ns(), phase->begin_ns);
	run->driver->drained = stats_drained(stats, run->driver->duration_ns);
	run->duration_ns = run->driver->duration_ns;
	return fill_failures(stats, phase, run->driver);
}

int result_fill(const struct drive_job *job, struct crew_result *result,
		const struct result_phase *phase, struct run *run)
{
	const struct stats *stats = &result->stats;
	const struct drive_rows *rows = job->rows;
	int err = describe(job, run);
	struct run_driver *driver = run->driver;
	bool early;

	if (err)
		return err;
	fill_counts(stats, driver);
	fill_phase(result, phase, driver);
	run->duration_ns = driver->duration_ns;
	early = job->load->duration_ns ? driver->duration_ns < job->load->duration_ns
				       : job->load->requests;
	if (phase->interrupted && early && result_set_interrupted(job->load, driver))
		return -ENOMEM;
	if (rows->kind != DRIVE_ONE && fill_rows(rows, phase, driver))
		return -ENOMEM;
	if (status_table_fill(&phase->statuses, &driver->rows[RUN_ROWS_STATUS]))
		return -ENOMEM;
	share_drained(stats->late.count, driver);
	if (fill_failures(stats, phase, driver))
		return -ENOMEM;
	explain_failures(job, stats, driver);
	if (series_fill(&result->series, end_of(stats, phase), driver))
		return -ENOMEM;
	port_watch_fill(phase->ports, phase->begin_ns, driver);
	return limited_fill(driver, result->cpu.wall_ns);
}
