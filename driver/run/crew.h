/* SPDX-License-Identifier: MIT */
/*
 * All workers of a run, a thread each: they begin and end phases together, and what they counted is added
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
#include "transport/link_settings.h"
#include "stats/cpu_time.h"
#include "stats/rows.h"
#include "stats/sample.h"
#include "stats/series.h"
#include "stats/stats.h"

struct crew_setup {
	const struct link_settings *link;
	const struct load_settings *load;
	const struct run_settings *settings;
	const uint64_t *think_ns; /* after each step; NULL: none thinks */
	const struct engine *engine;
	const void *shared; /* of the engine */
	uint64_t seed;	    /* of the schedule */
	bool own_files;	    /* see worker.h */
	struct budget *budget;
	struct gate *gate;
	struct row_table steps;
	struct status_table statuses;
	/* Called on the loop when it is time to look: somebody came to rest, failed, has a snapshot. */
	void (*ring)(void *user);
	void *user;
};

/* What a measured phase gave. */
struct crew_result {
	struct stats stats;
	struct series series;
	struct sampler
		samples; /* below the lowest threshold of all workers: all exchanges below it */
	struct cpu_time cpu;
};

/* Adds what one worker counted to a @result that begins zeroed, and takes over its @samples. -ENOMEM. */
int crew_result_add(struct crew_result *result, const struct stats *stats,
		    const struct series *series, struct sampler *samples);
void crew_result_clear(struct crew_result *result);

struct crew;

/* Starts the workers, at rest. @setup is copied. -errno. */
int crew_new(const struct crew_setup *setup, uv_loop_t *loop, struct crew **ret_crew);
/* Ends the workers. The rest is freed as the loop runs out. Takes NULL. */
void crew_free(struct crew *crew);

/* As worker_set_phase(). */
void crew_set_phase(struct crew *crew, enum worker_phase phase, uint64_t begin_ns,
		    uint64_t stop_ns);
bool crew_is_quiet(struct crew *crew);
bool crew_has_failed(struct crew *crew);

bool crew_has_connected(struct crew *crew);
/* As worker_connect_failure(), of any of them. */
const struct engine_result *crew_connect_failure(struct crew *crew);

/* As worker_ask_snapshot() and its neighbours, of all workers. */
void crew_ask_snapshot(struct crew *crew);
bool crew_has_snapshot(struct crew *crew);
void crew_add_snapshot(struct crew *crew, struct stats *sum);

/* Adds what they recorded to @result, and takes their samples; while quiet, after the measured phase. -errno. */
int crew_collect(struct crew *crew, struct crew_result *result);

/* How many samples each worker may keep: as many in all as the settings say, or a few more. */
uint32_t crew_worker_samples(const struct run_settings *settings);

#endif
