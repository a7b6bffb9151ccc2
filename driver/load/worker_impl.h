/* SPDX-License-Identifier: MIT */
/* The inside of a worker, for worker.c (thread and commands) and worker_load.c (requests). */
#ifndef DRIVER_LOAD_WORKER_IMPL_H
#define DRIVER_LOAD_WORKER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "alarm.h"
#include "pacer.h"
#include "worker.h"

/* A slot. After a failed connection it waits, ever longer, so that healthy ones do not starve. */
struct slot {
	struct worker *worker;
	uint32_t retry_ms;    /* 0: the last connection was established */
	uint64_t intended_ns; /* paced: intended start of its request */
	uint64_t delay_ns;    /* how much later than possible the request left */
	uv_timer_t retry;
	bool parked; /* beyond the ramp's number */
};

struct worker {
	struct worker_setup setup;
	struct engine_host host;
	void *engine;
	pthread_t thread;
	uv_sem_t opened; /* the thread has opened everything, or set @error */
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t sweep;
	uv_idle_t hurry;
	uv_check_t swept;
	uint64_t sweep_ns;  /* the last sweep */
	uint64_t absent_ns; /* the last one before the worker's last absence */
	uint64_t back_ns;   /* the first one after it */
	uint64_t over_ns;   /* what was over by then, and has no response, expires */

	_Atomic int wanted; /* enum worker_phase */
	_Atomic uint64_t wanted_begin_ns;
	_Atomic uint64_t wanted_stop_ns;
	atomic_bool quiet;
	atomic_bool failed;
	atomic_bool connected;
	atomic_bool cannot_connect; /* connect_failure is set and stays */
	struct engine_result connect_failure;
	atomic_bool snapshot_wanted;
	atomic_bool snapshot_ready;
	pthread_mutex_t snapshot_lock;
	struct stats snapshot;

	enum worker_phase phase;
	/* Slots without a source port or descriptor wait here; a few at a time try again. */
	uint32_t *starved;
	uint32_t starved_count;
	uint32_t probe_ms;    /* 0: ports and descriptors are available */
	uint32_t probe_batch; /* slots that try at once; doubles with success */
	uint64_t starved_ns;  /* since when none was available; 0: some are */
	uv_timer_t probe;

	/* Slots that may not connect yet. */
	uint32_t *held;
	uint32_t held_count;
	uint64_t gate_ns; /* when to ask again */
	uv_timer_t gate;

	uint64_t ramp_begin_ns;
	uv_timer_t ramp; /* next change of @active */

	bool paced; /* a schedule or think time starts requests */
	struct pacer pacer;
	struct alarm alarm;

	uint32_t active; /* slots below this number may send; 0 unless issuing */
	bool issuing;
	bool recording;
	bool drains;	  /* the phase has ended, responses still arrive */
	uint64_t stop_ns; /* end of the phase; SCHEDULE_NEVER: not known yet */
	bool spent;	  /* the budget is spent, as far as this worker knows */
	uint64_t tickets; /* requests to start before asking the budget again */
	uint32_t under_way;
	/* Statistics of the interval until roll_ns, when they are added to @total and reset. */
	struct stats stats;
	struct sampler sampler;
	uint64_t roll_ns;
	struct stats total;
	struct series series;
	int error;
	struct slot slots[];
};

void worker_begin_load(struct worker *worker, enum worker_phase phase, uint64_t begin_ns,
		       uint64_t stop_ns);
void worker_end_load(struct worker *worker);
void worker_tell_if_quiet(struct worker *worker);

/* Callbacks of the alarm and the engine. */
void worker_on_alarm(void *user);
bool worker_may_connect(void *user);
void worker_connected(void *user, uint32_t slot, uint64_t connect_ns);
void worker_secured(void *user, uint64_t tls_ns);
void worker_note(void *user, enum run_datagram what, uint64_t count);
enum engine_next worker_done(const struct engine_host *host, uint32_t slot,
			     struct engine_result *result);

#endif
