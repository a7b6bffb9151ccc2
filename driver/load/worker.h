/* SPDX-License-Identifier: MIT */
/*
 * A thread with a loop, its share of the connections and its own statistics. While a phase lasts it
 * keeps every slot busy, or starts requests when the schedule says so, and it tells when all slots
 * have come to rest.
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
	WORKER_REST,	/* start nothing; what is under way runs out */
	WORKER_WARMUP,	/* load, unrecorded */
	WORKER_MEASURE, /* load, recorded */
	WORKER_EXIT,
};

struct worker_setup {
	const struct engine *engine;
	const void *shared; /* of the engine */
	uint32_t slots;
	uint32_t slots_each;	  /* of a connection, side by side */
	const struct shape *ramp; /* of the connections of all workers; NULL: all slots send */
	uint32_t first_slot;	  /* how many slots the workers before it have */
	uint32_t all_slots;
	uint32_t first_client; /* how many slots the sharers before it have, of other drivers too */
	uint64_t interval_ns;  /* of the series */
	uint32_t sharer;       /* of the schedule and the ramp: which one it is, from 0 */
	uint32_t sharers;
	struct schedule_spec schedule;
	struct row_stats *steps; /* its own row; NULL: there are none */
	uint32_t step_count;
	struct status_rows *statuses; /* its own */
	const uint64_t
		*step_think_ns; /* closed loop: after each of them; NULL: as the schedule says */
	bool tell_failure;	/* send news at the first failure */
	bool own_files; /* the thread has a table of descriptors of its own: see transport/host_limits.h */
	uint32_t samples;    /* room for exchanges to be joined; 0: none */
	uint64_t timeout_ns; /* decides how often the engine is asked to expire requests */
	struct budget *budget;
	struct gate *gate;
	uv_async_t *news; /* sent when the worker has come to rest or published its statistics */
};

struct worker;

/* Starts the thread, at rest. @setup is copied. -errno. */
int worker_new(const struct worker_setup *setup, struct worker **ret_worker);

/* Ends the thread, dropping what is under way, and frees it; takes NULL. */
void worker_free(struct worker *worker);
DEFINE_CLEANUP(struct worker *, worker_free)

/*
 * Begins WARMUP or MEASURE: only when the worker is quiet. REST ends either. A worker also comes to
 * rest by itself, when the budget is spent. @begin_ns is the phase's begin for all workers: intervals
 * and, under a rate, arrivals count from it. From @stop_ns on it starts nothing more, and responses are
 * in no interval; 0: until REST.
 */
void worker_set_phase(struct worker *worker, enum worker_phase phase, uint64_t begin_ns,
		      uint64_t stop_ns);

/* No request is under way and none will start until the next phase. */
bool worker_is_quiet(struct worker *worker);

/* A request of the measured phase has failed; told only if that was asked for. */
bool worker_has_failed(struct worker *worker);

/* A connection was established, in this phase or an earlier one. */
bool worker_has_connected(struct worker *worker);

/*
 * The first failure to connect, in any phase, that says that the next attempt fails, too: refused, unreachable,
 * no TLS. NULL: there was none.
 */
const struct engine_result *worker_connect_failure(struct worker *worker);

/* What it recorded in the measured phase; only while it is quiet. */
const struct stats *worker_stats(const struct worker *worker);
struct sampler *worker_sampler(struct worker *worker);
const struct series *worker_series(const struct worker *worker);
/* -ENOMEM if an interval could not be kept; only while it is quiet. */
int worker_error(const struct worker *worker);

/*
 * Asks for a copy of its statistics so far; once it is
 * there, worker_add_snapshot() adds it to @sum. Each copy is there once.
 */
void worker_ask_snapshot(struct worker *worker);
bool worker_has_snapshot(struct worker *worker);
void worker_add_snapshot(struct worker *worker, struct stats *sum);

#endif
