/* SPDX-License-Identifier: MIT */
/*
 * All workers of a run, be they in this process (crew_threads.c) or in several (crew_processes.c): they
 * begin and end phases together, and what they counted is added up.
 */
#ifndef DRIVER_CREW_H
#define DRIVER_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "cpu_time.h"
#include "engine.h"
#include "options.h"
#include "rows.h"
#include "sample.h"
#include "series.h"
#include "sojourn/cleanup.h"
#include "stats.h"
#include "worker.h"

struct crew_setup {
	const struct options *options;
	const struct engine *engine;
	const void *shared;	      /* of the engine */
	uint32_t process;	      /* which of the processes these workers are in, from 0 */
	uint64_t seed;		      /* of the schedule */
	struct budget *budget;	      /* in memory that all processes share */
	struct gate *gate;	      /* in the same */
	struct row_table steps;	      /* in the same */
	struct status_table statuses; /* in the same */
};

/* What a measured phase gave. */
struct crew_result {
	struct stats stats;
	struct series series;
	struct sampler
		samples; /* below the lowest threshold of all workers: all exchanges below it */
	struct cpu_time cpu;
};

/* Adds what one worker, or one process, counted to a @result that begins zeroed. -ENOMEM. */
int crew_result_add(struct crew_result *result, const struct stats *stats,
		    const struct series *series, const struct sampler *samples);
void crew_result_clear(struct crew_result *result);

struct crew;

struct crew_kind {
	/*
	 * Before any thread is started. -EINVAL with a sentence in @ret_error (freed by the caller),
	 * -errno.
	 */
	int (*create)(const struct crew_setup *setup, struct crew **ret_crew, char **ret_error);
	/*
	 * Gets the workers ready, at rest. @ring is called on @loop when it is time to look: somebody
	 * came to rest, failed, has a snapshot, or is gone. Errors as above.
	 */
	int (*open)(struct crew *crew, uv_loop_t *loop, void (*ring)(void *user), void *user,
		    char **ret_error);
	/* As worker_set_phase(). */
	void (*set_phase)(struct crew *crew, enum worker_phase phase, uint64_t begin_ns,
			  uint64_t stop_ns);
	bool (*is_quiet)(struct crew *crew);
	bool (*has_failed)(struct crew *crew);
	/* Why the run cannot go on: a sentence that lives as long as @crew. NULL: it can. */
	const char *(*lost)(struct crew *crew);

	/* As worker_ask_snapshot() and its neighbours, of all workers. */
	void (*ask_snapshot)(struct crew *crew);
	bool (*has_snapshot)(struct crew *crew);
	void (*add_snapshot)(struct crew *crew, struct stats *sum);

	/* Adds what they recorded to @result; while quiet, after the measured phase. -errno. */
	int (*collect)(struct crew *crew, struct crew_result *result);

	/* Begins to close the handles on the loop; then, once it has run out, frees everything. */
	void (*close)(struct crew *crew);
	void (*free)(struct crew *crew);
};

extern const struct crew_kind crew_threads;
extern const struct crew_kind crew_processes;

#define CREW_MEMBERS_MAX 1024U

/* How many samples each worker may keep: as many in all as the options say, or a few more. */
uint32_t crew_worker_samples(const struct options *options);

#endif
