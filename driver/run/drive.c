// SPDX-License-Identifier: MIT
/*
 * Carries a run out. The main thread's loop has signals, the end of a phase and the progress line.
 * It runs during a phase; between phases the thread talks to the observer. Workers carry the load;
 * only load/worker.h's calls touch them.
 */
#include "drive.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "crew.h"
#include "host/explain.h"
#include "observers.h"
#include "progress.h"
#include "result.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "sojourn/refuse.h"
#include "transport/loop.h"

#define TICK_MS 1000U
/* Wakes every worker before the first request of a schedule is due. */
#define LEAD_NS (5 * NSEC_PER_MSEC)

/* --start-at without warm-up: talk to the observer this long before the start. */
#define OBSERVER_LEAD_NS (200 * NSEC_PER_MSEC)

/* End the run after this long without one connection, if the server refuses. */
#define PATIENCE_NS (1 * NSEC_PER_SEC)
#define PATIENCE_MS 50U

struct drive {
	const struct drive_job *job;
	uv_loop_t loop;
	uv_timer_t deadline;
	uv_timer_t tick;
	uv_timer_t patience;
	uv_signal_t signals[2];
	uv_signal_t resized;
	uv_poll_t stopped; /* by the watch */
	bool interrupted;
	bool measuring;
	uint64_t due_ns;   /* planned end of the phase; 0: ended by its requests */
	uint64_t start_ns; /* start of the first phase, by CLOCK_MONOTONIC; 0: at once */
	struct budget budget;
	struct gate gate;
	struct crew *crew;
	struct result_phase phase;
	struct progress progress;
	struct crew_result total;
	const struct engine_result *unreached; /* why there was no connection; NULL: continue */
};

/* Start no more requests; on_ring() reports when those in flight have ended. */
static void stop_load(struct drive *drive, uint64_t now_ns)
{
	if (!drive->phase.stop_ns)
		drive->phase.stop_ns = now_ns;
	crew_set_phase(drive->crew, WORKER_REST, 0, 0);
}

/* libuv counts whole milliseconds: the timer may fire up to one early. */
static void on_deadline(uv_timer_t *timer)
{
	struct drive *drive = timer->data;

	if (clock_now_ns() < drive->due_ns)
		uv_timer_start(timer, on_deadline, 1, 0);
	else
		stop_load(drive, drive->due_ns); /* the workers know this time and have stopped */
}

/* A second signal means that the user wants to leave: let it end the process. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct drive *drive = handle->data;

	if (drive->interrupted) {
		progress_close(&drive->progress);
		signal(number, SIG_DFL);
		raise(number);
	}
	drive->interrupted = true;
	stop_load(drive, clock_now_ns());
}

static void on_stop(uv_poll_t *handle, int status, int events)
{
	struct drive *drive = handle->data;

	(void)status;
	(void)events;
	uv_poll_stop(handle);
	drive->interrupted = true;
	stop_load(drive, clock_now_ns());
}

static void on_resize(uv_signal_t *handle, int number)
{
	struct drive *drive = handle->data;

	(void)number;
	progress_resize(&drive->progress);
}

/* Without memory skip the report: the next one includes its counts. */
static void tell_watch(struct drive *drive)
{
	const struct drive_watch *watch = drive->job->watch;
	autorun struct run *run = run_new("sojourn-drive", drive->job->command);

	if (run && !result_so_far(drive->job, &drive->progress.now, &drive->phase, run))
		watch->so_far(watch->user, run);
}

static bool is_followed(const struct drive *drive)
{
	return progress_is_shown(&drive->progress) || drive->job->watch;
}

static void follow(struct drive *drive)
{
	drive->progress.now = (struct stats){0};
	crew_add_snapshot(drive->crew, &drive->progress.now);
	if (drive->job->watch)
		tell_watch(drive);
	if (!progress_is_shown(&drive->progress))
		return;
	for (uint32_t i = 0; i < drive->progress.part_count; i++)
		drive->progress.parts[i].now = row_table_requests(&drive->phase.steps, i);
	progress_update(&drive->progress);
}

static void on_tick(uv_timer_t *timer)
{
	struct drive *drive = timer->data;

	if (drive->measuring)
		crew_ask_snapshot(drive->crew);
	else if (progress_is_shown(&drive->progress))
		progress_warmup(&drive->progress);
}

/* End the run if no connection was established: waiting longer is useless. */
static void on_patience(uv_timer_t *timer)
{
	struct drive *drive = timer->data;
	uint64_t now_ns = clock_now_ns();

	if (crew_any(drive->crew, worker_has_connected)) {
		uv_timer_stop(timer);
		return;
	}
	if (now_ns < drive->phase.begin_ns + PATIENCE_NS)
		return;
	drive->unreached = crew_connect_failure(drive->crew);
	if (!drive->unreached)
		return; /* no failed attempt yet, or none that would repeat */
	uv_timer_stop(timer);
	stop_load(drive, now_ns);
}

/* A phase shorter than the patience is not ended early. */
static bool is_worth_patience(const struct drive *drive, uint64_t duration_ns)
{
	return !drive->job->settings->keep_trying && !crew_any(drive->crew, worker_has_connected) &&
	       (!duration_ns || duration_ns > PATIENCE_NS);
}

static void on_ring(void *user)
{
	struct drive *drive = user;

	/* --fail-fast: the first failure ends the run, once. */
	if (drive->job->settings->fail_fast && drive->measuring && !drive->phase.stop_ns &&
	    crew_any(drive->crew, worker_has_failed)) {
		stop_load(drive, clock_now_ns());
		if (drive->job->watch)
			drive->job->watch->failed(drive->job->watch->user);
	}
	if (crew_all(drive->crew, worker_is_quiet))
		uv_stop(&drive->loop);
	else if (drive->measuring && is_followed(drive) &&
		 crew_all(drive->crew, worker_has_snapshot))
		follow(drive);
}

static bool is_paced(const struct drive *drive)
{
	const struct schedule_spec *schedule = &drive->job->load->schedule;

	return schedule->rate || schedule->think_ns || drive->job->rows->think_ns;
}

static uint64_t begin_of_phase(struct drive *drive)
{
	uint64_t begin_ns = clock_now_ns() + (is_paced(drive) ? LEAD_NS : 0);

	if (is_paced(drive) && drive->start_ns)
		begin_ns = drive->start_ns;
	drive->start_ns = 0;
	return begin_ns;
}

/* Run a phase until every worker is quiet, so that nothing reaches into the next phase. */
static void run_phase(struct drive *drive, enum worker_phase phase, uint64_t duration_ns,
		      uint64_t requests)
{
	uint64_t lead_ns = is_paced(drive) ? LEAD_NS : 0;

	if (drive->start_ns)
		clock_sleep_until(drive->start_ns - lead_ns);
	atomic_store(&drive->budget.left, requests ? requests : BUDGET_UNLIMITED);
	drive->measuring = phase == WORKER_MEASURE;
	drive->phase.stop_ns = 0;
	progress_begin_phase(&drive->progress, duration_ns, requests);
	uv_update_time(&drive->loop);
	if (duration_ns)
		uv_timer_start(&drive->deadline, on_deadline,
			       (duration_ns + lead_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, 0);
	if (is_followed(drive))
		uv_timer_start(&drive->tick, on_tick, TICK_MS, TICK_MS);
	if (is_worth_patience(drive, duration_ns))
		uv_timer_start(&drive->patience, on_patience, PATIENCE_MS, PATIENCE_MS);
	drive->phase.begin_ns = begin_of_phase(drive);
	drive->phase.begin_wall_ns = drive->phase.begin_ns + clock_wall_ahead_ns();
	drive->due_ns = duration_ns ? drive->phase.begin_ns + duration_ns : 0;
	crew_set_phase(drive->crew, phase, drive->phase.begin_ns, drive->due_ns);
	uv_run(&drive->loop, UV_RUN_DEFAULT);
	uv_timer_stop(&drive->deadline);
	uv_timer_stop(&drive->tick);
	uv_timer_stop(&drive->patience);
	progress_end_phase(&drive->progress);
}

static void warm_up(struct drive *drive)
{
	if (!drive->job->load->warmup_ns)
		return;
	run_phase(drive, WORKER_WARMUP, drive->job->load->warmup_ns, 0);
	if (drive->phase.stop_ns > drive->phase.begin_ns)
		drive->phase.warmup_ns = drive->phase.stop_ns - drive->phase.begin_ns;
}

static int measure(struct drive *drive)
{
	const struct drive_rows *rows = drive->job->rows;
	const struct load_settings *load = drive->job->load;
	int err;

	drive->phase.ports = port_watch_start(&drive->job->link->sources, load->interval_ns,
					      rows->targets, rows->count);
	run_phase(drive, WORKER_MEASURE, load->duration_ns, load->requests);
	port_watch_stop(drive->phase.ports);
	err = crew_collect(drive->crew, &drive->total);
	if (!drive->phase.stop_ns && !drive->total.stats.last_ns)
		drive->phase.stop_ns = clock_now_ns(); /* a counted run without a response */
	return err;
}

/* Notice Ctrl-C while libcurl waits, as the loop does not run then. */
static bool is_interrupted(void *user)
{
	struct drive *drive = user;
	bool before = drive->interrupted;

	uv_run(&drive->loop, UV_RUN_NOWAIT);
	return drive->interrupted && !before;
}

static int fill_samples(struct drive *drive, struct run_driver *driver)
{
	if (!drive->job->settings->samples)
		return 0;
	if (drive->job->unsampled) {
		driver->unsampled = strdup(drive->job->unsampled);
		return driver->unsampled ? 0 : -ENOMEM;
	}
	driver->samples =
		sampler_result(&drive->total.samples, drive->job->load->schedule.rate != 0,
			       drive->job->rows->kind == DRIVE_STEPS);
	return driver->samples ? 0 : -ENOMEM;
}

/* Without one connection, report only that. */
static int refuse_unreached(const struct drive *drive, char **ret_error)
{
	const struct drive_rows *rows = drive->job->rows;
	const struct explain_run run = {
		.target = rows->targets[drive->unreached->step],
		.link = drive->job->link,
		.connections = drive->job->load->connections,
	};
	autofree char *why = explain_unreached(drive->unreached, &run);
	enum run_error error = drive->unreached->error;
	/* A server may still start; its certificate will not change. */
	bool may_come_up = error == RUN_ERROR_REFUSED || error == RUN_ERROR_CONNECT_OTHER;

	if (!why)
		return -ENOMEM;
	return refuse(ret_error, "%s%s%s", why,
		      rows->kind == DRIVE_TARGETS ? ", nor can any other target be reached" : "",
		      may_come_up ? "; --keep-trying waits for it" : "");
}

static int measure_and_fill(struct drive *drive, struct observers *observers, struct run **ret_run,
			    char **ret_error)
{
	autorun struct run *run = run_new("sojourn-drive", drive->job->command);
	int err;

	if (!run)
		return -ENOMEM;
	err = measure(drive);
	if (drive->unreached) {
		observers_drop(observers);
		return refuse_unreached(drive, ret_error);
	}
	drive->phase.interrupted = drive->interrupted;
	if (!err)
		err = result_fill(drive->job, &drive->total, &drive->phase, run);
	if (!err)
		err = fill_samples(drive, run->driver);
	if (!err && observers)
		err = observers_merge(observers, run);
	/* Keep the load on while other drivers still measure. */
	if (!err && drive->job->load->cooldown_ns && !drive->interrupted)
		run_phase(drive, WORKER_WARMUP, drive->job->load->cooldown_ns, 0);
	/* Join exchanges one by one. Afterwards drop the raw samples, unless they are wanted. */
	if (!err && observers)
		err = join_run(run, drive->job->settings->slowest);
	if (!err && observers && !drive->job->settings->keep_samples)
		join_drop_samples(run);
	if (!err)
		*ret_run = TAKE_PTR(run);
	return err;
}

/* Wait for the flag, then until shortly before the time, for run_phase() and the observer. */
static int await_start(struct drive *drive, bool observed, char **ret_error)
{
	const struct patience patience = {.is_over = is_interrupted, .user = drive};
	const struct run_settings *settings = drive->job->settings;
	uint64_t early_ns =
		observed && !drive->job->load->warmup_ns ? OBSERVER_LEAD_NS : 2 * LEAD_NS;
	const struct drive_watch *watch = drive->job->watch;
	struct start_spec start = settings->start;
	int err = watch ? watch->await(watch->user, patience, &start) : 0;

	if (!err)
		err = start_await_flag(&start, patience, ret_error);
	if (!err)
		err = start_await_time(&start, early_ns, patience, &drive->start_ns, ret_error);
	if (err == -ECANCELED)
		return refuse(ret_error, "interrupted before the start: nothing to report");
	return err;
}

static int await_measuring(struct drive *drive, char **ret_error)
{
	const struct patience patience = {.is_over = is_interrupted, .user = drive};
	const struct drive_watch *watch = drive->job->watch;
	struct start_spec start = {0};
	int err;

	if (!watch || !watch->pauses || !drive->job->load->warmup_ns)
		return 0;
	err = watch->await(watch->user, patience, &start);
	if (!err)
		err = start_await_time(&start, 2 * LEAD_NS, patience, &drive->start_ns, ret_error);
	return err;
}

static int run_phases(struct drive *drive, struct run **ret_run, char **ret_error)
{
	const struct patience patience = {.is_over = is_interrupted, .user = drive};
	CLEANUP(cleanup_observers_free) struct observers *observers = NULL;
	static const char before_measuring[] =
		"interrupted before the measured phase: nothing to report";
	/* Check that the observers work before any load, and warm-up is load. */
	int err = observers_new(&drive->job->settings->observers, drive->job->rows, patience,
				drive->job->load->warmup_ns, &observers, ret_error);

	if (!err)
		err = await_start(drive, observers, ret_error);
	if (err)
		return err;
	warm_up(drive);
	if (drive->interrupted)
		return refuse(ret_error, before_measuring);
	if (drive->unreached)
		return refuse_unreached(drive, ret_error);
	err = await_measuring(drive, ret_error);
	if (err == -ECANCELED)
		return refuse(ret_error, before_measuring);
	if (!err && observers)
		err = observers_begin(observers, ret_error);
	if (err)
		return err;
	return measure_and_fill(drive, observers, ret_run, ret_error);
}

static int open_stop(struct drive *drive)
{
	const struct drive_watch *watch = drive->job->watch;
	int err = watch ? uv_poll_init(&drive->loop, &drive->stopped, watch->stop_fd) : 0;

	if (!watch || err)
		return err;
	drive->stopped.data = drive;
	return uv_poll_start(&drive->stopped, UV_READABLE, on_stop);
}

static int open_handles(struct drive *drive)
{
	int err;

	uv_timer_init(&drive->loop, &drive->deadline);
	uv_timer_init(&drive->loop, &drive->tick);
	uv_timer_init(&drive->loop, &drive->patience);
	drive->deadline.data = drive;
	drive->tick.data = drive;
	drive->patience.data = drive;
	err = loop_signal(&drive->loop, &drive->signals[0], on_signal, SIGINT, drive);
	if (!err)
		err = loop_signal(&drive->loop, &drive->signals[1], on_signal, SIGTERM, drive);
	if (!err)
		err = loop_signal(&drive->loop, &drive->resized, on_resize, SIGWINCH, drive);
	return err ? err : open_stop(drive);
}

static void drive_close(struct drive *drive)
{
	progress_close(&drive->progress);
	crew_free(drive->crew);
	loop_close_handles(&drive->loop);
	uv_loop_close(&drive->loop);
	row_table_close(&drive->phase.steps);
	status_table_close(&drive->phase.statuses);
	crew_result_clear(&drive->total);
	port_watch_free(drive->phase.ports);
	free(drive);
}

static void open_progress(struct drive *drive)
{
	const struct drive_rows *rows = drive->job->rows;
	const struct progress_settings settings = {
		.file = stderr,
		.quiet = drive->job->settings->quiet,
		.line = drive->job->settings->no_tui,
		.what = drive->job->url		    ? drive->job->url
			: rows->kind == DRIVE_STEPS ? rows->scenario
						    : "several targets",
	};

	_Static_assert(PROGRESS_PARTS_MAX >= DRIVE_ROWS_MAX, "a part for each row");
	progress_open(&drive->progress, &settings);
	for (size_t i = 0; rows->kind != DRIVE_ONE && i < rows->count; i++)
		drive->progress.parts[drive->progress.part_count++].name = rows->list[i].name;
}

static int open_rows(struct drive *drive)
{
	const struct drive_rows *rows = drive->job->rows;
	uint32_t threads = drive->job->settings->threads;
	int err = status_table_open(&drive->phase.statuses, threads);

	return err || rows->kind == DRIVE_ONE
		       ? err
		       : row_table_open(&drive->phase.steps, rows->count, threads);
}

static int open_crew(struct drive *drive)
{
	const struct run_settings *settings = drive->job->settings;
	struct crew_setup setup = {
		.link = drive->job->link,
		.load = drive->job->load,
		.settings = settings,
		.think_ns = drive->job->rows->think_ns,
		.engine = drive->job->engine,
		.shared = drive->job->shared,
		.own_files = drive->job->own_files,
		.budget = &drive->budget,
		.gate = &drive->gate,
		.steps = drive->phase.steps,
		.statuses = drive->phase.statuses,
		.ring = on_ring,
		.user = drive,
	};

	if (getrandom(&setup.seed, sizeof(setup.seed), GRND_NONBLOCK) < 0)
		setup.seed = clock_wall_ns();
	drive->budget.sharers = settings->threads;
	drive->gate.rate = drive->job->link->policy.connect_rate;
	return crew_new(&setup, &drive->loop, &drive->crew);
}

int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error)
{
	struct drive *drive = calloc(1, sizeof(*drive));
	int err = drive ? uv_loop_init(&drive->loop) : -ENOMEM;

	if (err) {
		free(drive);
		return err;
	}
	drive->job = job;
	open_progress(drive);
	err = open_rows(drive);
	if (!err)
		err = open_handles(drive);
	if (!err)
		err = open_crew(drive);
	if (!err)
		err = run_phases(drive, ret_run, ret_error);
	if (job->ret_interrupted)
		*job->ret_interrupted = drive->interrupted;
	drive_close(drive);
	return err;
}
