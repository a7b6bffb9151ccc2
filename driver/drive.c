// SPDX-License-Identifier: MIT
/*
 * Carries a run out. The main thread has a loop of its own, with signals, the end of a phase and the
 * progress line; it runs while a phase lasts, and in between the observer is spoken to. Workers do
 * the load; they are never touched but by worker.h's calls.
 */
#include "drive.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "observer.h"
#include "progress.h"
#include "refuse.h"
#include "result.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "worker.h"

#define TICK_MS 1000U

struct drive {
	const struct drive_job *job;
	uv_loop_t loop;
	uv_async_t news; /* from the workers */
	uv_timer_t deadline;
	uv_timer_t tick;
	uv_signal_t signals[2];
	bool interrupted;
	bool measuring;
	struct budget budget;
	struct gate gate;
	struct result_phase phase;
	struct progress progress;
	struct stats total;
	uint32_t worker_samples; /* what each may keep */
	uint32_t worker_count;
	struct worker *workers[];
};

static bool are_all(struct drive *drive, bool (*is)(struct worker *))
{
	for (uint32_t i = 0; i < drive->worker_count; i++)
		if (!is(drive->workers[i]))
			return false;
	return true;
}

static void set_phase(struct drive *drive, enum worker_phase phase)
{
	for (uint32_t i = 0; i < drive->worker_count; i++)
		worker_set_phase(drive->workers[i], phase);
}

/* What is under way runs out; news tells when. */
static void stop_load(struct drive *drive)
{
	if (!drive->phase.stop_ns)
		drive->phase.stop_ns = clock_now_ns();
	set_phase(drive, WORKER_REST);
}

static void on_deadline(uv_timer_t *timer)
{
	stop_load(timer->data);
}

/* The second one is not for us: the user wants to be gone. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct drive *drive = handle->data;

	if (drive->interrupted) {
		progress_clear(&drive->progress);
		signal(number, SIG_DFL);
		raise(number);
	}
	drive->interrupted = true;
	stop_load(drive);
}

static void show_progress(struct drive *drive)
{
	drive->progress.now = (struct stats){0};
	for (uint32_t i = 0; i < drive->worker_count; i++)
		worker_add_snapshot(drive->workers[i], &drive->progress.now);
	progress_update(&drive->progress);
}

static void on_tick(uv_timer_t *timer)
{
	struct drive *drive = timer->data;

	if (!drive->measuring) {
		progress_warmup(&drive->progress);
		return;
	}
	for (uint32_t i = 0; i < drive->worker_count; i++)
		worker_ask_snapshot(drive->workers[i]);
}

static bool has_new_snapshots(struct drive *drive)
{
	return drive->measuring && progress_is_shown(&drive->progress) &&
	       are_all(drive, worker_has_snapshot);
}

/* --fail-fast: the first failure ends the run; once is enough. */
static bool has_to_fail(struct drive *drive)
{
	if (!drive->job->options->fail_fast || !drive->measuring || drive->phase.stop_ns)
		return false;
	for (uint32_t i = 0; i < drive->worker_count; i++)
		if (worker_has_failed(drive->workers[i]))
			return true;
	return false;
}

static void on_news(uv_async_t *news)
{
	struct drive *drive = news->data;

	if (has_to_fail(drive))
		stop_load(drive);
	if (are_all(drive, worker_is_quiet))
		uv_stop(&drive->loop);
	else if (has_new_snapshots(drive))
		show_progress(drive);
}

static uint64_t round_up_ms(uint64_t ns)
{
	return ns / NSEC_PER_MSEC + (ns % NSEC_PER_MSEC != 0);
}

/* Returns when every worker is quiet: nothing of this phase reaches into the next one. */
static void run_phase(struct drive *drive, enum worker_phase phase, uint64_t duration_ns,
		      uint64_t requests)
{
	atomic_store(&drive->budget.left, requests ? requests : BUDGET_UNLIMITED);
	drive->measuring = phase == WORKER_MEASURE;
	drive->phase.stop_ns = 0;
	progress_begin_phase(&drive->progress);
	uv_update_time(&drive->loop);
	if (duration_ns)
		uv_timer_start(&drive->deadline, on_deadline, round_up_ms(duration_ns), 0);
	if (progress_is_shown(&drive->progress))
		uv_timer_start(&drive->tick, on_tick, TICK_MS, TICK_MS);
	set_phase(drive, phase);
	uv_run(&drive->loop, UV_RUN_DEFAULT);
	uv_timer_stop(&drive->deadline);
	uv_timer_stop(&drive->tick);
	progress_clear(&drive->progress);
}

static void warm_up(struct drive *drive)
{
	uint64_t begin_ns = clock_now_ns();

	if (!drive->job->options->warmup_ns)
		return;
	run_phase(drive, WORKER_WARMUP, drive->job->options->warmup_ns, 0);
	drive->phase.warmup_ns = drive->phase.stop_ns - begin_ns;
}

static void measure(struct drive *drive)
{
	const struct options *options = drive->job->options;

	getrusage(RUSAGE_SELF, &drive->phase.usage_begin);
	drive->phase.begin_ns = clock_now_ns();
	run_phase(drive, WORKER_MEASURE, options->duration_ns, options->requests);
	getrusage(RUSAGE_SELF, &drive->phase.usage_end);
	for (uint32_t i = 0; i < drive->worker_count; i++)
		stats_add(&drive->total, worker_stats(drive->workers[i]));
	if (!drive->phase.stop_ns && !drive->total.last_ns)
		drive->phase.stop_ns = clock_now_ns(); /* a counted run without one response */
}

/* Lets Ctrl-C be noticed while libcurl waits: the loop does not run then. */
static bool is_interrupted(void *user)
{
	struct drive *drive = user;
	bool before = drive->interrupted;

	uv_run(&drive->loop, UV_RUN_NOWAIT);
	return drive->interrupted && !before;
}

/* The driver's results stand without the observer's; the document says why these are missing. */
static int merge_observer(struct observer *observer, struct run *run)
{
	CLEANUP(cleanup_run_free) struct run *observed = NULL;
	char **ret_reason = &run->driver->observer_error;
	int err = observer_end(observer, &observed, ret_reason);

	if (!err && observed->driver)
		err = refuse(ret_reason, "the document does not hold an observer's part alone");
	if (!err)
		err = run_merge(run, observed, ret_reason);
	return err == -ENOMEM ? err : 0;
}

/* The workers' samples below the lowest of their thresholds: all exchanges below it. */
static int merge_samples(struct drive *drive, struct sampler *ret_sum)
{
	uint32_t each = drive->worker_samples;
	int err = sampler_open(ret_sum, each * drive->worker_count);

	for (uint32_t i = 0; !err && i < drive->worker_count; i++)
		sampler_merge(ret_sum, worker_sampler(drive->workers[i]));
	return err;
}

static int fill_samples(struct drive *drive, struct run_driver *driver)
{
	CLEANUP(sampler_close) struct sampler sum = {0};
	int err;

	if (!drive->worker_samples)
		return 0;
	if (!drive->job->engine->sampled) {
		driver->unsampled = strdup("the driver does not sample this kind of target");
		return driver->unsampled ? 0 : -ENOMEM;
	}
	err = merge_samples(drive, &sum);
	if (err)
		return err;
	driver->samples = sampler_result(&sum, drive->job->options->schedule.rate != 0);
	return driver->samples ? 0 : -ENOMEM;
}

/* Exchange by exchange; the raw samples are not needed any more then, unless they are wanted. */
static int join_observer(struct drive *drive, struct run *run)
{
	const struct options *options = drive->job->options;
	int err = join_run(run, options->slowest);

	if (!err && !options->keep_samples)
		join_drop_samples(run);
	return err;
}

/* Keeps the load on while others still measure. */
static void cool_down(struct drive *drive)
{
	uint64_t duration_ns = drive->job->options->cooldown_ns;

	if (duration_ns && !drive->interrupted)
		run_phase(drive, WORKER_WARMUP, duration_ns, 0);
}

static int measure_and_fill(struct drive *drive, struct observer *observer, struct run **ret_run)
{
	autorun struct run *run = run_new("sojourn-drive", drive->job->command);
	int err;

	if (!run)
		return -ENOMEM;
	measure(drive);
	err = result_fill(drive->job->options, &drive->total, &drive->phase, run);
	if (!err)
		err = fill_samples(drive, run->driver);
	if (!err && observer)
		err = merge_observer(observer, run);
	cool_down(drive);
	if (!err && observer)
		err = join_observer(drive, run);
	if (!err)
		*ret_run = TAKE_PTR(run);
	return err;
}

/* Whether the observer answers as one must be known before any load, and warm-up is load. */
static int rehearse_observer(struct observer *observer, char **ret_error)
{
	autorun struct run *unused = NULL;
	int err = observer_begin(observer, ret_error);

	return err ? err : observer_end(observer, &unused, ret_error);
}

static int open_observer(struct drive *drive, struct observer **ret_observer, char **ret_error)
{
	const struct options *options = drive->job->options;
	struct observer_patience patience = {.is_over = is_interrupted, .user = drive};
	int err;

	if (!options->observer_url)
		return 0;
	err = observer_new(options->observer_url, patience, ret_observer);
	if (!err && options->warmup_ns)
		err = rehearse_observer(*ret_observer, ret_error);
	return err;
}

static int run_phases(struct drive *drive, struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_observer_free) struct observer *observer = NULL;
	int err = open_observer(drive, &observer, ret_error);

	if (err)
		return err;
	warm_up(drive);
	if (drive->interrupted)
		return refuse(ret_error,
			      "interrupted before the measured phase: nothing to report");
	if (observer)
		err = observer_begin(observer, ret_error);
	if (err)
		return err;
	return measure_and_fill(drive, observer, ret_run);
}

static int start_workers(struct drive *drive)
{
	const struct options *options = drive->job->options;
	struct worker_setup setup = {
		.engine = drive->job->engine,
		.shared = drive->job->shared,
		.timeout_ns = options->timeout_ns,
		.sharers = options->threads,
		.tell_failure = options->fail_fast,
		.samples = drive->worker_samples,
		.schedule = options->schedule,
		.budget = &drive->budget,
		.gate = &drive->gate,
		.news = &drive->news,
	};
	int err;

	if (getrandom(&setup.schedule.seed, sizeof(setup.schedule.seed), GRND_NONBLOCK) < 0)
		setup.schedule.seed = clock_wall_ns();

	for (uint32_t i = 0; i < options->threads; i++) {
		setup.sharer = i;
		setup.slots = options->connections / options->threads +
			      (i < options->connections % options->threads);
		err = worker_new(&setup, &drive->workers[i]);
		if (err)
			return err;
		drive->worker_count++;
	}
	return 0;
}

static int open_signal(struct drive *drive, uv_signal_t *handle, int number)
{
	int err = uv_signal_init(&drive->loop, handle);

	if (err)
		return err;
	handle->data = drive;
	return uv_signal_start(handle, on_signal, number);
}

static int open_handles(struct drive *drive)
{
	int err = uv_async_init(&drive->loop, &drive->news, on_news);

	if (err)
		return err;
	uv_timer_init(&drive->loop, &drive->deadline);
	uv_timer_init(&drive->loop, &drive->tick);
	drive->news.data = drive;
	drive->deadline.data = drive;
	drive->tick.data = drive;
	err = open_signal(drive, &drive->signals[0], SIGINT);
	return err ? err : open_signal(drive, &drive->signals[1], SIGTERM);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void drive_close(struct drive *drive)
{
	for (uint32_t i = 0; i < drive->worker_count; i++)
		worker_free(drive->workers[i]);
	uv_walk(&drive->loop, close_handle, NULL);
	uv_run(&drive->loop, UV_RUN_DEFAULT);
	uv_loop_close(&drive->loop);
	free(drive);
}

static struct drive *drive_new(const struct drive_job *job)
{
	uint32_t threads = job->options->threads;
	struct drive *drive = calloc(1, sizeof(*drive) + threads * sizeof(drive->workers[0]));

	if (!drive)
		return NULL;
	if (uv_loop_init(&drive->loop)) {
		free(drive);
		return NULL;
	}
	drive->job = job;
	drive->phase.target = job->target;
	drive->budget.sharers = threads;
	drive->gate.rate = job->options->policy.connect_rate;
	drive->worker_samples = (job->options->samples + threads - 1) / threads;
	progress_open(&drive->progress, stderr, job->options->quiet);
	return drive;
}

int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error)
{
	struct drive *drive = drive_new(job);
	int err;

	if (!drive)
		return -ENOMEM;
	err = open_handles(drive);
	if (!err)
		err = start_workers(drive);
	if (!err)
		err = run_phases(drive, ret_run, ret_error);
	drive_close(drive);
	return err;
}
