// SPDX-License-Identifier: MIT
/*
 * A sweep is a sequence of ordinary runs, each with a warm-up, repeated until it was steady. Neighbours:
 * ladder.h (which loads), fit.h (what follows from the figures), drive.h (one run).
 */
#include "sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fit.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/outcome.h"
#include "sojourn/refuse.h"
#include "sojourn/sweep.h"

#define ATTEMPTS   3
#define INTERVALS  10 /* of each step, to tell whether it was steady */
#define SHARE	   0.75
#define FAILED_MAX 0.5 /* a step in which more of the requests did ends the sweep */

struct sweep {
	const struct drive_job *job;
	const struct ladder *ladder;
	struct options options; /* of the next run; what it points to is the job's */
	bool interrupted;
	struct run *run;
	struct run_sweep *result;
	struct run_outcome outcome; /* of the last run */
	size_t point_count;
	struct fit_point points[LADDER_MAX];
};

/* As many threads and processes as there are connections for. */
static void set_connections(struct options *options, uint32_t connections)
{
	options->connections = connections;
	if (options->threads * options->processes <= connections)
		return;
	options->processes = 1;
	if (options->threads > connections)
		options->threads = connections;
}

static void set_rate(struct options *options, uint64_t rate)
{
	options->schedule.rate = rate;
	options->schedule.think_ns = 0;
	if (options->schedule.arrival == SCHEDULE_CLOSED)
		options->schedule.arrival = SCHEDULE_CONSTANT;
}

static void set_load(struct sweep *sweep, struct options *options, uint64_t load)
{
	if (sweep->ladder->of_rates)
		set_rate(options, load);
	else
		set_connections(options, (uint32_t)load);
}

/* The last interval is what is left of the phase: it is no measure. */
static bool was_steady(const struct run_driver *driver)
{
	uint64_t counts[4 * INTERVALS];
	size_t count = 0;

	for (size_t i = 0; i < driver->interval_count && count < ARRAY_SIZE(counts); i++)
		if (driver->intervals[i].duration_ns == driver->interval_ns)
			counts[count++] = driver->intervals[i].requests;
	return fit_is_steady(counts, count);
}

/* All services at the target's port: one, unless it is bound at several addresses. */
static void fill_server(const struct run *run, uint16_t port, struct run_sweep_step *step)
{
	uint64_t exchanges = 0;

	if (!run->cost || !port)
		return; /* nobody observed */
	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].port == port)
			exchanges += run->services[i].exchanges;
	step->server_exchanges = (struct run_number){true, exchanges};
	step->server_duration_ns = (struct run_number){true, run->driver->duration_ns};
}

/* Of several targets what was for each; their names go over to the step. */
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

static int fill_step(const struct run *run, uint16_t port, struct run_sweep_step *step)
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
	fill_server(run, port, step);
	if (fill_targets(driver, step))
		return -ENOMEM;
	if (driver->limited && driver->limited->by) {
		step->limited = strdup(driver->limited->by);
		return step->limited ? 0 : -ENOMEM;
	}
	return 0;
}

/* The observer's part missing is the sweep's failure, as no step would have it. */
static int check_observer(const struct run *run, char **ret_error)
{
	const char *reason = run->driver->observer_error;

	return reason ? refuse(ret_error, "the observer's part is missing: %s", reason) : 0;
}

static int attempt(struct sweep *sweep, const struct options *options, struct run_sweep_step *step,
		   char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	struct drive_job job = *sweep->job;
	int err;

	job.options = options;
	job.ret_interrupted = &sweep->interrupted;
	err = drive_run(&job, &run, ret_error);
	if (!err)
		err = check_observer(run, ret_error);
	if (err)
		return err;
	sweep->outcome = run_driver_outcome(run->driver);
	return fill_step(run, sweep->job->target->port, step);
}

/* A step that was not steady is measured again, after twice the warm-up. */
static int measure(struct sweep *sweep, const struct options *once, struct run_sweep_step *step,
		   char **ret_error)
{
	struct options options = *once;
	int err = 0;

	for (step->attempts = 0; step->attempts < ATTEMPTS && !sweep->interrupted;) {
		err = attempt(sweep, &options, step, ret_error);
		step->attempts++;
		sweep->options.start = options.start = (struct start_spec){0};
		if (err || step->steady)
			break;
		options.warmup_ns *= 2;
	}
	return err;
}

/* Without a good response it says nothing of what the server can do: the others still do. */
static void add_point(struct sweep *sweep, const struct run_sweep_step *step)
{
	if (run_sweep_throughput(step) > 0)
		sweep->points[sweep->point_count++] =
			(struct fit_point){.load = (double)step->load,
					   .throughput = run_sweep_throughput(step),
					   .latency_ns = histogram_mean(&step->latency)};
}

static int climb(struct sweep *sweep, uint64_t load, char **ret_error)
{
	struct run_sweep_step *step = run_add_sweep_step(sweep->result);
	struct options options = sweep->options;
	int err;

	if (!step)
		return -ENOMEM;
	step->load = load;
	set_load(sweep, &options, load);
	err = measure(sweep, &options, step, ret_error);
	if (err || sweep->interrupted) { /* it is not whole */
		run_sweep_step_clear(step);
		sweep->result->step_count--;
		return err;
	}
	add_point(sweep, step);
	return 0;
}

/* Why the next step is not worth its time; NULL: it is. */
static const char *reason_to_stop(const struct sweep *sweep)
{
	const struct run_sweep_step *last = &sweep->result->steps[sweep->result->step_count - 1];

	if (sweep->interrupted)
		return "interrupted";
	if (!last->requests && (last->errors || last->unsent))
		return "no request was answered";
	if (run_outcome_failed_share(&sweep->outcome) > FAILED_MAX)
		return "most requests failed";
	if (last->limited && (!strcmp(last->limited, "ports") || !strcmp(last->limited, "files")))
		return "the driver's host has no more source ports or descriptors";
	if (fit_only_queues(sweep->points, sweep->point_count))
		return "more load only queues: throughput did not grow in two steps, latency did";
	return NULL;
}

static int go_through(struct sweep *sweep, char **ret_error)
{
	const char *reason = NULL;
	size_t i = 0;
	int err = 0;

	while (!err && !reason && i < sweep->ladder->count) {
		err = climb(sweep, sweep->ladder->loads[i++], ret_error);
		if (sweep->interrupted && !sweep->result->step_count)
			return err ? err
				   : refuse(ret_error, "interrupted in the first step: nothing "
						       "to report");
		if (sweep->interrupted) { /* what is there is reported */
			free(*ret_error);
			*ret_error = NULL;
			err = 0;
		}
		if (!err)
			reason = reason_to_stop(sweep);
	}
	if (err || !reason || (i == sweep->ladder->count && !sweep->interrupted))
		return err;
	sweep->result->stopped = strdup(reason);
	return sweep->result->stopped ? 0 : -ENOMEM;
}

static int set_unfitted(struct sweep *sweep, int err)
{
	const char *why = "too few steps with good responses";

	if (err == -ERANGE)
		why = sweep->result->stopped
			      ? "fewer than two steps lie beyond a knee; take smaller ones "
				"with --ladder"
			      : "throughput still grew at the last step; go further with --ladder";
	sweep->result->unfitted = strdup(why);
	return sweep->result->unfitted ? 0 : -ENOMEM;
}

static int fit(struct sweep *sweep, struct fit *ret_fit)
{
	struct run_sweep *result = sweep->result;
	int err = fit_plateau(sweep->points, sweep->point_count, ret_fit);

	if (err)
		return set_unfitted(sweep, err);
	result->plateau = (struct run_number){true, (uint64_t)(ret_fit->plateau + 0.5)};
	result->knee = (struct run_number){true, (uint64_t)(ret_fit->knee + 0.5)};
	result->misfit_per_mille =
		(struct run_number){true, (uint64_t)(ret_fit->misfit * 1000 + 0.5)};
	return 0;
}

/*
 * Twice the knee's connections: enough that a request seldom waits for one, few enough that they are
 * no load of their own.
 */
static void set_three_quarters(struct sweep *sweep, struct options *options, uint64_t rate)
{
	uint64_t most = sweep->ladder->loads[sweep->ladder->count - 1];
	uint64_t connections = 2 * sweep->result->knee.value;

	set_rate(options, rate);
	if (!sweep->ladder->of_rates)
		set_connections(options, (uint32_t)(connections < most ? connections : most));
}

static int measure_three_quarters(struct sweep *sweep, char **ret_error)
{
	struct run_sweep *result = sweep->result;
	uint64_t rate = (uint64_t)((double)result->plateau.value * SHARE);
	struct options options = sweep->options;
	int err;

	if (!result->plateau.known || !rate || sweep->interrupted)
		return 0;
	result->three_quarters = calloc(1, sizeof(*result->three_quarters));
	if (!result->three_quarters)
		return -ENOMEM;
	result->three_quarters->load = rate;
	set_three_quarters(sweep, &options, rate);
	err = measure(sweep, &options, result->three_quarters, ret_error);
	if (!sweep->interrupted)
		return err;
	free(*ret_error);
	*ret_error = NULL;
	run_sweep_step_clear(result->three_quarters);
	free(result->three_quarters);
	result->three_quarters = NULL;
	return 0;
}

static int open_result(struct sweep *sweep)
{
	const struct drive_job *job = sweep->job;
	struct run_sweep *result = calloc(1, sizeof(*result));
	bool plain = engine_find(job->target->scheme)->plain; /* all targets take the same */

	sweep->run = run_new("sojourn-drive", job->command);
	if (!sweep->run || !result) {
		free(result);
		return -ENOMEM;
	}
	sweep->run->sweep = sweep->result = result;
	result->target = job->options->url ? strdup(job->options->url) : NULL;
	result->method = plain ? NULL : strdup(job->options->method);
	result->over = strdup(sweep->ladder->of_rates ? "rate" : "connections");
	result->connections = sweep->ladder->of_rates ? job->options->connections : 0;
	if ((job->options->url && !result->target) || !result->over || (!result->method && !plain))
		return -ENOMEM;
	return 0;
}

/* What every step has in common. Single exchanges are of no use: the observer's are not joined. */
static void set_options(struct sweep *sweep)
{
	struct options *options = &sweep->options;
	uint64_t interval_ns = options->duration_ns / INTERVALS;

	options->samples = 0;
	if (options->interval_ns > interval_ns)
		options->interval_ns = interval_ns;
}

int sweep_run(const struct drive_job *job, struct run **ret_run, char **ret_error)
{
	struct sweep sweep = {
		.job = job, .ladder = &job->options->ladder, .options = *job->options};
	uint64_t begin_ns = clock_now_ns();
	struct fit found;
	int err = open_result(&sweep);

	set_options(&sweep);
	if (!err)
		err = go_through(&sweep, ret_error);
	if (!err)
		err = fit(&sweep, &found);
	if (!err)
		err = measure_three_quarters(&sweep, ret_error);
	if (err) {
		run_free(sweep.run);
		return err;
	}
	sweep.run->duration_ns = clock_now_ns() - begin_ns;
	*ret_run = sweep.run;
	return 0;
}
