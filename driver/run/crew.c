// SPDX-License-Identifier: MIT
/* The workers of a run and the sum of their counts. Neighbour: load/worker.h (one worker). */
#include "crew.h"

#include <errno.h>
#include <stdlib.h>

#include "load/share.h"

struct crew {
	struct crew_setup setup;
	uv_async_t news; /* from the workers */
	struct cpu_time cpu_begin;
	uint32_t worker_count;
	uint32_t slots; /* of the workers started so far */
	struct worker *workers[];
};

uint32_t crew_worker_samples(const struct run_settings *settings)
{
	return (settings->samples + settings->threads - 1) / settings->threads;
}

/* Move the samples, as a copy would take some MiB more: @other keeps none. */
static int take_samples(struct sampler *sum, struct sampler *other)
{
	int err;

	if (!other->capacity)
		return 0;
	if (!sum->capacity) {
		*sum = *other;
		*other = (struct sampler){0};
		return 0;
	}
	err = sampler_reserve(sum, sum->count + other->count);
	if (!err)
		sampler_merge(sum, other);
	sampler_close(other);
	return err;
}

int crew_result_add(struct crew_result *result, const struct stats *stats,
		    const struct series *series, struct sampler *samples)
{
	int err = series_add(&result->series, series);

	stats_add(&result->stats, stats);
	return err ? err : take_samples(&result->samples, samples);
}

void crew_result_clear(struct crew_result *result)
{
	series_clear(&result->series);
	sampler_close(&result->samples);
	*result = (struct crew_result){0};
}

static void on_news(uv_async_t *news)
{
	struct crew *crew = news->data;

	crew->setup.ring(crew->setup.user);
}

static int start_worker(struct crew *crew, uint32_t index)
{
	const struct run_settings *settings = crew->setup.settings;
	const struct link_settings *link = crew->setup.link;
	const struct load_settings *load = crew->setup.load;
	const struct load_member *member = &load->member;
	uint32_t members = member->count ? member->count : 1;
	uint32_t connections = member->count ? member->connections : load->connections;
	uint32_t all = settings->threads * members;
	uint32_t sharer = share_sharer(member->index, members, index);
	/* Slots of one socket or connection stay together. */
	uint32_t each = link->datagrams.outstanding * link->streams;
	struct worker_setup setup = {
		.engine = crew->setup.engine,
		.shared = crew->setup.shared,
		.slots = share_of(connections, all, sharer) * each,
		.slots_each = each,
		.ramp = load->ramp.count ? &load->ramp : NULL,
		.first_slot = crew->slots,
		.all_slots = load->connections * each,
		.first_client = share_before(connections, all, sharer) * each,
		.interval_ns = load->interval_ns,
		.sharer = sharer,
		.sharers = all,
		.schedule = load->schedule,
		.tell_failure = settings->fail_fast,
		.own_files = crew->setup.own_files,
		.samples = crew_worker_samples(settings),
		.timeout_ns = link->timeout_ns,
		.budget = crew->setup.budget,
		.gate = crew->setup.gate,
		.news = &crew->news,
		.step_think_ns = crew->setup.think_ns,
	};

	setup.schedule.seed = crew->setup.seed;
	setup.schedule.deals = member->deals;
	setup.schedule.thread = index;
	setup.schedule.threads = settings->threads;
	setup.steps = row_table_row(&crew->setup.steps, index);
	setup.statuses = &crew->setup.statuses.list[index];
	setup.step_count = crew->setup.steps.steps;
	crew->slots += setup.slots;
	return worker_new(&setup, &crew->workers[index]);
}

int crew_new(const struct crew_setup *setup, uv_loop_t *loop, struct crew **ret_crew)
{
	uint32_t threads = setup->settings->threads;
	struct crew *crew = calloc(1, sizeof(*crew) + threads * sizeof(crew->workers[0]));
	int err = crew ? uv_async_init(loop, &crew->news, on_news) : -ENOMEM;

	if (err) {
		free(crew);
		return err;
	}
	crew->setup = *setup;
	crew->news.data = crew;
	for (uint32_t i = 0; i < threads && !err; i++) {
		err = start_worker(crew, i);
		crew->worker_count += !err;
	}
	if (err)
		crew_free(crew);
	else
		*ret_crew = crew;
	return err;
}

static void on_close(uv_handle_t *news)
{
	free(news->data);
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_free(crew->workers[i]);
	uv_close((uv_handle_t *)&crew->news, on_close);
}

void crew_set_phase(struct crew *crew, enum worker_phase phase, uint64_t begin_ns, uint64_t stop_ns)
{
	if (phase == WORKER_MEASURE)
		cpu_time_read(&crew->cpu_begin);
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_set_phase(crew->workers[i], phase, begin_ns, stop_ns);
}

bool crew_all(struct crew *crew, bool (*is)(struct worker *))
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		if (!is(crew->workers[i]))
			return false;
	return true;
}

bool crew_any(struct crew *crew, bool (*is)(struct worker *))
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		if (is(crew->workers[i]))
			return true;
	return false;
}

const struct engine_result *crew_connect_failure(struct crew *crew)
{
	const struct engine_result *failure = NULL;

	for (uint32_t i = 0; i < crew->worker_count && !failure; i++)
		failure = worker_connect_failure(crew->workers[i]);
	return failure;
}

void crew_ask_snapshot(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_ask_snapshot(crew->workers[i]);
}

void crew_add_snapshot(struct crew *crew, struct stats *sum)
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_add_snapshot(crew->workers[i], sum);
}

int crew_collect(struct crew *crew, struct crew_result *result)
{
	struct cpu_time now;
	int err = 0;

	cpu_time_read(&now);
	cpu_time_add(&result->cpu, &crew->cpu_begin, &now);
	for (uint32_t i = 0; i < crew->worker_count && !err; i++) {
		struct worker *worker = crew->workers[i];

		err = worker_error(worker);
		if (!err)
			err = crew_result_add(result, worker_stats(worker), worker_series(worker),
					      worker_sampler(worker));
	}
	return err;
}
