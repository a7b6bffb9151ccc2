// SPDX-License-Identifier: MIT
/* A phase ends while the worker could not run: every request that was due is reported. */
#include "driver/test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "load/worker.h"

#define RATE	 1000
#define LEAD_MS	 50
#define PHASE_MS 40

#define SLOTS 4

/*
 * An engine without a server: requests are answered before start() returns, or wait for a
 * connection.
 */
struct fake {
	const struct engine_host *host;
	uv_timer_t timer;
	uint32_t waiting[SLOTS], waiting_count;
};

/* The worker's thread pauses in a callback of its loop while `hold` is set. */
static atomic_bool hold, holds;
static atomic_uint turns; /* of that callback */
/* Requests wait; when `waits` is cleared, the engine reports that they had no connection. */
static atomic_bool waits;

static void postpone(struct fake *fake)
{
	struct engine_result result = {.not_yet = true};

	while (fake->waiting_count)
		fake->host->done(fake->host, fake->waiting[--fake->waiting_count], &result);
}

static void on_timer(uv_timer_t *timer)
{
	atomic_fetch_add(&turns, 1);
	if (!atomic_load(&waits))
		postpone(timer->data);
	while (atomic_load(&hold)) {
		atomic_store(&holds, true);
		usleep(100);
	}
	atomic_store(&holds, false);
}

static int fake_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	(void)shared;
	assert_non_null(fake);
	fake->host = host;
	uv_timer_init(host->loop, &fake->timer);
	fake->timer.data = fake;
	uv_timer_start(&fake->timer, on_timer, 1, 1);
	*ret_state = fake;
	return 0;
}

static void fake_start(void *state, uint32_t slot)
{
	struct fake *fake = state;
	struct engine_result result = {
		.error = RUN_NO_ERROR, .start_ns = clock_now_ns(), .end_ns = clock_now_ns()};

	if (atomic_load(&waits)) {
		fake->waiting[fake->waiting_count++] = slot;
		return;
	}
	while (fake->host->done(fake->host, slot, &result) == ENGINE_AGAIN)
		;
}

static void fake_expire(void *state, uint64_t over_ns)
{
	(void)over_ns;
}

static void fake_close(void *state)
{
	uv_close((uv_handle_t *)&((struct fake *)state)->timer, NULL);
}

static const struct engine engine = {
	.open = fake_open,
	.start = fake_start,
	.expire = fake_expire,
	.close = fake_close,
	.free = free,
};

static void on_news(uv_async_t *news)
{
	(void)news;
}

static void wait_for(atomic_bool *flag)
{
	while (!atomic_load(flag))
		usleep(100);
}

/* Set a phase and wait until the worker has read it: its loop does so between two turns. */
static void set_phase(struct worker *worker, uint64_t begin_ns, uint64_t end_ns)
{
	unsigned int before;

	worker_set_phase(worker, WORKER_MEASURE, begin_ns, end_ns);
	before = atomic_load(&turns);
	while (atomic_load(&turns) - before < 2)
		usleep(100);
}

/*
 * The worker pauses before anything is due and is then set to rest. It reads that before its own
 * alarm, and finds that the phase has passed.
 */
static void sleep_through_phase(struct worker *worker)
{
	uint64_t begin_ns = clock_now_ns() + LEAD_MS * NSEC_PER_MSEC;

	set_phase(worker, begin_ns, begin_ns + PHASE_MS * NSEC_PER_MSEC);
	atomic_store(&hold, true);
	wait_for(&holds);
	worker_set_phase(worker, WORKER_REST, 0, 0);
	clock_sleep_until(begin_ns + (PHASE_MS + 10) * NSEC_PER_MSEC);
	atomic_store(&hold, false);
	while (!worker_is_quiet(worker))
		usleep(100);
}

/* All slots wait for a connection as the phase ends; afterwards there is none. */
static void wait_through_phase(struct worker *worker)
{
	uint64_t begin_ns = clock_now_ns(), end_ns = begin_ns + PHASE_MS * NSEC_PER_MSEC;

	atomic_store(&waits, true);
	set_phase(worker, begin_ns, end_ns);
	clock_sleep_until(end_ns + NSEC_PER_MSEC);
	worker_set_phase(worker, WORKER_REST, 0, 0);
	usleep(10000);
	atomic_store(&waits, false);
	while (!worker_is_quiet(worker))
		usleep(100);
}

static void check_phase(void (*pass)(struct worker *worker))
{
	struct budget budget = {.left = BUDGET_UNLIMITED};
	struct status_table statuses = {0};
	struct gate gate = {0};
	struct worker *worker = NULL;
	const struct stats *stats;
	uv_async_t news;
	struct worker_setup setup = {
		.engine = &engine,
		.slots = SLOTS,
		.all_slots = SLOTS,
		.interval_ns = NSEC_PER_SEC,
		.sharers = 1,
		.schedule = {.arrival = SCHEDULE_CONSTANT, .rate = RATE},
		.timeout_ns = NSEC_PER_SEC,
		.budget = &budget,
		.gate = &gate,
		.news = &news,
	};

	uv_async_init(uv_default_loop(), &news, on_news);
	assert_int_equal(status_table_open(&statuses, 1), 0);
	setup.statuses = statuses.list;
	assert_int_equal(worker_new(&setup, &worker), 0);
	pass(worker);
	stats = worker_stats(worker);
	assert_int_equal(stats->scheduled, PHASE_MS * RATE / 1000);
	assert_int_equal(stats->requests + stats->unsent, stats->scheduled);
	worker_free(worker);
	status_table_close(&statuses);
	uv_close((uv_handle_t *)&news, NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	uv_loop_close(uv_default_loop());
}

static void test_slept_through(void **state)
{
	check_phase(sleep_through_phase);
}

static void test_waited_through(void **state)
{
	check_phase(wait_through_phase);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slept_through),
		cmocka_unit_test(test_waited_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
