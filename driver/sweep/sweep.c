// SPDX-License-Identifier: MIT
/*
 * A sweep is a sequence of ordinary runs, each with a warm-up and repeated until steady.
 * Neighbours: load/ladder.h (the loads), fit.h (conclusions), run/drive.h (one run).
 */
#include "sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/target.h"
#include "fit.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/outcome.h"
#include "sojourn/refuse.h"
#include "sojourn/sweep.h"

#define INTERVALS  10 /* of each step, to judge steadiness */
#define SHARE	   0.75
#define FAILED_MAX 0.5 /* a larger share of failed requests ends the sweep */
#define FAILED_FEW 0.1 /* a larger share may keep throughput down, rather than a queue */

/* Settings that differ between runs. */
struct sweep_settings {
	struct load_settings load;
	struct run_settings run;
};

struct sweep {
	const struct drive_job *job;
	const struct ladder *ladder;
	const struct sweep_runner *runner;
	sweep_watch *watch;
	struct sweep_settings settings; /* of the next run; they point into the job's */
	bool interrupted;
	const char *lost; /* why it was interrupted; NULL: by a signal */
	struct run *run;
	struct run_sweep *result;
	struct run_outcome outcome;  /* of the last run */
	bool repeated[LADDER_MAX];   /* by step */
	size_t point_count;	     /* steps with good responses; others have no point */
	size_t step_of[LADDER_MAX];  /* by point */
	bool is_settled[LADDER_MAX]; /* by point: not to be measured again */
	struct fit_point points[LADDER_MAX];
};

static const char only_queues[] =
	"more load only queues: throughput did not grow in two steps, latency did";
static const char unanswered[] = "no request was answered";
static const char exhausted[] = "the driver's host has no more source ports or descriptors";

/* Use at most one thread per connection. */
static void set_connections(struct sweep_settings *settings, uint32_t connections)
{
	settings->load.connections = connections;
	if (settings->run.threads > connections)
		settings->run.threads = connections;
}

/* Leave out the last interval, the rest of the phase, which is no measure. */
static bool was_steady(const struct run_driver *driver)
{
	uint64_t counts[4 * INTERVALS];
	size_t count = 0;

	for (size_t i = 0; i < driver->interval_count && count < ARRAY_SIZE(counts); i++)
		if (driver->intervals[i].duration_ns == driver->interval_ns)
			counts[count++] = driver->intervals[i].requests;
	return fit_is_steady(counts, count);
}

static bool is_targeted(const struct drive_rows *targets, uint16_t port)
{
	for (uint32_t i = 0; i < targets->count; i++)
		if (targets->targets[i]->port == port)
			return true;
	return false;
}

/* Sum all services at the targets' ports: one per host, unless bound at several addresses. */
static void fill_server(const struct run *run, const struct drive_rows *targets,
			struct run_sweep_step *step)
{
	uint64_t exchanges = 0;

	if (!run->cost || is_targeted(targets, 0))
		return; /* not observed */
	for (size_t i = 0; i < run->service_count; i++)
		if (is_targeted(targets, run->services[i].port))
			exchanges += run->services[i].exchanges;
	step->server_exchanges = (struct run_number){true, exchanges};
	step->server_duration_ns = (struct run_number){true, run->driver->duration_ns};
}

/* Move the counts of several targets, with their names, to the step. */
static int fill_targets(struct run_driver *driver, struct run_sweep_step *step)
{
	struct run_row_list *rows = &driver->rows[RUN_ROWS_TARGET];

	if (!rows->count)
		return 0;
	step->targets = calloc(rows->count, sizeof(*step->targets));
	if (!step->targets)
		return -ENOMEM;
	for (; step->target_count < rows->count; step->target_count++) {
		struct run_row *row = &rows->list[step->target_count];

		step->targets[step->target_count] = (struct run_sweep_target){
			.name = TAKE_PTR(row->name),
			.requests = row->requests,
			.drained = row->drained,
			.good = {true, run_row_outcome(row).good},
			.errors = run_row_errors(row),
			.latency = row->response_time.count ? row->response_time : row->round_trip,
		};
	}
	return 0;
}

static int fill_step(const struct run *run, const struct drive_rows *targets,
		     struct run_sweep_step *step)
{
	struct run_driver *driver = run->driver;

	run_sweep_step_clear(step);
	step->warmup_ns = driver->warmup_ns;
	step->duration_ns = driver->duration_ns;
	step->requests = driver->requests;
	step->drained = driver->drained;
	step->good = (struct run_number){true, run_driver_outcome(driver).good};
	step->errors = run_driver_errors(driver);
	step->unsent = driver->unsent;
	step->latency = *run_driver_latency(driver);
	step->steady = was_steady(driver);
	step->members = TAKE_PTR(driver->members);
	step->member_count = driver->member_count;
	driver->member_count = 0;
	fill_server(run, targets, step);
	if (fill_targets(driver, step))
		return -ENOMEM;
	if (driver->limited && driver->limited->by) {
		step->limited = strdup(driver->limited->by);
		return step->limited ? 0 : -ENOMEM;
	}
	return 0;
}

static int attempt(struct sweep *sweep, const struct sweep_settings *settings,
		   struct run_sweep_step *step, char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	const struct sweep_runner *runner = sweep->runner;
	struct drive_job job = *sweep->job;
	int err;

	job.load = &settings->load;
	job.settings = &settings->run;
	job.ret_interrupted = &sweep->interrupted;
	err = runner ? runner->run(runner->user, &job, &run, &sweep->lost, ret_error)
		     : drive_run(&job, &run, ret_error);
	/* Without the observer's part the sweep fails, as every step would lack it. */
	if (!err && run->driver->observer_error)
		err = refuse(ret_error, "the observer's part is missing: %s",
			     run->driver->observer_error);
	if (err)
		return err;
	sweep->outcome = run_driver_outcome(run->driver);
	if (sweep->interrupted)
		return 0; /* not complete: the step is dropped */
	return fill_step(run, sweep->job->rows, step);
}

/* Measure a step again, after twice the warm-up, until it is steady. */
static int measure(struct sweep *sweep, const struct sweep_settings *once,
		   struct run_sweep_step *step, char **ret_error)
{
	struct sweep_settings settings = *once;
	int err = 0;

	for (step->attempts = 0; step->attempts < LADDER_ATTEMPTS && !sweep->interrupted;) {
		err = attempt(sweep, &settings, step, ret_error);
		step->attempts++;
		sweep->settings.run.start = settings.run.start = (struct start_spec){0};
		/* The server was reachable: if it disappears now, the steps so far are a result. */
		sweep->settings.run.keep_trying = settings.run.keep_trying = true;
		if (err || step->steady)
			break;
		settings.load.warmup_ns *= 2;
	}
	return err;
}

static void show(const struct sweep *sweep, const struct run_sweep_step *step)
{
	if (sweep->watch)
		sweep->watch(sweep->result, step);
}

static void keep(const struct sweep *sweep, size_t index)
{
	const struct sweep_runner *runner = sweep->runner;

	if (runner && runner->keep)
		runner->keep(runner->user, sweep->run, index, &sweep->outcome);
}

static int measure_load(struct sweep *sweep, uint64_t load, struct run_sweep_step *step,
			char **ret_error)
{
	struct sweep_settings settings = sweep->settings;

	step->load = load;
	if (sweep->ladder->of_rates)
		schedule_set_rate(&settings.load.schedule, load);
	else
		set_connections(&settings, (uint32_t)load);
	return measure(sweep, &settings, step, ret_error);
}

/* Skip steps without a good response, which say nothing about the server's capacity. */
static void gather_points(struct sweep *sweep)
{
	sweep->point_count = 0;
	for (size_t i = 0; i < sweep->result->step_count; i++) {
		const struct run_sweep_step *step = &sweep->result->steps[i];
		double throughput = run_sweep_throughput(step);

		if (throughput <= 0)
			continue;
		sweep->step_of[sweep->point_count] = i;
		/* A lack on the driver's side would recur. */
		sweep->is_settled[sweep->point_count] = sweep->repeated[i] || step->limited;
		sweep->points[sweep->point_count++] =
			(struct fit_point){.load = (double)step->load,
					   .throughput = throughput,
					   .latency_ns = histogram_mean(&step->latency)};
	}
}

static int climb(struct sweep *sweep, uint64_t load, char **ret_error)
{
	struct run_sweep_step *step = ARRAY_APPEND(sweep->result->steps, sweep->result->step_count);
	int err;

	if (!step)
		return -ENOMEM;
	err = measure_load(sweep, load, step, ret_error);
	if (err || sweep->interrupted) { /* not complete */
		run_sweep_step_clear(step);
		sweep->result->step_count--;
		return err;
	}
	gather_points(sweep);
	show(sweep, step);
	keep(sweep, sweep->result->step_count - 1);
	return 0;
}

/* Measure a step again; the report names the first result, which no longer counts. */
static int repeat(struct sweep *sweep, size_t index, char **ret_error)
{
	struct run_sweep_step *step = &sweep->result->steps[index], again = {0};
	int err = measure_load(sweep, step->load, &again, ret_error);

	/* If the server is gone, keep the first result. */
	if (err || sweep->interrupted || run_sweep_throughput(&again) <= 0) {
		run_sweep_step_clear(&again);
		return err;
	}
	again.first_throughput =
		(struct run_number){true, (uint64_t)(run_sweep_throughput(step) + 0.5)};
	run_sweep_step_clear(step);
	*step = again;
	show(sweep, step);
	keep(sweep, index);
	return 0;
}

/* Repeat outliers once each; a second equal result stands. */
static int repeat_outliers(struct sweep *sweep, char **ret_error)
{
	int err = 0;

	while (!err && !sweep->interrupted) {
		size_t found =
			fit_find_outlier(sweep->points, sweep->is_settled, sweep->point_count);

		if (found == sweep->point_count)
			break;
		sweep->repeated[sweep->step_of[found]] = true;
		err = repeat(sweep, sweep->step_of[found], ret_error);
		gather_points(sweep);
	}
	return err;
}

static const char *reason_of_interruption(const struct sweep *sweep)
{
	return sweep->lost ? sweep->lost : "interrupted";
}

/* Return why the sweep ends here; NULL: continue. */
static const char *reason_to_stop(const struct sweep *sweep)
{
	const struct run_sweep_step *last = &sweep->result->steps[sweep->result->step_count - 1];
	double failed = run_outcome_failed_share(&sweep->outcome);

	if (sweep->interrupted)
		return reason_of_interruption(sweep);
	if (!last->requests && (last->errors || last->unsent))
		return unanswered;
	if (failed > FAILED_MAX)
		return "most requests failed";
	if (last->limited && (!strcmp(last->limited, "ports") || !strcmp(last->limited, "files")))
		return exhausted;
	if (failed <= FAILED_FEW && fit_only_queues(sweep->points, sweep->point_count))
		return only_queues;
	return NULL;
}

/* Report the complete steps of an interrupted sweep. */
static int excuse_interruption(const struct sweep *sweep, int err, char **ret_error)
{
	if (!sweep->interrupted)
		return err;
	if (!sweep->result->step_count)
		return err ? err
			   : refuse(ret_error, "%s in the first step: nothing to report",
				    reason_of_interruption(sweep));
	free(*ret_error);
	*ret_error = NULL;
	return 0;
}

/* Decide after the last of the steps so far whether it is the last one, and then repeat the outliers. */
static int judge(struct sweep *sweep, const char **reason, char **ret_error)
{
	int err;

	*reason = reason_to_stop(sweep);
	if ((!*reason && sweep->result->step_count < sweep->ladder->count) ||
	    *reason == exhausted || *reason == unanswered)
		return 0;
	err = excuse_interruption(sweep, repeat_outliers(sweep, ret_error), ret_error);
	if (sweep->interrupted)
		*reason = reason_of_interruption(sweep);
	else if (*reason == only_queues && !fit_only_queues(sweep->points, sweep->point_count))
		*reason = NULL; /* a passing disturbance */
	return err;
}

static int go_through(struct sweep *sweep, char **ret_error)
{
	const char *reason = NULL;
	size_t i = sweep->result->step_count;
	int err = i ? judge(sweep, &reason, ret_error) : 0;

	while (!err && !reason && i < sweep->ladder->count) {
		err = climb(sweep, sweep->ladder->loads[i++], ret_error);
		err = excuse_interruption(sweep, err, ret_error);
		if (!err)
			err = judge(sweep, &reason, ret_error);
	}
	if (err || !reason || (i == sweep->ladder->count && !sweep->interrupted))
		return err;
	sweep->result->stopped = strdup(reason);
	return sweep->result->stopped ? 0 : -ENOMEM;
}

/* Return whether the last step had requests but no good response, unlike a smaller one. */
static bool ended_without_good(const struct sweep *sweep)
{
	const struct run_sweep_step *last = &sweep->result->steps[sweep->result->step_count - 1];

	return sweep->point_count && run_sweep_throughput(last) <= 0 &&
	       (last->requests || last->errors || last->unsent);
}

static int fit(struct sweep *sweep)
{
	struct run_sweep *result = sweep->result;
	struct fit found = {0};
	enum fit_verdict verdict = fit_plateau(sweep->points, sweep->point_count, &found);

	if (ended_without_good(sweep))
		result->unfitted =
			strdup("throughput fell to nothing: no response of the last step was good");
	else if (verdict != FIT_FOUND)
		result->unfitted =
			fit_explain(verdict, &found, sweep->points, sweep->point_count,
				    sweep->ladder->of_rates ? "requests/s" : "connections");
	if (ended_without_good(sweep) || verdict != FIT_FOUND)
		return result->unfitted ? 0 : -ENOMEM;
	result->plateau = (struct run_number){true, (uint64_t)(found.plateau + 0.5)};
	result->knee = (struct run_number){true, (uint64_t)(found.knee + 0.5)};
	result->misfit_per_mille = (struct run_number){true, (uint64_t)(found.misfit * 1000 + 0.5)};
	return 0;
}

/*
 * Use twice the knee's connections: requests seldom wait for one, and the connections are no load
 * of their own.
 */
static void set_three_quarters(struct sweep *sweep, struct sweep_settings *settings, uint64_t rate)
{
	uint64_t most = sweep->ladder->loads[sweep->ladder->count - 1];
	uint64_t connections = 2 * sweep->result->knee.value;

	schedule_set_rate(&settings->load.schedule, rate);
	if (!sweep->ladder->of_rates)
		set_connections(settings, (uint32_t)(connections < most ? connections : most));
}

/* Why the ladder ended early is known by then: say what ended this run. */
static int drop_three_quarters(struct sweep *sweep, char **ret_error)
{
	struct run_sweep *result = sweep->result;
	const char *before = result->stopped ? result->stopped : "";
	char *stopped;

	free(*ret_error);
	*ret_error = NULL;
	run_sweep_step_clear(result->three_quarters);
	free(result->three_quarters);
	result->three_quarters = NULL;
	if (asprintf(&stopped, "%s%sat 75 %% of the plateau: %s", before, *before ? "; " : "",
		     reason_of_interruption(sweep)) < 0)
		return -ENOMEM;
	free(result->stopped);
	result->stopped = stopped;
	return 0;
}

static int measure_three_quarters(struct sweep *sweep, char **ret_error)
{
	struct run_sweep *result = sweep->result;
	uint64_t rate = (uint64_t)((double)result->plateau.value * SHARE);
	struct sweep_settings settings = sweep->settings;
	int err;

	if (!result->plateau.known || !rate || sweep->interrupted)
		return 0;
	result->three_quarters = calloc(1, sizeof(*result->three_quarters));
	if (!result->three_quarters)
		return -ENOMEM;
	result->three_quarters->load = rate;
	set_three_quarters(sweep, &settings, rate);
	err = measure(sweep, &settings, result->three_quarters, ret_error);
	if (!err && !sweep->interrupted)
		show(sweep, result->three_quarters);
	return sweep->interrupted ? drop_three_quarters(sweep, ret_error) : err;
}

/* The server was reachable then, and the start has been waited for. */
static int take_past(struct sweep *sweep, struct sweep_past *past, char **ret_error)
{
	if (past->run->sweep->step_count > sweep->ladder->count)
		return refuse(ret_error, "resume: the run's steps are not those of its ladder");
	sweep->run = TAKE_PTR(past->run);
	sweep->result = sweep->run->sweep;
	sweep->outcome = past->outcome;
	for (size_t i = 0; i < sweep->result->step_count; i++)
		sweep->repeated[i] = sweep->result->steps[i].first_throughput.known;
	gather_points(sweep);
	sweep->settings.run.start = (struct start_spec){0};
	sweep->settings.run.keep_trying = true;
	return 0;
}

static int make_result(struct sweep *sweep)
{
	const struct drive_job *job = sweep->job;
	struct run_sweep *result = calloc(1, sizeof(*result));
	const char *method = job->rows->list[0].method; /* all targets have the same */

	sweep->run = run_new("sojourn-drive", job->command);
	if (!sweep->run || !result) {
		free(result);
		return -ENOMEM;
	}
	sweep->run->sweep = sweep->result = result;
	result->target = job->url ? strdup(job->url) : NULL;
	result->method = method ? strdup(method) : NULL;
	result->over = strdup(sweep->ladder->of_rates ? "rate" : "connections");
	result->connections = sweep->ladder->of_rates ? job->load->connections : 0;
	if ((job->url && !result->target) || !result->over || (method && !result->method))
		return -ENOMEM;
	return 0;
}

static int open_result(struct sweep *sweep, struct sweep_past *past, char **ret_error)
{
	int err = past && past->run ? take_past(sweep, past, ret_error) : make_result(sweep);

	if (!err && past)
		sweep->result->resumed = TAKE_PTR(past->resumed);
	return err;
}

/* Of a sweep that was taken up, with the time between. */
static uint64_t duration_since(const struct sweep *sweep, uint64_t begin_ns)
{
	uint64_t started_ns, now_ns = clock_wall_ns();

	if (sweep->result->resumed && !run_parse_time(sweep->run->started_at, &started_ns) &&
	    started_ns < now_ns)
		return now_ns - started_ns;
	return clock_now_ns() - begin_ns;
}

/* Set what all steps share. Single exchanges are not joined: keep no samples. */
static void set_common(struct sweep *sweep)
{
	struct load_settings *load = &sweep->settings.load;
	uint64_t interval_ns = load->duration_ns / INTERVALS;

	sweep->settings.run.samples = 0;
	/* Finished steps are printed above the line. */
	sweep->settings.run.no_tui = true;
	if (load->interval_ns > interval_ns)
		load->interval_ns = interval_ns;
}

int sweep_run(const struct drive_job *job, const struct ladder *ladder,
	      const struct sweep_runner *runner, sweep_watch *watch, struct run **ret_run,
	      char **ret_error)
{
	struct sweep sweep = {.job = job,
			      .ladder = ladder,
			      .runner = runner,
			      .watch = watch,
			      .settings = {*job->load, *job->settings}};
	uint64_t begin_ns = clock_now_ns();
	int err = open_result(&sweep, runner ? runner->past : NULL, ret_error);

	set_common(&sweep);
	if (!err)
		err = go_through(&sweep, ret_error);
	if (!err)
		err = fit(&sweep);
	if (!err)
		err = measure_three_quarters(&sweep, ret_error);
	if (err) {
		run_free(sweep.run);
		return err;
	}
	sweep.run->duration_ns = duration_since(&sweep, begin_ns);
	*ret_run = sweep.run;
	return 0;
}
