// SPDX-License-Identifier: MIT
/*
 * A thread with a loop. Commands come in through two atomics and an async handle; everything else of
 * a worker belongs to its thread alone, the statistics too, until it is quiet.
 */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "alarm.h"
#include "pacer.h"
#include "sojourn/clock.h"

#define RETRY_MIN_MS 1U
#define RETRY_MAX_MS 100U
#define SWEEP_MIN_MS 1U
#define SWEEP_MAX_MS 50U

/* A slot whose connection failed waits here: ever longer, so that healthy ones do not starve. */
struct slot {
	struct worker *worker;
	uint32_t retry_ms;    /* 0: its last connection was established */
	uint64_t intended_ns; /* paced: when its request was meant to leave */
	uv_timer_t retry;
};

struct worker {
	struct worker_setup setup;
	struct engine_host host;
	void *engine;
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t sweep;

	_Atomic int wanted; /* enum worker_phase */
	atomic_bool quiet;
	atomic_bool snapshot_wanted;
	atomic_bool snapshot_ready;
	pthread_mutex_t snapshot_lock;
	struct stats snapshot;

	enum worker_phase phase;
	bool paced; /* a schedule or a think time says when requests start */
	struct pacer pacer;
	struct alarm alarm;

	bool issuing;
	bool recording;
	bool spent;	  /* the budget, as far as this worker knows */
	uint64_t tickets; /* requests that it may start without asking the budget */
	uint32_t under_way;
	struct stats stats;
	struct slot slots[];
};

static bool take_ticket(struct worker *worker)
{
	if (!worker->tickets) {
		worker->tickets = budget_take(worker->setup.budget);
		worker->spent = !worker->tickets;
		if (worker->spent)
			return false;
	}
	worker->tickets--;
	return true;
}

static void stop_retries(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->setup.slots; i++)
		uv_timer_stop(&worker->slots[i].retry);
}

static void tell_if_quiet(struct worker *worker)
{
	if (worker->under_way || (worker->issuing && !worker->spent))
		return;
	if (atomic_load_explicit(&worker->quiet, memory_order_relaxed))
		return;
	stop_retries(worker);
	atomic_store_explicit(&worker->quiet, true, memory_order_release);
	uv_async_send(worker->setup.news);
}

static void set_alarm(struct worker *worker)
{
	bool over = !worker->issuing || worker->spent;

	alarm_set(&worker->alarm, over ? SCHEDULE_NEVER : pacer_wake_ns(&worker->pacer));
}

/* The slot's request leaves now. */
static void note_sent(struct worker *worker, uint32_t slot, uint64_t intended_ns, uint64_t delay_ns)
{
	worker->slots[slot].intended_ns = intended_ns;
	if (worker->recording)
		stats_record_scheduled(&worker->stats, delay_ns);
}

/* Starts what is due and finds a slot. start() may report a failure before it returns. */
static void start_due(struct worker *worker)
{
	uint64_t now_ns = clock_now_ns();
	struct pacer_due due;

	while (worker->issuing && !worker->spent && pacer_take(&worker->pacer, now_ns, &due)) {
		if (!take_ticket(worker)) {
			pacer_rest(&worker->pacer, due.slot, now_ns);
			break;
		}
		note_sent(worker, due.slot, due.intended_ns, now_ns - due.possible_ns);
		worker->under_way++;
		worker->setup.engine->start(worker->engine, due.slot);
		now_ns = clock_now_ns();
	}
	set_alarm(worker);
}

static void on_alarm(void *user)
{
	struct worker *worker = user;

	start_due(worker);
	tell_if_quiet(worker);
}

static void start_slot(struct worker *worker, uint32_t slot)
{
	if (!worker->issuing || !take_ticket(worker))
		return;
	worker->under_way++;
	worker->setup.engine->start(worker->engine, slot);
}

static void on_retry(uv_timer_t *timer)
{
	struct slot *slot = timer->data;
	struct worker *worker = slot->worker;

	if (worker->paced) {
		pacer_rest(&worker->pacer, (uint32_t)(slot - worker->slots), clock_now_ns());
		start_due(worker);
	} else {
		start_slot(worker, (uint32_t)(slot - worker->slots));
	}
	tell_if_quiet(worker);
}

static void retry_later(struct worker *worker, struct slot *slot)
{
	uint32_t doubled = slot->retry_ms ? slot->retry_ms * 2 : RETRY_MIN_MS;

	slot->retry_ms = doubled < RETRY_MAX_MS ? doubled : RETRY_MAX_MS;
	if (worker->issuing)
		uv_timer_start(&slot->retry, on_retry, slot->retry_ms, 0);
}

static void worker_connected(void *user, uint32_t slot, uint64_t connect_ns)
{
	struct worker *worker = user;

	worker->slots[slot].retry_ms = 0;
	if (worker->recording)
		stats_record_connect(&worker->stats, connect_ns);
}

/* After a response. A request that waited for the slot leaves at once: no delay of ours. */
static bool goes_on(struct worker *worker, uint32_t slot, uint64_t now_ns)
{
	uint64_t intended_ns;

	if (!worker->issuing)
		return false;
	if (!worker->paced)
		return take_ticket(worker);
	if (worker->spent || !pacer_next(&worker->pacer, slot, now_ns, &intended_ns)) {
		set_alarm(worker);
		return false;
	}
	if (!take_ticket(worker))
		return false;
	note_sent(worker, slot, intended_ns, 0);
	return true;
}

static void record(struct worker *worker, uint32_t slot, const struct engine_result *result)
{
	stats_record(&worker->stats, result);
	if (worker->setup.schedule.rate)
		stats_record_response(&worker->stats, result, worker->slots[slot].intended_ns);
}

static enum engine_next worker_done(void *user, uint32_t slot, const struct engine_result *result)
{
	struct worker *worker = user;

	if (worker->recording)
		record(worker, slot, result);
	if (!result->connect_failed && goes_on(worker, slot, result->end_ns))
		return ENGINE_AGAIN;
	worker->under_way--;
	if (result->connect_failed)
		retry_later(worker, &worker->slots[slot]);
	tell_if_quiet(worker);
	return ENGINE_REST;
}

static void on_sweep(uv_timer_t *timer)
{
	struct worker *worker = timer->data;

	worker->setup.engine->expire(worker->engine, clock_now_ns());
}

static void begin_load(struct worker *worker, enum worker_phase phase)
{
	worker->issuing = true;
	worker->recording = phase == WORKER_MEASURE;
	worker->spent = false;
	worker->tickets = 0;
	if (worker->paced) {
		pacer_begin(&worker->pacer, clock_now_ns());
		start_due(worker);
		return;
	}
	for (uint32_t i = 0; i < worker->setup.slots; i++)
		start_slot(worker, i);
}

static void end_load(struct worker *worker)
{
	uint64_t unsent;

	if (worker->paced && worker->issuing && !worker->spent && worker->recording) {
		unsent = pacer_unsent(&worker->pacer, clock_now_ns());
		worker->stats.scheduled += unsent;
		worker->stats.unsent += unsent;
	}
	worker->issuing = false;
	if (worker->paced)
		set_alarm(worker);
	stop_retries(worker);
}

static void leave(struct worker *worker)
{
	worker->setup.engine->close(worker->engine);
	uv_close((uv_handle_t *)&worker->sweep, NULL);
	if (worker->paced)
		alarm_close(&worker->alarm);
	uv_close((uv_handle_t *)&worker->wake, NULL);
	for (uint32_t i = 0; i < worker->setup.slots; i++)
		uv_close((uv_handle_t *)&worker->slots[i].retry, NULL);
}

static void publish(struct worker *worker)
{
	pthread_mutex_lock(&worker->snapshot_lock);
	worker->snapshot = worker->stats;
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
		end_load(worker);
	else
		begin_load(worker, phase);
	tell_if_quiet(worker);
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
		tell_if_quiet(worker);
}

static void *run_thread(void *argument)
{
	struct worker *worker = argument;

	uv_run(&worker->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* Signals are the main thread's. */
static int start_thread(struct worker *worker)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&worker->thread, NULL, run_thread, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
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
	uv_timer_start(&worker->sweep, on_sweep, interval, interval);
	for (uint32_t i = 0; i < worker->setup.slots; i++) {
		worker->slots[i].worker = worker;
		worker->slots[i].retry.data = &worker->slots[i];
		uv_timer_init(&worker->loop, &worker->slots[i].retry);
	}
}

static void close_loop(struct worker *worker)
{
	uv_run(&worker->loop, UV_RUN_DEFAULT);
	uv_loop_close(&worker->loop);
	worker->setup.engine->free(worker->engine);
	pacer_close(&worker->pacer);
	pthread_mutex_destroy(&worker->snapshot_lock);
	free(worker);
}

/* Leaves nothing behind if it fails. */
static int open_pacing(struct worker *worker)
{
	const struct worker_setup *setup = &worker->setup;
	int err;

	worker->paced = setup->schedule.rate || setup->schedule.think_ns;
	if (!worker->paced)
		return 0;
	err = pacer_open(&worker->pacer, &setup->schedule, setup->sharer, setup->sharers,
			 setup->slots);
	if (err)
		return err;
	err = alarm_open(&worker->alarm, &worker->loop, on_alarm, worker);
	if (err)
		pacer_close(&worker->pacer);
	return err;
}

static int open_engine(struct worker *worker)
{
	worker->host = (struct engine_host){
		.loop = &worker->loop,
		.slots = worker->setup.slots,
		.user = worker,
		.connected = worker_connected,
		.done = worker_done,
	};
	return worker->setup.engine->open(&worker->host, worker->setup.shared, &worker->engine);
}

/* Leaves nothing behind if it fails. */
static int open_loop(struct worker *worker)
{
	int err = uv_loop_init(&worker->loop);

	if (err)
		return err;
	err = uv_async_init(&worker->loop, &worker->wake, on_wake);
	if (err) {
		uv_loop_close(&worker->loop);
		return err;
	}
	worker->wake.data = worker;
	err = open_pacing(worker);
	if (!err) {
		err = open_engine(worker);
		if (err && worker->paced)
			alarm_close(&worker->alarm);
	}
	if (err) {
		uv_close((uv_handle_t *)&worker->wake, NULL);
		uv_run(&worker->loop, UV_RUN_DEFAULT);
		uv_loop_close(&worker->loop);
		pacer_close(&worker->pacer);
	}
	return err;
}

int worker_new(const struct worker_setup *setup, struct worker **ret_worker)
{
	struct worker *worker;
	int err;

	worker = calloc(1, sizeof(*worker) + setup->slots * sizeof(worker->slots[0]));
	if (!worker)
		return -ENOMEM;
	worker->setup = *setup;
	worker->quiet = true;
	err = open_loop(worker);
	if (err) {
		free(worker);
		return err;
	}
	pthread_mutex_init(&worker->snapshot_lock, NULL);
	open_timers(worker);
	err = start_thread(worker);
	if (err) {
		leave(worker);
		close_loop(worker);
		return err;
	}
	*ret_worker = worker;
	return 0;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	worker_set_phase(worker, WORKER_EXIT);
	pthread_join(worker->thread, NULL);
	close_loop(worker);
}

void worker_set_phase(struct worker *worker, enum worker_phase phase)
{
	if (phase == WORKER_WARMUP || phase == WORKER_MEASURE)
		atomic_store(&worker->quiet, false);
	atomic_store(&worker->wanted, phase);
	uv_async_send(&worker->wake);
}

bool worker_is_quiet(struct worker *worker)
{
	return atomic_load_explicit(&worker->quiet, memory_order_acquire);
}

const struct stats *worker_stats(const struct worker *worker)
{
	return &worker->stats;
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
