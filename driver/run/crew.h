/* SPDX-License-Identifier: MIT */
/*
 * All workers of a run, a thread each. They begin and end phases together; their counts are added
 * up.
 */
#ifndef DRIVER_RUN_CREW_H
#define DRIVER_RUN_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "engine/engine.h"
#include "load/worker.h"
#include "load/load_settings.h"
#include "run_settings.h"
#include "transport/link.h"
#include "stats/cpu_time.h"
#include "stats/rows.h"
#include "stats/sample.h"
#include "stats/series.h"
#include "stats/stats.h"

struct crew_setup {
	const struct link_settings *link;
	const struct load_settings *load;
	const struct run_settings *settings;
	const uint64_t *think_ns; /* by step; NULL: no think times */
	const struct engine *engine;
	const void *shared; /* the engine's */
	uint64_t seed;	    /* of the schedule */
	bool own_files;	    /* see worker.h */
	struct budget *budget;
	struct gate *gate;
	struct row_table steps;
	struct status_table statuses;
	/* Called on the loop when a worker rests, has failed, or has a snapshot. */
	void (*ring)(void *user);
	void *user;
};

/* The result of a measured phase. */
struct crew_result {
	struct stats stats;
	struct series series;
	struct sampler samples; /* all exchanges below the lowest threshold of all workers */
	struct cpu_time cpu;
};

/* Add one worker's counts to @result, which starts zeroed. -ENOMEM. */
int crew_result_add(struct crew_result *result, const struct stats *stats,
		    const struct series *series, struct sampler *samples);
void crew_result_clear(struct crew_result *result);

struct crew;

/* Start the workers, at rest. @setup is copied. -errno. */
int crew_new(const struct crew_setup *setup, uv_loop_t *loop, struct crew **ret_crew);
/* End the workers; the loop then frees the rest. Takes NULL. */
void crew_free(struct crew *crew);

/* See worker_set_phase(). */
void crew_set_phase(struct crew *crew, enum worker_phase phase, uint64_t begin_ns,
		    uint64_t stop_ns);
/* Return whether @is, a function of worker.h, is true of all workers, or of any. */
bool crew_all(struct crew *crew, bool (*is)(struct worker *worker));
bool crew_any(struct crew *crew, bool (*is)(struct worker *worker));
/* See worker_connect_failure(); of any worker. */
const struct engine_result *crew_connect_failure(struct crew *crew);

/* See worker_ask_snapshot() and the following; of all workers. */
void crew_ask_snapshot(struct crew *crew);
void crew_add_snapshot(struct crew *crew, struct stats *sum);

/* Add the workers' records to @result, while quiet after the measured phase. -errno. */
int crew_collect(struct crew *crew, struct crew_result *result);

/* Return each worker's share of the samples in the settings, rounded up. */
uint32_t crew_worker_samples(const struct run_settings *settings);

#endif
