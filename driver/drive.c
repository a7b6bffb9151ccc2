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
#include <sys/mman.h>
#include <sys/random.h>

#include "crew.h"
#include "observer.h"
#include "progress.h"
#include "result.h"
#include "scenario.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "sojourn/refuse.h"

#define TICK_MS 1000U
/* So that every worker is awake when the first request of a schedule is due. */
#define LEAD_NS (5 * NSEC_PER_MSEC)

/* In memory that the crew's processes share. */
struct shared {
	struct budget budget;
	struct gate gate;
};

/* --start-at without warm-up: so long before it the observer is told. */
#define OBSERVER_LEAD_NS (200 * NSEC_PER_MSEC)

struct drive {
	const struct drive_job *job;
	uv_loop_t loop;
	uv_timer_t deadline;
	uv_timer_t tick;
	uv_signal_t signals[2];
	bool interrupted;
	bool measuring;
	uint64_t due_ns;   /* when the phase is to end; 0: by its requests */
	uint64_t start_ns; /* of the first phase, by CLOCK_MONOTONIC; 0: as soon as it can */
	struct shared *shared;
	const struct crew_kind *kind;
	struct crew *crew;
	struct result_phase phase;
	struct progress progress;
	struct crew_result total;
};

/* What is under way runs out; news tells when. */
static void stop_load(struct drive *drive, uint64_t now_ns)
{
	if (!drive->phase.stop_ns)
		drive->phase.stop_ns = now_ns;
	drive->kind->set_phase(drive->crew, WORKER_REST, 0, 0);
}

static void on_deadline(uv_timer_t *timer)
{
	struct drive *drive = timer->data;

	stop_load(drive, drive->due_ns); /* the workers have stopped then, by themselves */
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
	stop_load(drive, clock_now_ns());
}

static void show_progress(struct drive *drive)
{
	drive->progress.now = (struct stats){0};
	drive->kind->add_snapshot(drive->crew, &drive->progress.now);
	for (uint32_t i = 0; i < drive->progress.part_count; i++)
		drive->progress.parts[i].now = row_table_requests(&drive->phase.steps, i);
	progress_update(&drive->progress);
}

static void on_tick(uv_timer_t *timer)
{
	struct drive *drive = timer->data;

	if (!drive->measuring) {
		progress_warmup(&drive->progress);
		return;
	}
	drive->kind->ask_snapshot(drive->crew);
}

static bool has_new_snapshots(struct drive *drive)
{
	return drive->measuring && progress_is_shown(&drive->progress) &&
	       drive->kind->has_snapshot(drive->crew);
}

/* --fail-fast: the first failure ends the run; once is enough. */
static bool has_to_fail(struct drive *drive)
{
	return drive->job->options->fail_fast && drive->measuring && !drive->phase.stop_ns &&
	       drive->kind->has_failed(drive->crew);
}

static void on_ring(void *user)
{
	struct drive *drive = user;

	if (has_to_fail(drive))
		stop_load(drive, clock_now_ns());
	if (drive->kind->is_quiet(drive->crew) || drive->kind->lost(drive->crew))
		uv_stop(&drive->loop);
	else if (has_new_snapshots(drive))
		show_progress(drive);
}

static uint64_t round_up_ms(uint64_t ns)
{
	return ns / NSEC_PER_MSEC + (ns % NSEC_PER_MSEC != 0);
}

static bool is_paced(const struct drive *drive)
{
	const struct options *options = drive->job->options;

	return options->schedule.rate || options->schedule.think_ns ||
	       (options->scenario && options->scenario->thinks);
}

/* When the phase that is started now begins for the workers. */
static uint64_t begin_of_phase(struct drive *drive)
{
	uint64_t begin_ns = clock_now_ns() + (is_paced(drive) ? LEAD_NS : 0);

	if (is_paced(drive) && drive->start_ns)
		begin_ns = drive->start_ns;
	drive->start_ns = 0;
	return begin_ns;
}

/*
 * Returns when every worker is quiet: nothing of this phase reaches into the next one. Or when a part of
 * them is gone, see lost().
 */
static void run_phase(struct drive *drive, enum worker_phase phase, uint64_t duration_ns,
		      uint64_t requests)
{
	uint64_t lead_ns = is_paced(drive) ? LEAD_NS : 0;

	if (drive->kind->lost(drive->crew))
		return;
	if (drive->start_ns)
		clock_sleep_until(drive->start_ns - lead_ns);
	atomic_store(&drive->shared->budget.left, requests ? requests : BUDGET_UNLIMITED);
	drive->measuring = phase == WORKER_MEASURE;
	drive->phase.stop_ns = 0;
	progress_begin_phase(&drive->progress, duration_ns, requests);
	uv_update_time(&drive->loop);
	if (duration_ns)
		uv_timer_start(&drive->deadline, on_deadline, round_up_ms(duration_ns + lead_ns),
			       0);
	if (progress_is_shown(&drive->progress))
		uv_timer_start(&drive->tick, on_tick, TICK_MS, TICK_MS);
	drive->phase.begin_ns = begin_of_phase(drive);
	drive->phase.begin_wall_ns = clock_wall_ns() + drive->phase.begin_ns - clock_now_ns();
	drive->due_ns = duration_ns ? drive->phase.begin_ns + duration_ns : 0;
	drive->kind->set_phase(drive->crew, phase, drive->phase.begin_ns, drive->due_ns);
	uv_run(&drive->loop, UV_RUN_DEFAULT);
	uv_timer_stop(&drive->deadline);
	uv_timer_stop(&drive->tick);
	progress_clear(&drive->progress);
}

static void warm_up(struct drive *drive)
{
	if (!drive->job->options->warmup_ns)
		return;
	run_phase(drive, WORKER_WARMUP, drive->job->options->warmup_ns, 0);
	if (drive->phase.stop_ns > drive->phase.begin_ns)
		drive->phase.warmup_ns = drive->phase.stop_ns - drive->phase.begin_ns;
}

static int measure(struct drive *drive, char **ret_error)
{
	const struct options *options = drive->job->options;
	const char *lost;
	int err;

	drive->phase.ports = port_watch_start(options, drive->job->target);
	run_phase(drive, WORKER_MEASURE, options->duration_ns, options->requests);
	port_watch_stop(drive->phase.ports);
	lost = drive->kind->lost(drive->crew);
	if (lost)
		return refuse(ret_error, "%s", lost);
	err = drive->kind->collect(drive->crew, &drive->total);
	if (!drive->phase.stop_ns && !drive->total.stats.last_ns)
		drive->phase.stop_ns = clock_now_ns(); /* a counted run without one response */
	return err;
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

static int fill_samples(struct drive *drive, struct run_driver *driver)
{
	if (!drive->job->options->samples)
		return 0;
	if (drive->job->unsampled) {
		driver->unsampled = strdup(drive->job->unsampled);
		return driver->unsampled ? 0 : -ENOMEM;
	}
	driver->samples = sampler_result(
		&drive->total.samples, drive->job->options->schedule.rate != 0,
		drive->job->options->scenario && !drive->job->options->scenario->of_targets);
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

static int measure_and_fill(struct drive *drive, struct observer *observer, struct run **ret_run,
			    char **ret_error)
{
	autorun struct run *run = run_new("sojourn-drive", drive->job->command);
	int err;

	if (!run)
		return -ENOMEM;
	err = measure(drive, ret_error);
	if (!err)
		err = result_fill(drive->job->options, &drive->total, &drive->phase, run);
	if (!err)
		err = fill_samples(drive, run->driver);
	if (!err && observer)
		err = merge_observer(observer, run);
	if (!err)
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

	if (!options->observer.url)
		return 0;
	err = observer_new(&options->observer, patience, ret_observer);
	if (!err && options->warmup_ns)
		err = rehearse_observer(*ret_observer, ret_error);
	return err;
}

/* The flag, then the time: shortly before that, as run_phase() and the observer need a moment. */
static int await_start(struct drive *drive, bool observed, char **ret_error)
{
	const struct start_patience patience = {.is_over = is_interrupted, .user = drive};
	const struct options *options = drive->job->options;
	uint64_t early_ns = observed && !options->warmup_ns ? OBSERVER_LEAD_NS : 2 * LEAD_NS;
	int err = start_await_flag(&options->start, patience, ret_error);

	if (!err)
		err = start_await_time(&options->start, early_ns, patience, &drive->start_ns,
				       ret_error);
	if (err == -ECANCELED)
		return refuse(ret_error, "interrupted before the start: nothing to report");
	return err;
}

static int run_phases(struct drive *drive, struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_observer_free) struct observer *observer = NULL;
	int err = open_observer(drive, &observer, ret_error);

	if (!err)
		err = await_start(drive, observer, ret_error);
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
	return measure_and_fill(drive, observer, ret_run, ret_error);
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
	int err;

	uv_timer_init(&drive->loop, &drive->deadline);
	uv_timer_init(&drive->loop, &drive->tick);
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

static void close_shared(struct drive *drive)
{
	munmap(drive->shared, sizeof(*drive->shared));
	row_table_close(&drive->phase.steps);
	status_table_close(&drive->phase.statuses);
}

static void drive_close(struct drive *drive)
{
	drive->kind->close(drive->crew);
	uv_walk(&drive->loop, close_handle, NULL);
	uv_run(&drive->loop, UV_RUN_DEFAULT);
	uv_loop_close(&drive->loop);
	drive->kind->free(drive->crew);
	close_shared(drive);
	crew_result_clear(&drive->total);
	port_watch_free(drive->phase.ports);
	free(drive);
}

static void open_progress(struct drive *drive)
{
	const struct scenario *scenario = drive->job->options->scenario;

	_Static_assert(PROGRESS_PARTS_MAX >= SCENARIO_STEPS_MAX, "a part for each step");
	progress_open(&drive->progress, stderr, drive->job->options->quiet);
	for (size_t i = 0; scenario && i < scenario->step_count; i++)
		drive->progress.parts[drive->progress.part_count++].name = scenario->steps[i].name;
}

static int create_crew(struct drive *drive, char **ret_error)
{
	const struct options *options = drive->job->options;
	struct crew_setup setup = {
		.options = options,
		.engine = drive->job->engine,
		.shared = drive->job->shared,
		.budget = &drive->shared->budget,
		.gate = &drive->shared->gate,
		.steps = drive->phase.steps,
		.statuses = drive->phase.statuses,
	};

	if (getrandom(&setup.seed, sizeof(setup.seed), GRND_NONBLOCK) < 0)
		setup.seed = clock_wall_ns();
	drive->shared->budget.sharers = options->threads * options->processes;
	drive->shared->gate.rate = options->policy.connect_rate;
	drive->kind = options->processes > 1 ? &crew_processes : &crew_threads;
	return drive->kind->create(&setup, &drive->crew, ret_error);
}

static int open_rows(struct drive *drive)
{
	const struct options *options = drive->job->options;
	uint32_t workers = options->threads * options->processes;
	int err = status_table_open(&drive->phase.statuses, workers);

	if (err || !options->scenario)
		return err;
	return row_table_open(&drive->phase.steps, (uint32_t)options->scenario->step_count,
			      workers);
}

/* Processes are started before there is a loop or a thread that they would inherit half of. */
static int drive_new(const struct drive_job *job, struct drive **ret_drive, char **ret_error)
{
	autofree struct drive *drive = calloc(1, sizeof(*drive));
	int err;

	if (!drive)
		return -ENOMEM;
	drive->job = job;
	drive->phase.target = job->target;
	drive->shared = mmap(NULL, sizeof(*drive->shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (drive->shared == MAP_FAILED)
		return -ENOMEM;
	err = open_rows(drive);
	if (!err)
		err = create_crew(drive, ret_error);
	if (!err) {
		err = uv_loop_init(&drive->loop);
		if (err)
			drive->kind->free(drive->crew);
	}
	if (err) {
		close_shared(drive);
		return err;
	}
	open_progress(drive);
	*ret_drive = TAKE_PTR(drive);
	return 0;
}

int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error)
{
	struct drive *drive;
	int err = drive_new(job, &drive, ret_error);

	if (err)
		return err;
	err = open_handles(drive);
	if (!err)
		err = drive->kind->open(drive->crew, &drive->loop, on_ring, drive, ret_error);
	if (!err)
		err = run_phases(drive, ret_run, ret_error);
	if (job->ret_interrupted)
		*job->ret_interrupted = drive->interrupted;
	drive_close(drive);
	return err;
}
