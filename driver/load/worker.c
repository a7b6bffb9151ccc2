// SPDX-License-Identifier: MIT
/*
 * A thread with a loop. Commands arrive by atomics and an async handle; snapshots leave under a
 * lock. All else belongs to the worker's thread alone, even its statistics until it is quiet.
 */
#include "worker.h"

#include <errno.h>

#include <stdlib.h>

#include "sojourn/clock.h"
#include "transport/host_limits.h"
#include "transport/loop.h"
#include "worker_impl.h"

#define SWEEP_MIN_MS  1U
#define SWEEP_MAX_MS  50U
#define SPARED_SWEEPS 4U

static void on_swept(uv_check_t *check)
{
	struct worker *worker = check->data;

	uv_idle_stop(&worker->hurry);
	uv_check_stop(&worker->swept);
	worker->setup.engine->expire(worker->engine, worker->over_ns);
}

static void on_hurry(uv_idle_t *idle)
{
	(void)idle;
}

/*
 * Return the time by which requests must have been over to expire. After an absence, stopped or
 * without CPU, the worker may be to blame: a request had not left, or a handshake lacked its next
 * step. Requests that were not over before the absence have some sweeps longer.
 */
static uint64_t over_by(struct worker *worker, uint64_t now_ns)
{
	uint64_t usual_ns = uv_timer_get_repeat(&worker->sweep) * NSEC_PER_MSEC;

	if (now_ns - worker->sweep_ns > 2 * usual_ns + NSEC_PER_MSEC) {
		worker->absent_ns = worker->sweep_ns;
		worker->back_ns = now_ns;
	}
	worker->sweep_ns = now_ns;
	return now_ns < worker->back_ns + SPARED_SWEEPS * usual_ns ? worker->absent_ns : now_ns;
}

/*
 * Expire requests after the loop has looked for their responses: after an absence both may be due.
 * An idle handle makes the loop look at once.
 */
static void on_sweep(uv_timer_t *timer)
{
	struct worker *worker = timer->data;

	worker->over_ns = over_by(worker, clock_now_ns());
	uv_idle_start(&worker->hurry, on_hurry);
	uv_check_start(&worker->swept, on_swept);
}

static void leave(struct worker *worker)
{
	worker->setup.engine->close(worker->engine);
	uv_close((uv_handle_t *)&worker->sweep, NULL);
	uv_close((uv_handle_t *)&worker->hurry, NULL);
	uv_close((uv_handle_t *)&worker->swept, NULL);
	uv_close((uv_handle_t *)&worker->probe, NULL);
	uv_close((uv_handle_t *)&worker->gate, NULL);
	uv_close((uv_handle_t *)&worker->ramp, NULL);
	if (worker->paced)
		alarm_close(&worker->alarm);
	uv_close((uv_handle_t *)&worker->wake, NULL);
	for (uint32_t i = 0; i < worker->setup.slots; i++)
		uv_close((uv_handle_t *)&worker->slots[i].retry, NULL);
}

static void publish(struct worker *worker)
{
	pthread_mutex_lock(&worker->snapshot_lock);
	worker->snapshot = worker->total;
	stats_add(&worker->snapshot, &worker->stats);
	pthread_mutex_unlock(&worker->snapshot_lock);
	atomic_store(&worker->snapshot_ready, true);
	uv_async_send(worker->setup.news);
}

static void change_phase(struct worker *worker, enum worker_phase phase)
{
	worker->phase = phase;
	if (phase == WORKER_EXIT) {
		leave(worker);
		return;
	}
	if (phase == WORKER_REST)
		worker_end_load(worker);
	else
		worker_begin_load(worker, phase, atomic_load(&worker->wanted_begin_ns),
				  atomic_load(&worker->wanted_stop_ns));
	worker_tell_if_quiet(worker);
}

static void on_wake(uv_async_t *wake)
{
	struct worker *worker = wake->data;
	enum worker_phase wanted = (enum worker_phase)atomic_load(&worker->wanted);

	if (atomic_exchange(&worker->snapshot_wanted, false))
		publish(worker);
	if (wanted != worker->phase)
		change_phase(worker, wanted);
	else
		worker_tell_if_quiet(worker);
}

static uint64_t sweep_interval_ms(uint64_t timeout_ns)
{
	uint64_t ms = timeout_ns / NSEC_PER_MSEC / 20;

	if (ms < SWEEP_MIN_MS)
		return SWEEP_MIN_MS;
	return ms < SWEEP_MAX_MS ? ms : SWEEP_MAX_MS;
}

static void open_timers(struct worker *worker)
{
	uint64_t interval = sweep_interval_ms(worker->setup.timeout_ns);

	uv_timer_init(&worker->loop, &worker->sweep);
	worker->sweep.data = worker;
	uv_idle_init(&worker->loop, &worker->hurry);
	uv_check_init(&worker->loop, &worker->swept);
	worker->swept.data = worker;
	uv_timer_init(&worker->loop, &worker->probe);
	worker->probe.data = worker;
	uv_timer_init(&worker->loop, &worker->gate);
	worker->gate.data = worker;
	uv_timer_init(&worker->loop, &worker->ramp);
	worker->ramp.data = worker;
	worker->sweep_ns = clock_now_ns();
	uv_timer_start(&worker->sweep, on_sweep, interval, interval);
	for (uint32_t i = 0; i < worker->setup.slots; i++) {
		worker->slots[i].worker = worker;
		worker->slots[i].retry.data = &worker->slots[i];
		uv_timer_init(&worker->loop, &worker->slots[i].retry);
	}
}

/* A failure leaves nothing open. */
static int open_pacing(struct worker *worker)
{
	const struct worker_setup *setup = &worker->setup;
	int err;

	worker->paced = setup->schedule.rate || setup->schedule.think_ns || setup->step_think_ns;
	if (!worker->paced)
		return 0;
	err = pacer_open(&worker->pacer, &setup->schedule, setup->sharer, setup->sharers,
			 setup->slots);
	if (err)
		return err;
	err = alarm_open(&worker->alarm, &worker->loop, worker_on_alarm, worker);
	if (err)
		pacer_close(&worker->pacer);
	return err;
}

static int open_engine(struct worker *worker)
{
	worker->host = (struct engine_host){
		.loop = &worker->loop,
		.slots = worker->setup.slots,
		.first_slot = worker->setup.first_slot,
		.all_slots = worker->setup.all_slots,
		.first_client = worker->setup.first_client,
		.batched = !worker->paced, /* a paced request has its own time */
		.user = worker,
		.may_connect = worker_may_connect,
		.connected = worker_connected,
		.secured = worker_secured,
		.done = worker_done,
		.note = worker_note,
	};
	return worker->setup.engine->open(&worker->host, worker->setup.shared, &worker->engine);
}

/* The thread closes what it opens: with its own table of descriptors, nobody else could. */
static int open_all(struct worker *worker)
{
	int err;

	if (worker->setup.own_files)
		limits_own_files(); /* main.c has checked that this works */
	err = open_pacing(worker);
	if (!err) {
		err = open_engine(worker);
		if (err && worker->paced)
			alarm_close(&worker->alarm);
	}
	if (err)
		uv_close((uv_handle_t *)&worker->wake, NULL);
	else
		open_timers(worker);
	return err;
}

static void *run_thread(void *argument)
{
	struct worker *worker = argument;

	/*
  * Nobody cancels this thread. Yet libc marks each of its system calls as a place to do so, with two
  * locked instructions before and after. It leaves them out where a thread may be cancelled anywhere.
  */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	worker->error = open_all(worker);
	uv_sem_post(&worker->opened);
	uv_run(&worker->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* Start the thread. Return when the worker is open or failed. */
static int start_thread(struct worker *worker)
{
	int err = loop_thread(&worker->thread, run_thread, worker);

	if (err) {
		uv_close((uv_handle_t *)&worker->wake, NULL);
		return err;
	}
	uv_sem_wait(&worker->opened);
	if (worker->error)
		pthread_join(worker->thread, NULL);
	return worker->error;
}

/* Both threads use the loop and the handle that wakes it: open them before the worker's thread. */
static int open_loop(struct worker *worker)
{
	int err = uv_loop_init(&worker->loop);

	if (err)
		return err;
	err = uv_async_init(&worker->loop, &worker->wake, on_wake);
	if (err)
		uv_loop_close(&worker->loop);
	worker->wake.data = worker;
	return err;
}

static void free_parts(struct worker *worker)
{
	pacer_close(&worker->pacer);
	sampler_close(&worker->sampler);
	free(worker->starved);
	free(worker->held);
	series_clear(&worker->series);
	free(worker);
}

/* Close the loop after the thread, if there was one. */
static void close_loop(struct worker *worker)
{
	uv_run(&worker->loop, UV_RUN_DEFAULT);
	uv_loop_close(&worker->loop);
	if (worker->engine)
		worker->setup.engine->free(worker->engine);
	uv_sem_destroy(&worker->opened);
	pthread_mutex_destroy(&worker->snapshot_lock);
	free_parts(worker);
}

int worker_new(const struct worker_setup *setup, struct worker **ret_worker)
{
	struct worker *worker =
		calloc(1, sizeof(*worker) + setup->slots * sizeof(worker->slots[0]));
	int err;

	if (!worker)
		return -ENOMEM;
	worker->setup = *setup;
	worker->quiet = true;
	worker->starved = calloc(setup->slots, sizeof(*worker->starved));
	worker->held = calloc(setup->slots, sizeof(*worker->held));
	err = worker->starved && worker->held ? sampler_open(&worker->sampler, setup->samples)
					      : -ENOMEM;
	if (!err)
		err = open_loop(worker);
	if (err) {
		free_parts(worker);
		return err;
	}
	pthread_mutex_init(&worker->snapshot_lock, NULL);
	uv_sem_init(&worker->opened, 0);
	err = start_thread(worker);
	if (err)
		close_loop(worker);
	else
		*ret_worker = worker;
	return err;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	worker_set_phase(worker, WORKER_EXIT, 0, 0);
	pthread_join(worker->thread, NULL);
	close_loop(worker);
}

void worker_set_phase(struct worker *worker, enum worker_phase phase, uint64_t begin_ns,
		      uint64_t stop_ns)
{
	if (phase == WORKER_WARMUP || phase == WORKER_MEASURE) {
		atomic_store(&worker->quiet, false);
		atomic_store(&worker->wanted_begin_ns, begin_ns);
		atomic_store(&worker->wanted_stop_ns, stop_ns ? stop_ns : SCHEDULE_NEVER);
	}
	atomic_store(&worker->wanted, phase);
	uv_async_send(&worker->wake);
}

bool worker_is_quiet(struct worker *worker)
{
	return atomic_load_explicit(&worker->quiet, memory_order_acquire);
}

bool worker_has_failed(struct worker *worker)
{
	return atomic_load(&worker->failed);
}

bool worker_has_connected(struct worker *worker)
{
	return atomic_load_explicit(&worker->connected, memory_order_relaxed);
}

const struct engine_result *worker_connect_failure(struct worker *worker)
{
	return atomic_load_explicit(&worker->cannot_connect, memory_order_acquire)
		       ? &worker->connect_failure
		       : NULL;
}

const struct stats *worker_stats(const struct worker *worker)
{
	return &worker->total;
}

const struct series *worker_series(const struct worker *worker)
{
	return &worker->series;
}

int worker_error(const struct worker *worker)
{
	return worker->error;
}

struct sampler *worker_sampler(struct worker *worker)
{
	return &worker->sampler;
}

void worker_ask_snapshot(struct worker *worker)
{
	atomic_store(&worker->snapshot_ready, false);
	atomic_store(&worker->snapshot_wanted, true);
	uv_async_send(&worker->wake);
}

bool worker_has_snapshot(struct worker *worker)
{
	return atomic_load(&worker->snapshot_ready);
}

void worker_add_snapshot(struct worker *worker, struct stats *sum)
{
	atomic_store(&worker->snapshot_ready, false);
	pthread_mutex_lock(&worker->snapshot_lock);
	stats_add(sum, &worker->snapshot);
	pthread_mutex_unlock(&worker->snapshot_lock);
}
