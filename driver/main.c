// SPDX-License-Identifier: MIT
/* sojourn-drive: options → target → engine → drive → report. The only file here that logs. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "engine.h"
#include "engine_scenario.h"
#include "forecast.h"
#include "host_limits.h"
#include "options.h"
#include "scenario.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "sojourn/report.h"
#include "sojourn/run.h"
#include "sojourn/sweep.h"
#include "sojourn/trace.h"
#include "sweep.h"
#include "target.h"

enum {
	EXIT_DEGRADED = 1, /* requests failed, the observer's part is missing, or no result */
	EXIT_USAGE = 2,
};

/* One line: the module's sentence, or the errno's. */
static int fail(int err, const char *reason, int status)
{
	if (reason)
		log_error("%s", reason);
	else if (err == -ELIBACC)
		log_error("--observer and --wait-for URL need libcurl, which is not here (Debian: "
			  "libcurl4; the static driver has none)");
	else
		log_errno(err, "cannot run");
	return status;
}

/* Without joined exchanges there is nothing to draw; the report says why. */
static int write_trace(const char *path, const struct run *run)
{
	int err;

	if (!run->joined || !run->joined->slowest_count) {
		log_error("no exchange was joined: '%s' is not written", path);
		return -ENODATA;
	}
	err = trace_write(run, path);
	return err ? log_errno(err, "cannot write '%s'", path) : 0;
}

static int write_figures(const char *path, int (*print)(const struct run *run, FILE *file),
			 const struct run *run)
{
	autofree char *text = NULL;
	size_t size;
	FILE *file;
	int err;

	if (!path)
		return 0;
	file = open_memstream(&text, &size);
	err = file ? print(run, file) : -errno;
	if (file && fclose(file) && !err)
		err = -errno;
	if (!err)
		err = run_write_text(text, path);
	return err ? log_errno(err, "cannot write '%s'", path) : 0;
}

static int write_outputs(const struct options *options, const struct run *run)
{
	const char *path = options->json_path;
	struct report_options report;
	int err;

	if (path) {
		err = run_write(run, path);
		if (err)
			return log_errno(err, "cannot write '%s'", path);
	}
	err = write_figures(options->csv_path, report_csv, run);
	if (!err)
		err = write_figures(options->hlog_path, report_hlog, run);
	if (err)
		return err;
	if (!options->quiet && !options_own_stdout(options)) {
		report_options_for(stdout, &report);
		err = report_text(run, &report, stdout);
		if (!err && fflush(stdout))
			err = -errno;
		if (err)
			return log_errno(err, "cannot write the report");
	}
	return options->trace_path ? write_trace(options->trace_path, run) : 0;
}

/* How many do not hold; each is one line. */
static size_t check_assertions(const struct options *options, const struct run_driver *driver)
{
	size_t broken = 0;
	char actual[ASSERTION_TEXT];

	for (size_t i = 0; i < options->assertion_count; i++) {
		if (assertion_holds(&options->assertions[i], driver, actual))
			continue;
		log_error("--assert: '%s' does not hold: it is %s", options->assertions[i].text,
			  actual);
		broken++;
	}
	return broken;
}

/* Errors that no assertion allows. Want of ports or descriptors is the driver's own failure. */
static bool has_errors(const struct options *options, const struct run_driver *driver)
{
	if (driver->errors[RUN_ERROR_ADDRESS_UNAVAILABLE] ||
	    driver->errors[RUN_ERROR_TOO_MANY_FILES])
		return true;
	for (size_t i = 0; i < options->assertion_count; i++)
		if (assertion_is_about_errors(&options->assertions[i]))
			return false;
	return run_driver_errors(driver) != 0;
}

static int conclude(const struct options *options, const struct run *run)
{
	const char *observer_error = run->driver->observer_error;
	size_t broken;

	if (observer_error)
		log_error("the observer's part is missing: %s", observer_error);
	broken = check_assertions(options, run->driver);
	if (write_outputs(options, run) || observer_error || broken ||
	    has_errors(options, run->driver))
		return EXIT_DEGRADED;
	return EXIT_SUCCESS;
}

/* Overload makes errors, which is what a sweep is for; a server that never does what it should is none. */
static int conclude_sweep(const struct options *options, const struct run *run)
{
	uint64_t requests = 0, good = 0;

	for (size_t i = 0; i < run->sweep->step_count; i++) {
		requests += run->sweep->steps[i].requests;
		good += run->sweep->steps[i].good.value;
	}
	if (!good)
		log_error(requests ? "no response was good" : "no request was answered");
	return write_outputs(options, run) || !good ? EXIT_DEGRADED : EXIT_SUCCESS;
}

static int raise_files(const struct drive_job *job, char **ret_error)
{
	const struct limits_need need = {
		.connections = forecast_connections(job->options),
		.sockets = job->sockets,
		.processes = job->options->processes,
		.threads = job->options->threads,
	};

	return limits_raise_files(&need, ret_error);
}

static void warn_of_ports(const struct drive_job *job)
{
	autofree char *text = NULL;

	if (!forecast_ports(job, &text) && text)
		log_warn("%s", text);
}

static int drive(const struct drive_job *job)
{
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	int err = raise_files(job, &error);

	if (!err)
		warn_of_ports(job);
	if (!err)
		err = job->options->command == COMMAND_SWEEP ? sweep_run(job, &run, &error)
							     : drive_run(job, &run, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	return run->sweep ? conclude_sweep(job->options, run) : conclude(job->options, run);
}

/* Resolves, lets the engine prepare what all workers share, and drives. */
static int prepare_and_drive(const struct options *options, struct target *target, char **command)
{
	const struct engine *engine = engine_find(target->scheme);
	struct drive_job job = {.options = options,
				.target = target,
				.engine = engine,
				.sockets = 1,
				.command = command};
	autofree char *error = NULL;
	void *shared = NULL;
	int err = 0, status;

	if (engine->addressed)
		err = target_resolve(target, &error);
	if (!err)
		err = engine->prepare(options, target, &shared, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	job.shared = shared;
	job.unsampled = engine_unsampled(engine, options);
	status = drive(&job);
	engine->release(shared);
	return status;
}

/* Whether the options make sense for the target's scheme. */
static int check_for(const struct options *options, const struct target *target, char **ret_error)
{
	const struct engine *engine = engine_find(target->scheme);
	int err = options_check(options, engine, ret_error);

	return err || !engine->check ? err : engine->check(options, target, ret_error);
}

/* The steps have been checked with the options: nothing of bad usage is left. */
static int run_scenario(const struct options *options, char **command)
{
	const struct scenario *scenario = options->scenario;
	struct drive_job job = {.options = options,
				.target = &scenario->steps[0].target,
				.engine = &engine_scenario,
				.command = command};
	autofree char *error = NULL;
	void *shared = NULL;
	int err, status;

	err = engine_scenario.prepare(options, NULL, &shared, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	job.shared = shared;
	job.sockets = engine_scenario_connections(shared);
	job.unsampled = engine_scenario_unsampled(shared);
	status = drive(&job);
	engine_scenario.release(shared);
	return status;
}

/* A name that has no address here may have one where the run is to be. */
static void look_up(struct target *target)
{
	autofree char *error = NULL;

	if (engine_find(target->scheme)->addressed && target_look_up(target, &error) && error)
		log_warn("%s: whether the source ports will do is not known", error);
}

/* --check: what this host would say to the run. Nothing is sent to a server. */
static void foretell(const struct options *options, struct target *target)
{
	struct scenario *scenario = options->scenario;
	struct drive_job job = {.options = options, .target = target, .sockets = 1};
	autofree char *error = NULL;

	job.engine = scenario ? &engine_scenario : engine_find(target->scheme);
	if (!scenario)
		look_up(target);
	for (size_t i = 0; scenario && i < scenario->step_count; i++)
		look_up(&scenario->steps[i].target);
	if (scenario)
		job.sockets = engine_scenario_servers(scenario);
	if (raise_files(&job, &error) && error)
		log_warn("%s", error);
	warn_of_ports(&job);
}

/* @target: NULL of a scenario. */
static int tell_valid(const struct options *options, struct target *target)
{
	const struct scenario *scenario = options->scenario;

	foretell(options, target);
	if (scenario && !scenario->of_targets)
		printf("%s is valid: %zu step%s, %s\n", scenario->path, scenario->step_count,
		       scenario->step_count == 1 ? "" : "s", scenario_order_names[scenario->order]);
	else
		puts("the options are valid");
	return EXIT_SUCCESS;
}

static int run_options(const struct options *options, char **command)
{
	struct target target = {0};
	autofree char *error = NULL;
	int err, status;

	if (options->action == OPTIONS_HELP) {
		options_help(options->command, stdout);
		return EXIT_SUCCESS;
	}
	if (options->action == OPTIONS_VERSION) {
		puts("sojourn-drive " SOJOURN_VERSION);
		return EXIT_SUCCESS;
	}
	if (options->scenario)
		return options->check_only ? tell_valid(options, NULL)
					   : run_scenario(options, command);
	err = target_parse(options->url, &target, &error);
	if (!err)
		err = check_for(options, &target, &error);
	if (err)
		status = fail(err, error, EXIT_USAGE);
	else
		status = options->check_only ? tell_valid(options, &target)
					     : prepare_and_drive(options, &target, command);
	target_clear(&target);
	return status;
}

/* The command as it was written: getopt_long moves words. NULL without memory. */
static char **copy_words(int argc, char **argv)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));

	if (copy)
		memcpy(copy, argv, (size_t)argc * sizeof(*copy));
	return copy;
}

int main(int argc, char **argv)
{
	autofree char **command = copy_words(argc, argv);
	struct options options;
	autofree char *error = NULL;
	int err, status;

	log_open("sojourn-drive", false);
	signal(SIGPIPE, SIG_IGN); /* a server that goes away is an errno */
	err = options_parse(argc, argv, &options, &error);
	if (err)
		return fail(err, error, EXIT_USAGE);
	status = run_options(&options, command);
	options_clear(&options);
	return status;
}
