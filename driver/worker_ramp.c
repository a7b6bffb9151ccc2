// SPDX-License-Identifier: MIT
/*
 * Closed loop along a shape of --connections: slots beyond the number of the moment are parked, without a
 * connection, until it rises again. Neighbours: ramp.h (how many when), worker_load.c (the requests).
 */
#include <math.h>

#include "ramp.h"
#include "share.h"
#include "sojourn/clock.h"
#include "worker_impl.h"

static void on_ramp(uv_timer_t *timer)
{
	worker_move_ramp(timer->data);
}

void worker_open_ramp(struct worker *worker)
{
	uv_timer_init(&worker->loop, &worker->ramp);
	worker->ramp.data = worker;
}

static void wake_at(struct worker *worker, double until_ns, double now_ns)
{
	double wait_ms = ceil((until_ns - now_ns) / (double)NSEC_PER_MSEC);

	if (isinf(until_ns))
		uv_timer_stop(&worker->ramp);
	else
		uv_timer_start(&worker->ramp, on_ramp, (uint64_t)fmax(wait_ms, 1), 0);
}

/* How many slots may send now; sees to it that somebody looks again when this changes. */
static uint32_t look(struct worker *worker)
{
	const struct worker_setup *setup = &worker->setup;
	double now_ns = 0, until_ns;
	uint64_t clock_ns = clock_now_ns();
	uint32_t count;

	if (worker->recording && clock_ns > worker->ramp_begin_ns)
		now_ns = (double)(clock_ns - worker->ramp_begin_ns);
	count = ramp_at(setup->ramp, now_ns, &until_ns);
	if (worker->recording)
		wake_at(worker, until_ns, now_ns);
	return share_of(count, setup->sharers, setup->sharer) * setup->slots_each;
}

/* Warm-up and cool-down have what the shape begins with. */
void worker_begin_ramp(struct worker *worker, uint64_t begin_ns)
{
	worker->ramp_begin_ns = begin_ns;
	worker->active = worker->setup.slots;
	if (worker->setup.ramp)
		worker->active = look(worker);
	for (uint32_t i = 0; i < worker->setup.slots; i++) {
		worker->slots[i].parked = false;
		/* With think times all begin at rest, and park when they rise from it. */
		if (i >= worker->active && !worker->paced)
			worker_park(worker, i);
	}
}

void worker_park(struct worker *worker, uint32_t slot)
{
	if (!worker->issuing)
		return; /* its connection stays for the next phase */
	worker->slots[slot].parked = true;
	if (worker->setup.engine->retire)
		worker->setup.engine->retire(worker->engine, slot);
}

void worker_move_ramp(struct worker *worker)
{
	uint32_t before = worker->active;

	if (!worker->issuing)
		return;
	worker->active = look(worker);
	/* Those that are under way park when they have their response. */
	for (uint32_t i = before; i < worker->active; i++) {
		if (!worker->slots[i].parked)
			continue;
		worker->slots[i].parked = false;
		worker_resume_slot(worker, i);
	}
	worker_tell_if_quiet(worker);
}
