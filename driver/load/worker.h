/* SPDX-License-Identifier: MIT */
/*
 * A thread with a loop, its share of the connections and its own statistics. During a phase it
 * keeps every slot busy, or starts requests when they are due. It reports when all slots rest.
 */
#ifndef DRIVER_LOAD_WORKER_H
#define DRIVER_LOAD_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "budget.h"
#include "engine/engine.h"
#include "gate.h"
#include "stats/sample.h"
#include "schedule.h"
#include "stats/series.h"
#include "sojourn/cleanup.h"
#include "stats/stats.h"
#include "stats/statuses.h"
#include "stats/rows.h"

enum worker_phase {
	WORKER_REST,	/* start nothing; requests in flight end */
	WORKER_WARMUP,	/* load, unrecorded */
	WORKER_MEASURE, /* load, recorded */
	WORKER_EXIT,
};

struct worker_setup {
	const struct engine *engine;
	const void *shared; /* the engine's */
	uint32_t slots;
	uint32_t slots_each;	  /* slots of each connection */
	const struct shape *ramp; /* of all workers' connections; NULL: all slots send */
	uint32_t first_slot;	  /* slots of the workers before this one */
	uint32_t all_slots;
	uint32_t first_client; /* slots of the sharers before this one, in all drivers */
	uint64_t interval_ns;  /* of the series */
	uint32_t sharer;       /* index of this sharer of the schedule and the ramp, from 0 */
	uint32_t sharers;
	struct schedule_spec schedule;
	struct run_row *steps; /* the worker's own row; NULL: none */
	uint32_t step_count;
	struct status_rows *statuses;  /* the worker's own */
	const uint64_t *step_think_ns; /* closed loop: by step; NULL: as the schedule says */
	bool tell_failure;	       /* send news of the first failure */
	bool own_files;	     /* the thread has its own descriptors, see transport/host_limits.h */
	uint32_t samples;    /* room for samples; 0: none */
	uint64_t timeout_ns; /* also decides how often the engine expires requests */
	struct budget *budget;
	struct gate *gate;
	uv_async_t *news; /* sent when the worker rests or has published its statistics */
};

struct worker;

/* Start the thread, at rest. @setup is copied. -errno. */
int worker_new(const struct worker_setup *setup, struct worker **ret_worker);

/* End the thread, drop requests in flight, and free the worker; takes NULL. */
void worker_free(struct worker *worker);
DEFINE_CLEANUP(struct worker *, worker_free)

/*
 * Begin WARMUP or MEASURE of a quiet worker, or end them by REST. A worker also rests when the
 * budget is spent. @begin_ns is the phase's start for all workers: intervals and scheduled arrivals
 * count from it. From @stop_ns on the worker starts nothing and counts responses in no interval; 0:
 * until REST.
 */
void worker_set_phase(struct worker *worker, enum worker_phase phase, uint64_t begin_ns,
		      uint64_t stop_ns);

/* Return whether no request is in flight and none will start until the next phase. */
bool worker_is_quiet(struct worker *worker);

/* Return whether a request of the measured phase has failed; only with @tell_failure. */
bool worker_has_failed(struct worker *worker);

/* Return whether a connection was established, in this phase or an earlier one. */
bool worker_has_connected(struct worker *worker);

/*
 * Return the first failure to connect, in any phase, that the next attempt would repeat: refused,
 * unreachable, no TLS. NULL: none.
 */
const struct engine_result *worker_connect_failure(struct worker *worker);

/* Return records of the measured phase; only while the worker is quiet. */
const struct stats *worker_stats(const struct worker *worker);
struct sampler *worker_sampler(struct worker *worker);
const struct series *worker_series(const struct worker *worker);
/* Return -ENOMEM if an interval was lost; only while the worker is quiet. */
int worker_error(const struct worker *worker);

/*
 * Ask for a copy of the statistics so far. When it is there, worker_add_snapshot() adds it to @sum,
 * once.
 */
void worker_ask_snapshot(struct worker *worker);
bool worker_has_snapshot(struct worker *worker);
void worker_add_snapshot(struct worker *worker, struct stats *sum);

#endif
