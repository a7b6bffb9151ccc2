// SPDX-License-Identifier: MIT
/* From what the workers counted to the driver's part of the run document. */
#include "result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "explain.h"
#include "limited.h"
#include "scenario.h"
#include "sojourn/clock.h"

/* What ends by its requests ends with the last one's response or failure. */
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

static struct run_row_list *rows_of(struct run_driver *driver, const struct scenario *scenario)
{
	return &driver->rows[scenario->of_targets ? RUN_ROWS_TARGET : RUN_ROWS_STEP];
}

/* Of several targets the one that had most of these. */
static const struct target *target_of(const struct options *options,
				      const struct result_phase *phase, struct run_driver *driver,
				      unsigned int error)
{
	const struct scenario *scenario = options->scenario;
	const struct target *target = phase->target;
	uint64_t most = 0;

	if (!scenario)
		return target;
	for (size_t i = 0; i < scenario->step_count; i++) {
		const struct run_row *row = &rows_of(driver, scenario)->list[i];

		if (row->errors[error] <= most)
			continue;
		most = row->errors[error];
		target = &scenario->steps[i].target;
	}
	return target;
}

static int fill_failures(const struct options *options, const struct stats *stats,
			 const struct result_phase *phase, struct run_driver *driver)
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
		failure->explanation =
			explain_failure((enum run_error)i, stats->error_detail[i], options,
					target_of(options, phase, driver, i));
	}
	return 0;
}

/* What a step sends, and where to. A target is its name, and sends what all do. */
static int describe_step(const struct scenario *scenario, const struct scenario_step *from,
			 struct run_row *step)
{
	const struct target *target = &from->target;
	const struct engine *engine = engine_find(target->scheme);
	int length;

	step->name = strdup(from->name);
	if (scenario->of_targets)
		return step->name ? 0 : -ENOMEM;
	step->method = engine->plain ? NULL : strdup(from->options.method);
	if (!step->name || (!engine->plain && !step->method))
		return -ENOMEM;
	length = asprintf(&step->target, "%s%s%s%s", target->scheme, engine->local ? ":" : "://",
			  target->authority, engine->plain ? "" : target->path);
	return length < 0 ? -ENOMEM : 0;
}

/* A row for each step, or target. */
static int fill_steps(const struct options *options, const struct result_phase *phase,
		      struct run_driver *driver)
{
	const struct scenario *scenario = options->scenario;
	struct run_row_list *rows = rows_of(driver, scenario);
	autofree struct row_stats *sum = malloc(sizeof(*sum));
	int err = 0;

	rows->list = calloc(scenario->step_count, sizeof(*rows->list));
	if (!sum || !rows->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < scenario->step_count && !err; i++) {
		struct run_row *row = &rows->list[rows->count++];

		memset(sum, 0, sizeof(*sum));
		row_table_add(&phase->steps, i, sum);
		row_stats_fill(sum, row);
		err = describe_step(scenario, &scenario->steps[i], row);
	}
	if (scenario->of_targets)
		return err;
	driver->scenario = strdup(scenario->name ? scenario->name : scenario->path);
	return err || !driver->scenario ? -ENOMEM : 0;
}

/* Rows have counted their late responses: what is in no rate is shared out among these. */
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

/* "constant", "poisson along 100..1k", "closed, connections along 1..64". NULL without memory. */
static char *describe_arrival(const struct options *options)
{
	const char *name = schedule_arrival_names[options->schedule.arrival];
	char *text;

	if (options->ramp.count)
		return asprintf(&text, "%s, connections along %s", name,
				options->connections_text) < 0
			       ? NULL
			       : text;
	if (!options->schedule.shape.count)
		return strdup(name);
	return asprintf(&text, "%s along %s", name, options->rate_text) < 0 ? NULL : text;
}

int result_fill(const struct options *options, struct crew_result *result,
		const struct result_phase *phase, struct run *run)
{
	const struct stats *stats = &result->stats;
	struct run_driver *driver = calloc(1, sizeof(*driver));
	bool plain;

	if (!driver)
		return -ENOMEM;
	run->driver = driver;
	driver->target = options->url ? strdup(options->url) : NULL;
	plain = (options->scenario && !options->scenario->of_targets) ||
		(phase->target && engine_find(phase->target->scheme)->plain);
	driver->method = plain ? NULL : strdup(options->method);
	driver->connections = options->connections;
	driver->streams = options->streams;
	driver->processes = options->processes;
	driver->threads = options->threads * options->processes;
	driver->new_connections = options->new_connections;
	driver->arrival = describe_arrival(options);
	driver->rate = options->schedule.rate;
	driver->think_ns = options->schedule.think_ns;
	driver->cooldown_ns = options->cooldown_ns;
	fill_counts(stats, driver);
	fill_phase(result, phase, driver);
	run->duration_ns = driver->duration_ns;
	if ((options->url && !driver->target) || (!driver->method && !plain) || !driver->arrival)
		return -ENOMEM;
	if (options->scenario && fill_steps(options, phase, driver))
		return -ENOMEM;
	if (status_table_fill(&phase->statuses, &driver->rows[RUN_ROWS_STATUS]))
		return -ENOMEM;
	share_drained(stats->late.count, driver);
	if (fill_failures(options, stats, phase, driver) ||
	    series_fill(&result->series, end_of(stats, phase), driver))
		return -ENOMEM;
	port_watch_fill(phase->ports, phase->begin_ns, driver);
	return limited_fill(driver, result->cpu.wall_ns);
}
