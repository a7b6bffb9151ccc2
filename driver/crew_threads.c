// SPDX-License-Identifier: MIT
/* Workers as threads of this process. Neighbours: worker.h (one of them), crew_processes.c. */
#include <errno.h>
#include <stdlib.h>

#include "crew.h"
#include "scenario.h"
#include "share.h"
#include "sojourn/clock.h"

struct crew {
	struct crew_setup setup;
	uv_async_t news; /* from the workers */
	bool opened;
	void (*ring)(void *user);
	void *user;
	struct cpu_time cpu_begin;
	uint32_t worker_count;
	struct worker *workers[];
};

static int threads_create(const struct crew_setup *setup, struct crew **ret_crew, char **ret_error)
{
	uint32_t threads = setup->options->threads;
	struct crew *crew = calloc(1, sizeof(*crew) + threads * sizeof(crew->workers[0]));

	(void)ret_error;
	if (!crew)
		return -ENOMEM;
	crew->setup = *setup;
	*ret_crew = crew;
	return 0;
}

static void on_news(uv_async_t *news)
{
	struct crew *crew = news->data;

	crew->ring(crew->user);
}

static int start_worker(struct crew *crew, uint32_t index)
{
	const struct options *options = crew->setup.options;
	uint32_t all = options->threads * options->processes;
	uint32_t sharer = crew->setup.process * options->threads + index;
	/* Slots of a socket, or of a connection, stay together. */
	uint32_t each = options->datagrams.outstanding * options->streams;
	struct worker_setup setup = {
		.engine = crew->setup.engine,
		.shared = crew->setup.shared,
		.slots = share_of(options->connections, all, sharer) * each,
		.slots_each = each,
		.ramp = options->ramp.count ? &options->ramp : NULL,
		.first_slot = share_before(options->connections, all, sharer) * each,
		.all_slots = options->connections * each,
		.interval_ns = options->interval_ns,
		.sharer = sharer,
		.sharers = all,
		.schedule = options->schedule,
		.tell_failure = options->fail_fast,
		.samples = crew_worker_samples(options),
		.timeout_ns = options->timeout_ns,
		.budget = crew->setup.budget,
		.gate = crew->setup.gate,
		.news = &crew->news,
	};

	setup.schedule.seed = crew->setup.seed;
	setup.steps = row_table_row(&crew->setup.steps, sharer);
	setup.statuses = &crew->setup.statuses.list[sharer];
	setup.step_count = crew->setup.steps.steps;
	if (options->scenario && options->scenario->thinks)
		setup.step_think_ns = options->scenario->think_ns;
	return worker_new(&setup, &crew->workers[index]);
}

static int threads_open(struct crew *crew, uv_loop_t *loop, void (*ring)(void *user), void *user,
			char **ret_error)
{
	int err = uv_async_init(loop, &crew->news, on_news);

	(void)ret_error;
	if (err)
		return err;
	crew->opened = true;
	crew->news.data = crew;
	crew->ring = ring;
	crew->user = user;
	for (uint32_t i = 0; i < crew->setup.options->threads && !err; i++) {
		err = start_worker(crew, i);
		crew->worker_count += !err;
	}
	return err;
}

static void threads_set_phase(struct crew *crew, enum worker_phase phase, uint64_t begin_ns,
			      uint64_t stop_ns)
{
	if (phase == WORKER_MEASURE)
		cpu_time_read(&crew->cpu_begin);
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_set_phase(crew->workers[i], phase, begin_ns, stop_ns);
}

static bool are_all(struct crew *crew, bool (*is)(struct worker *))
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		if (!is(crew->workers[i]))
			return false;
	return true;
}

static bool threads_is_quiet(struct crew *crew)
{
	return are_all(crew, worker_is_quiet);
}

static bool threads_has_failed(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		if (worker_has_failed(crew->workers[i]))
			return true;
	return false;
}

static const char *threads_lost(struct crew *crew)
{
	(void)crew;
	return NULL;
}

static void threads_ask_snapshot(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_ask_snapshot(crew->workers[i]);
}

static bool threads_has_snapshot(struct crew *crew)
{
	return are_all(crew, worker_has_snapshot);
}

static void threads_add_snapshot(struct crew *crew, struct stats *sum)
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_add_snapshot(crew->workers[i], sum);
}

static int threads_collect(struct crew *crew, struct crew_result *result)
{
	struct cpu_time now;
	int err = 0;

	cpu_time_read(&now);
	cpu_time_add(&result->cpu, &crew->cpu_begin, &now);
	for (uint32_t i = 0; i < crew->worker_count && !err; i++) {
		const struct worker *worker = crew->workers[i];

		err = worker_error(worker);
		if (!err)
			err = crew_result_add(result, worker_stats(worker), worker_series(worker),
					      worker_sampler(worker));
	}
	return err;
}

static void threads_close(struct crew *crew)
{
	for (uint32_t i = 0; i < crew->worker_count; i++)
		worker_free(crew->workers[i]);
	crew->worker_count = 0;
	if (crew->opened)
		uv_close((uv_handle_t *)&crew->news, NULL);
}

static void threads_free(struct crew *crew)
{
	free(crew);
}

const struct crew_kind crew_threads = {
	.create = threads_create,
	.open = threads_open,
	.set_phase = threads_set_phase,
	.is_quiet = threads_is_quiet,
	.has_failed = threads_has_failed,
	.lost = threads_lost,
	.ask_snapshot = threads_ask_snapshot,
	.has_snapshot = threads_has_snapshot,
	.add_snapshot = threads_add_snapshot,
	.collect = threads_collect,
	.close = threads_close,
	.free = threads_free,
};
