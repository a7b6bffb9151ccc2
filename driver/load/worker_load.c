// SPDX-License-Identifier: MIT
/*
 * When a worker's slots start requests, and how their results count: closed loop, along a ramp,
 * paced, waiting after a failure or for a port. Runs on the worker's thread alone.
 */
#include <math.h>
#include <string.h>

#include "share.h"
#include "sojourn/clock.h"
#include "worker_impl.h"

#define RETRY_MIN_MS 1U
#define RETRY_MAX_MS 100U

/* The last interval ends with the phase, though responses still arrive. */
static void set_roll(struct worker *worker, uint64_t now_ns)
{
	uint64_t end_ns = series_end_of(&worker->series, now_ns);

	worker->drains = now_ns >= worker->stop_ns;
	if (worker->drains)
		worker->roll_ns = SCHEDULE_NEVER;
	else
		worker->roll_ns = end_ns < worker->stop_ns ? end_ns : worker->stop_ns;
}

static void roll(struct worker *worker, uint64_t now_ns)
{
	int err = 0;

	if (!worker->drains)
		err = series_put(&worker->series, worker->roll_ns - 1, &worker->stats);
	worker->error = worker->error ? worker->error : err;
	stats_add(&worker->total, &worker->stats);
	worker->stats = (struct stats){0};
	set_roll(worker, now_ns);
}

static void begin_recording(struct worker *worker, uint64_t begin_ns)
{
	const struct worker_setup *setup = &worker->setup;

	worker->stats = worker->total = (struct stats){0};
	if (setup->steps)
		memset(setup->steps, 0, setup->step_count * sizeof(*setup->steps));
	status_rows_clear(setup->statuses);
	sampler_reset(&worker->sampler);
	series_clear(&worker->series);
	series_begin(&worker->series, begin_ns, setup->interval_ns, setup->schedule.rate);
	set_roll(worker, begin_ns);
}

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
	uv_timer_stop(&worker->probe);
	worker->starved_count = 0;
	worker->probe_ms = 0;
	worker->starved_ns = 0;
	uv_timer_stop(&worker->gate);
	worker->held_count = 0;
	uv_timer_stop(&worker->ramp);
}

void worker_tell_if_quiet(struct worker *worker)
{
	if (worker->under_way || (worker->issuing && !worker->spent))
		return;
	if (atomic_load_explicit(&worker->quiet, memory_order_relaxed))
		return;
	stop_retries(worker);
	if (worker->recording) {
		roll(worker, worker->roll_ns - 1);
		status_rows_settle(worker->setup.statuses, &worker->total);
	}
	worker->recording = false;
	atomic_store_explicit(&worker->quiet, true, memory_order_release);
	uv_async_send(worker->setup.news);
}

/* Park an idle slot that may not send: it is beyond the ramp's number, or all slots rest. */
static void park(struct worker *worker, uint32_t slot)
{
	if (!worker->issuing)
		return; /* keep its connection for the next phase */
	worker->slots[slot].parked = true;
	if (worker->setup.engine->retire)
		worker->setup.engine->retire(worker->engine, slot);
}

/*
 * Under a rate, look at the schedule this often even if no slot rests. The look shows an absence of
 * the worker, whose delays are then the driver's, not the server's. It also shows new deals.
 */
#define LOOK_NS (10 * NSEC_PER_MSEC)
/* An alarm late by less than this is no absence: the loop was just busy. */
#define ABSENT_LEAST_NS NSEC_PER_MSEC

static void set_alarm(struct worker *worker)
{
	bool over = !worker->issuing || worker->spent;
	uint64_t wake_ns = pacer_wake_ns(&worker->pacer), look_ns;

	if (worker->setup.schedule.arrival != SCHEDULE_CLOSED &&
	    (wake_ns == SCHEDULE_NEVER || worker->setup.schedule.deals)) {
		look_ns = clock_now_ns() + LOOK_NS;
		wake_ns = wake_ns < look_ns ? wake_ns : look_ns;
	}

	alarm_set(&worker->alarm, over || wake_ns >= worker->stop_ns ? SCHEDULE_NEVER : wake_ns);
}

/* Requests due at the end of the phase, or later, are not sent. */
static uint64_t due_by(const struct worker *worker, uint64_t now_ns)
{
	return now_ns < worker->stop_ns ? now_ns : worker->stop_ns - 1;
}

/* Note that the slot's request leaves now; give_back() reverts this if it cannot. */
static void note_sent(struct worker *worker, uint32_t slot, uint64_t intended_ns, uint64_t delay_ns)
{
	worker->slots[slot].intended_ns = intended_ns;
	worker->slots[slot].delay_ns = delay_ns;
	worker->stats.scheduled += worker->recording;
}

/* Start due requests that find a slot. start() may report a failure before it returns. */
static void start_due(struct worker *worker)
{
	uint64_t now_ns = clock_now_ns();
	struct pacer_due due;

	while (worker->issuing && !worker->spent &&
	       pacer_take(&worker->pacer, due_by(worker, now_ns), &due)) {
		if (due.slot >= worker->active) {
			park(worker, due.slot);
			continue;
		}
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

void worker_on_alarm(void *user)
{
	struct worker *worker = user;
	uint64_t now_ns = clock_now_ns(), due_ns = worker->alarm.due_ns;

	if (due_ns && now_ns > due_ns + ABSENT_LEAST_NS)
		pacer_absent(&worker->pacer, due_ns, now_ns);
	start_due(worker);
	worker_tell_if_quiet(worker);
}

static void start_slot(struct worker *worker, uint32_t slot)
{
	if (slot >= worker->active) {
		park(worker, slot);
		return;
	}
	if (!take_ticket(worker))
		return;
	worker->under_way++;
	worker->setup.engine->start(worker->engine, slot);
}

static void resume_slot(struct worker *worker, uint32_t slot)
{
	if (worker->paced) {
		pacer_rest(&worker->pacer, slot, clock_now_ns());
		start_due(worker);
	} else {
		start_slot(worker, slot);
	}
}

static void on_probe(uv_timer_t *timer)
{
	struct worker *worker = timer->data;
	uint32_t batch = worker->probe_batch;

	while (batch-- && worker->starved_count && worker->issuing)
		resume_slot(worker, worker->starved[--worker->starved_count]);
	worker_tell_if_quiet(worker);
}

static void probe_later(struct worker *worker)
{
	if (worker->issuing && worker->starved_count &&
	    !uv_is_active((uv_handle_t *)&worker->probe))
		uv_timer_start(&worker->probe, on_probe, worker->probe_ms, 0);
}

/* Give the slot's unsent request back: another slot, or this one later, will send it. */
static void give_back(struct worker *worker, uint32_t slot)
{
	worker->tickets++;
	worker->spent = false;
	if (worker->paced && worker->recording)
		worker->stats.scheduled--; /* counted again when it leaves */
	if (worker->paced)
		pacer_return(&worker->pacer, worker->slots[slot].intended_ns);
}

/*
 * A lack of ports or descriptors is a state of this host, no answer to the request. Give the
 * request back, for slots with a connection. After a whole time limit without any, fail it, so that
 * a counted run ends.
 */
static void starve(struct worker *worker, uint32_t slot, uint64_t now_ns)
{
	bool others = worker->under_way || (worker->paced && worker->pacer.resting);
	uint32_t doubled = worker->probe_ms ? worker->probe_ms * 2 : RETRY_MIN_MS;

	if (!worker->starved_ns)
		worker->starved_ns = now_ns;
	if (worker->issuing && (others || now_ns - worker->starved_ns < worker->setup.timeout_ns))
		give_back(worker, slot);
	if (!uv_is_active((uv_handle_t *)&worker->probe))
		worker->probe_ms = doubled < RETRY_MAX_MS ? doubled : RETRY_MAX_MS;
	worker->probe_batch = 1;
	worker->starved[worker->starved_count++] = slot;
	probe_later(worker);
}

static void end_starving(struct worker *worker)
{
	if (!worker->probe_ms)
		return;
	worker->starved_ns = 0;
	worker->probe_ms = RETRY_MIN_MS;
	if (worker->probe_batch < worker->setup.slots)
		worker->probe_batch *= 2;
	probe_later(worker);
	if (!worker->starved_count)
		worker->probe_ms = 0;
}

static bool is_starved(const struct engine_result *result)
{
	return result->connect_failed && (result->error == RUN_ERROR_ADDRESS_UNAVAILABLE ||
					  result->error == RUN_ERROR_TOO_MANY_FILES);
}

static void open_gate_later(struct worker *worker);

/* Slots that find the gate closed again return to the list. */
static void on_gate(uv_timer_t *timer)
{
	struct worker *worker = timer->data;
	uint32_t count = worker->held_count;

	worker->gate_ns = 0;
	while (count-- && worker->held_count && !worker->gate_ns && worker->issuing)
		resume_slot(worker, worker->held[--worker->held_count]);
	open_gate_later(worker);
	worker_tell_if_quiet(worker);
}

static void open_gate_later(struct worker *worker)
{
	uint64_t now_ns = clock_now_ns(), wait_ns;

	if (!worker->issuing || !worker->held_count || uv_is_active((uv_handle_t *)&worker->gate))
		return;
	wait_ns = worker->gate_ns > now_ns ? worker->gate_ns - now_ns : 0;
	uv_timer_start(&worker->gate, on_gate, wait_ns / NSEC_PER_MSEC + 1, 0);
}

bool worker_may_connect(void *user)
{
	struct worker *worker = user;

	worker->gate_ns = gate_pass(worker->setup.gate, clock_now_ns());
	return !worker->gate_ns;
}

static void hold(struct worker *worker, uint32_t slot)
{
	if (worker->issuing)
		give_back(worker, slot);
	worker->stats.unsent += !worker->issuing && worker->paced && worker->recording;
	worker->held[worker->held_count++] = slot;
	open_gate_later(worker);
}

static void on_retry(uv_timer_t *timer)
{
	struct slot *slot = timer->data;
	struct worker *worker = slot->worker;

	resume_slot(worker, (uint32_t)(slot - worker->slots));
	worker_tell_if_quiet(worker);
}

static void retry_later(struct worker *worker, struct slot *slot)
{
	uint32_t doubled = slot->retry_ms ? slot->retry_ms * 2 : RETRY_MIN_MS;

	slot->retry_ms = doubled < RETRY_MAX_MS ? doubled : RETRY_MAX_MS;
	if (worker->issuing)
		uv_timer_start(&slot->retry, on_retry, slot->retry_ms, 0);
}

void worker_connected(void *user, uint32_t slot, uint64_t connect_ns)
{
	struct worker *worker = user;
	uint64_t now_ns;

	worker->slots[slot].retry_ms = 0;
	atomic_store_explicit(&worker->connected, true, memory_order_relaxed);
	end_starving(worker);
	if (!worker->recording)
		return;
	now_ns = clock_now_ns();
	if (now_ns >= worker->roll_ns)
		roll(worker, now_ns);
	stats_record_connect(&worker->stats, connect_ns);
}

void worker_secured(void *user, uint64_t tls_ns)
{
	struct worker *worker = user;

	if (worker->recording)
		histogram_record(&worker->stats.tls, tls_ns);
}

/*
 * After a response, return whether the slot sends again. A request that waited for this slot was
 * not delayed by the driver.
 */
static bool goes_on(struct worker *worker, uint32_t slot, uint32_t step, uint64_t now_ns)
{
	const uint64_t *thinks = worker->setup.step_think_ns;
	struct pacer_due due;

	if (slot >= worker->active) {
		park(worker, slot);
		return false;
	}
	if ((!worker->paced || (thinks && !thinks[step])) && now_ns >= worker->stop_ns)
		return false;
	if (!worker->paced)
		return take_ticket(worker);
	if (thinks && !thinks[step])
		return take_ticket(worker) && (note_sent(worker, slot, now_ns, 0), true);
	if (thinks)
		worker->pacer.spec.think_ns = thinks[step];
	if (worker->spent || !pacer_next(&worker->pacer, slot, due_by(worker, now_ns), &due)) {
		set_alarm(worker);
		return false;
	}
	if (!take_ticket(worker))
		return false;
	note_sent(worker, slot, due.intended_ns, now_ns - due.possible_ns);
	return true;
}

static void tell_failure(struct worker *worker, const struct engine_result *result)
{
	if (engine_failure(result) != RUN_NO_ERROR && !atomic_exchange(&worker->failed, true))
		uv_async_send(worker->setup.news);
}

/* The hash alone decides whether to keep a sample: the observer decides the same way. */
static void sample(struct worker *worker, uint32_t slot, const struct engine_result *result)
{
	uint32_t hash = exchange_hash(result->flow_hash, result->index);
	struct sample taken;

	if (result->error != RUN_NO_ERROR || !sampler_wants(&worker->sampler, hash))
		return;
	taken = (struct sample){
		.flow = *result->flow,
		.index = result->index,
		.hash = hash,
		.step = result->step,
		.start_ns = result->start_ns,
		.round_trip_ns = result->end_ns - result->start_ns,
		.bytes_in = result->bytes_in,
		.bytes_out = result->bytes_out,
	};
	if (worker->setup.schedule.rate)
		taken.wait_ns = result->start_ns - worker->slots[slot].intended_ns;
	sampler_add(&worker->sampler, &taken);
}

static void record(struct worker *worker, uint32_t slot, const struct engine_result *result)
{
	uint64_t intended_ns = worker->setup.schedule.rate ? worker->slots[slot].intended_ns : 0;
	bool late;

	if (result->end_ns >= worker->roll_ns)
		roll(worker, result->end_ns);
	/* a response that ended after the phase */
	late = worker->drains && result->error == RUN_NO_ERROR && result->end_ns > worker->stop_ns;
	if (!status_rows_is_same(worker->setup.statuses, result))
		status_rows_record(worker->setup.statuses, result, intended_ns, late,
				   &worker->total, &worker->stats);
	stats_record(&worker->stats, result);
	if (late)
		stats_record_late(&worker->stats, result->end_ns - worker->stop_ns);
	if (result->flow)
		sample(worker, slot, result);
	if (worker->setup.tell_failure)
		tell_failure(worker, result);
	if (intended_ns)
		stats_record_response(&worker->stats, result, intended_ns);
	if (worker->setup.steps)
		row_stats_record(&worker->setup.steps[result->step], result, intended_ns, late);
}

void worker_note(void *user, enum run_datagram what, uint64_t count)
{
	struct worker *worker = user;

	if (worker->recording)
		worker->stats.datagrams[what] += count;
}

/* Failures by which the server, or the way to it, refuses. A time limit proves nothing. */
static const bool is_refusal[RUN_ERROR_COUNT + 1] = {
	[RUN_ERROR_REFUSED] = true,	[RUN_ERROR_CONNECT_OTHER] = true,  [RUN_ERROR_TLS] = true,
	[RUN_ERROR_CERTIFICATE] = true, [RUN_ERROR_NOT_NEGOTIATED] = true,
};

static void note_refusal(struct worker *worker, const struct engine_result *result)
{
	if (!is_refusal[result->error] ||
	    atomic_load_explicit(&worker->cannot_connect, memory_order_relaxed))
		return;
	worker->connect_failure = *result;
	worker->connect_failure.tell = NULL; /* valid only while its connection exists */
	atomic_store_explicit(&worker->cannot_connect, true, memory_order_release);
}

enum engine_next worker_done(const struct engine_host *host, uint32_t slot,
			     struct engine_result *result)
{
	struct worker *worker = host->user;

	/* A scenario's slot retries another server soon after a success. */
	if (result->error == RUN_NO_ERROR)
		worker->slots[slot].retry_ms = 0;
	if (worker->recording && !result->not_yet)
		record(worker, slot, result);
	if (worker->recording && worker->paced && !result->not_yet && !is_starved(result))
		histogram_record(&worker->stats.schedule_delay, worker->slots[slot].delay_ns);
	if (!result->connect_failed && !result->not_yet &&
	    goes_on(worker, slot, result->step, result->end_ns))
		return ENGINE_AGAIN;
	worker->under_way--;
	if (result->connect_failed)
		note_refusal(worker, result);
	if (result->not_yet)
		hold(worker, slot);
	else if (is_starved(result))
		starve(worker, slot, result->end_ns);
	else if (result->connect_failed)
		retry_later(worker, &worker->slots[slot]);
	worker_tell_if_quiet(worker);
	return ENGINE_REST;
}

/* ---- closed loop along a shape of --connections: surplus slots are parked ---- */

static uint32_t follow_ramp(struct worker *worker);

static void on_ramp(uv_timer_t *timer)
{
	struct worker *worker = timer->data;
	uint32_t before = worker->active;

	if (!worker->issuing)
		return;
	worker->active = follow_ramp(worker);
	/* Slots in flight park when their response has come. */
	for (uint32_t i = before; i < worker->active; i++) {
		if (!worker->slots[i].parked)
			continue;
		worker->slots[i].parked = false;
		resume_slot(worker, i);
	}
	worker_tell_if_quiet(worker);
}

/* Return how many slots may send now, and set the timer for the next change. */
static uint32_t follow_ramp(struct worker *worker)
{
	const struct worker_setup *setup = &worker->setup;
	double now_ns = 0, until_ns;
	uint64_t clock_ns = clock_now_ns();
	uint32_t count;

	if (worker->recording && clock_ns > worker->ramp_begin_ns)
		now_ns = (double)(clock_ns - worker->ramp_begin_ns);
	count = shape_connections_at(setup->ramp, now_ns, &until_ns);
	if (worker->recording && isinf(until_ns))
		uv_timer_stop(&worker->ramp);
	else if (worker->recording)
		uv_timer_start(&worker->ramp, on_ramp,
			       (uint64_t)fmax(ceil((until_ns - now_ns) / (double)NSEC_PER_MSEC), 1),
			       0);
	return share_of(count, setup->sharers, setup->sharer) * setup->slots_each;
}

/* Warm-up and cool-down have the initial number of connections. */
static void begin_ramp(struct worker *worker, uint64_t begin_ns)
{
	worker->ramp_begin_ns = begin_ns;
	worker->active = worker->setup.slots;
	if (worker->setup.ramp)
		worker->active = follow_ramp(worker);
	for (uint32_t i = 0; i < worker->setup.slots; i++) {
		worker->slots[i].parked = false;
		/* With think times all slots begin at rest, and park when their time comes. */
		if (i >= worker->active && !worker->paced)
			park(worker, i);
	}
}

void worker_begin_load(struct worker *worker, enum worker_phase phase, uint64_t begin_ns,
		       uint64_t stop_ns)
{
	worker->stop_ns = stop_ns;
	worker->issuing = true;
	worker->recording = phase == WORKER_MEASURE;
	if (worker->recording)
		begin_recording(worker, begin_ns);
	worker->spent = false;
	worker->tickets = 0;
	begin_ramp(worker, begin_ns);
	if (worker->paced) {
		if (worker->recording)
			pacer_begin(&worker->pacer, begin_ns);
		else
			pacer_begin_level(&worker->pacer, begin_ns);
		start_due(worker);
		return;
	}
	for (uint32_t i = 0; i < worker->active; i++)
		start_slot(worker, i);
}

void worker_end_load(struct worker *worker)
{
	uint64_t now_ns = clock_now_ns();

	if (worker->paced)
		start_due(worker); /* this command may precede the alarm of due requests */
	if (now_ns < worker->stop_ns)
		worker->stop_ns = now_ns; /* earlier than planned */
	if (worker->paced && worker->issuing && !worker->spent && worker->recording) {
		uint64_t unsent = pacer_unsent(&worker->pacer, worker->stop_ns);

		worker->stats.scheduled += unsent;
		worker->stats.unsent += unsent;
	}
	worker->issuing = false;
	worker->active = 0;
	if (worker->stop_ns < worker->roll_ns && !worker->drains)
		worker->roll_ns = worker->stop_ns;
	if (worker->paced)
		set_alarm(worker);
	stop_retries(worker);
}
