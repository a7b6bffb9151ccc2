// SPDX-License-Identifier: MIT
/* sojourn-drive: options → target → engine → drive → report. Logs, as fleet/agent/agent.c does. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/agent/agent.h"
#include "fleet/fleet.h"

#include "engine/target.h"
#include "fleet/agent/waiting.h"
#include "fleet/observers/lookouts.h"
#include "fleet/resume.h"
#include "host/preflight.h"
#include "options/options.h"
#include "run/drive.h"
#include "scenario/job.h"
#include "scenario/scenario.h"
#include "sojourn/finding.h"
#include "sojourn/log.h"
#include "sojourn/refuse.h"
#include "sojourn/report.h"
#include "sojourn/run.h"
#include "sojourn/streams.h"
#include "sojourn/sweep.h"
#include "sojourn/trace.h"
#include "sweep/sweep.h"

#define EXIT_DEGRADED 1 /* failed requests, no observer data, or no result */

/* Log one line: the module's sentence, or that of the errno. */
static int fail(int err, const char *reason, int status)
{
	if (reason)
		log_error("%s", reason);
	else if (err == -ELIBACC)
		log_error("--observer and --wait-for URL need libcurl, which is not installed "
			  "(Debian: "
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

static int write_document(const char *path, const struct run *run)
{
	int err = path ? run_write(run, path) : 0;

	return err ? log_errno(err, "cannot write '%s'", path) : 0;
}

/* @broken: the failed assertions. */
static int write_report(const struct options *options, const struct run *run, char **broken)
{
	struct report_options report;
	int err;

	report_options_for(stdout, &report);
	report.verbose = options->verbose;
	report.broken = broken;
	err = report_text(run, &report, stdout);
	if (!err && fflush(stdout))
		err = -errno;
	return err ? log_errno(err, "cannot write the report") : 0;
}

/* Write each output even if another fails: one unwritable file must not lose the run. */
static int write_outputs(const struct options *options, const struct run *run, char **broken)
{
	int err = write_document(options->json_path, run);

	err = write_figures(options->csv_path, report_csv, run) ?: err;
	err = write_figures(options->hlog_path, report_hlog, run) ?: err;
	if (!options->run.quiet && !options_own_stdout(options))
		err = write_report(options, run, broken) ?: err;
	return (options->trace_path ? write_trace(options->trace_path, run) : 0) ?: err;
}

/* Report outputs that cannot be written before the load, not after it. */
static int try_outputs(const struct options *options, char **ret_error)
{
	const struct {
		const char *option, *path;
	} outputs[] = {
		{"--json", options->json_path},
		{"--csv", options->csv_path},
		{"--hlog", options->hlog_path},
		{"--trace", options->trace_path},
	};

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
		int err = outputs[i].path ? run_try_write(outputs[i].path) : 0;

		if (err)
			return refuse(ret_error,
				      "%s: cannot write '%s': %s; give a file in a folder that "
				      "exists and may be written to",
				      outputs[i].option, outputs[i].path, strerror(-err));
	}
	return 0;
}

/* Return how many assertions fail; log each, and add it to the report. */
static size_t check_assertions(const struct options *options, const struct run *run,
			       char ***ret_sentences)
{
	size_t broken = 0;
	char actual[ASSERTION_TEXT];

	for (size_t i = 0; i < options->assertion_count; i++) {
		autofree char *sentence = NULL;

		if (assertion_holds(&options->assertions[i], run, actual))
			continue;
		log_error("--assert: '%s' does not hold: it is %s", options->assertions[i].text,
			  actual);
		if (asprintf(&sentence, "broken: %s is %s", options->assertions[i].text, actual) <
			    0 ||
		    run_add_text(ret_sentences, sentence))
			log_warn("no memory: the report lacks this assertion");
		broken++;
	}
	return broken;
}

static bool is_asserted(const struct options *options, enum run_error error)
{
	for (size_t i = 0; i < options->assertion_count; i++)
		if (assertion_is_about(&options->assertions[i], error))
			return true;
	return false;
}

/* Return whether an error occurred that no assertion limits, or that is the driver's own. */
static bool has_errors(const struct options *options, const struct run_driver *driver)
{
	if (driver->errors[RUN_ERROR_ADDRESS_UNAVAILABLE] ||
	    driver->errors[RUN_ERROR_TOO_MANY_FILES])
		return true;
	for (enum run_error error = 0; error < RUN_ERROR_COUNT; error++)
		if (driver->errors[error] && !is_asserted(options, error))
			return true;
	return false;
}

/* Log the report's remarks for readers of standard error alone. */
static void tell_remarkable(const struct run_driver *driver)
{
	char text[512];

	for (size_t i = 0; i < driver->member_count; i++)
		if (driver->members[i].lost)
			log_error("%s was lost: %s", driver->members[i].host,
				  driver->members[i].reason);
	if (report_interrupted(driver, sizeof(text), text))
		log_warn("%s", text);
	if (report_redirected(driver, sizeof(text), text))
		log_warn("%s", text);
}

static bool has_lost(const struct run_driver *driver)
{
	for (size_t i = 0; i < driver->member_count; i++)
		if (driver->members[i].lost)
			return true;
	return false;
}

static void free_sentences(char ***sentences)
{
	run_strings_free(*sentences);
}

/* @ret_written: whether every output was written. */
static int conclude(const struct options *options, const struct run *run, bool *ret_written)
{
	const char *observer_error = run->driver->observer_error;
	CLEANUP(free_sentences) char **sentences = NULL;
	size_t broken;

	if (observer_error)
		log_error("the observer's part is missing: %s", observer_error);
	tell_remarkable(run->driver);
	broken = check_assertions(options, run, &sentences);
	*ret_written = !write_outputs(options, run, sentences);
	if (!*ret_written || observer_error || broken || has_lost(run->driver) ||
	    has_errors(options, run->driver))
		return EXIT_DEGRADED;
	return EXIT_SUCCESS;
}

/* Overload causes errors, as a sweep intends; a server without one good response fails. @ret_written: as above. */
static int conclude_sweep(const struct options *options, const struct run *run, bool *ret_written)
{
	uint64_t requests = 0, good = 0;

	for (size_t i = 0; i < run->sweep->step_count; i++) {
		requests += run->sweep->steps[i].requests;
		good += run->sweep->steps[i].good.value;
	}
	if (!good)
		log_error(requests ? "no response was good" : "no request was answered");
	*ret_written = !write_outputs(options, run, NULL);
	return !*ret_written || !good ? EXIT_DEGRADED : EXIT_SUCCESS;
}

static void warn_of_ports(const struct options *options, const struct scenario *scenario,
			  const struct drive_job *job)
{
	struct load_settings load = options->load;
	autofree char *text = NULL;

	/* A mix divides its requests between servers in a way that is not known. */
	if (scenario->order != SCENARIO_CYCLE && job->sockets > 1)
		return;
	load.connections = scenario_most_connections(options);
	if (!forecast_ports(&options->link, &load, job->rows->targets, job->rows->count, &text) &&
	    text)
		log_warn("%s", text);
}

/* Print on standard error, as everything a run reports before its end. */
static void tell_step(const struct run_sweep *sweep, const struct run_sweep_step *step)
{
	report_sweep_step(sweep, step, stderr);
}

static int drive(const struct options *options, const struct scenario *scenario,
		 struct drive_job *job)
{
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	int err = scenario_job_raise_files(options, job, &error);
	bool written;

	if (!err)
		warn_of_ports(options, scenario, job);
	if (!err)
		err = options->command == COMMAND_SWEEP
			      ? sweep_run(job, &options->ladder, NULL,
					  options->run.quiet ? NULL : tell_step, &run, &error)
			      : drive_run(job, &run, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	return run->sweep ? conclude_sweep(options, run, &written)
			  : conclude(options, run, &written);
}

/* Steps were checked with the options: no bad usage is left. */
static int prepare_and_drive(const struct options *options, struct scenario *scenario,
			     char **command)
{
	struct scenario_job job = {0};
	autofree char *error = NULL;
	int err = scenario_job_open(options, scenario, command, &job, &error);
	int status = err ? fail(err, error, EXIT_DEGRADED) : drive(options, scenario, &job.job);

	scenario_job_close(&job);
	return status;
}

/* A sweep that cannot go on ends with the steps that it has. @user: why. */
static int refuse_step(void *user, const struct drive_job *job, struct run **ret_run,
		       const char **ret_lost, char **ret_error)
{
	(void)ret_run;
	*job->ret_interrupted = true;
	*ret_lost = user;
	return refuse(ret_error, "%s", (const char *)user);
}

/* Each step is a run of the whole fleet. *@ret_over: nothing is left to be measured or written. */
static int sweep_fleet(const struct options *options, const struct drive_job *job,
		       const struct sweep_runner *runner, bool *ret_over)
{
	const struct fleet *fleet = runner->run == fleet_step ? runner->user : NULL;
	const char *lost;
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	int err = sweep_run(job, &options->ladder, runner, options->run.quiet ? NULL : tell_step,
			    &run, &error);
	int status;

	*ret_over = false;
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	lost = fleet ? fleet_lost(fleet) : NULL;
	if (lost)
		log_error("%s", lost);
	status = conclude_sweep(options, run, ret_over);
	*ret_over = *ret_over && fleet && !lost;
	return fleet && !lost ? status : EXIT_DEGRADED;
}

/* @past: NULL, or steps that are there already. */
static int open_and_sweep(const struct fleet_options *fleet_options, const struct options *options,
			  const struct scenario *scenario, char **command, struct kept *kept,
			  struct sweep_past *past)
{
	CLEANUP(cleanup_fleet_close) struct fleet *fleet = NULL;
	struct drive_rows rows = {0};
	const struct drive_job job = scenario_job_of(options, &rows, command);
	struct sweep_runner runner = {.run = fleet_step, .keep = fleet_keep_step, .past = past};
	autofree char *error = NULL;
	int err, status;
	bool over;

	scenario_rows(scenario, &rows);
	err = fleet_open(fleet_options, options, scenario, kept, &fleet, &error);
	runner.user = fleet;
	if (err && past && past->run) {
		log_error("the sweep cannot go on: %s", error ? error : strerror(-err));
		runner = (struct sweep_runner){
			.user = error ? error : strerror(-err), .run = refuse_step, .past = past};
		err = 0;
	}
	status = err ? fail(err, error, EXIT_DEGRADED) : sweep_fleet(options, &job, &runner, &over);
	kept_settle(kept, !err && over);
	return status;
}

static int drive_fleet(const struct fleet_options *fleet, const struct options *options,
		       const struct scenario *scenario, char **command)
{
	CLEANUP(kept_clear) struct kept kept = {0};
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	bool written = false;
	int err, status;

	if (options->command == COMMAND_SWEEP)
		return open_and_sweep(fleet, options, scenario, command, &kept, NULL);
	err = fleet_run(fleet, options, scenario, command, &kept, &run, &error);
	status = err ? fail(err, error, EXIT_DEGRADED) : conclude(options, run, &written);
	kept_settle(&kept, written && !has_lost(run->driver));
	return status;
}

static int resume_fleet(struct resume *resume, const struct options *options)
{
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	bool written;
	int status, err = try_outputs(options, &error);

	if (!err)
		err = resume_run(resume, options, &run, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	status = conclude(options, run, &written);
	if (written)
		resume_forget(resume);
	return status;
}

static int resume_with_observers(struct resume *resume, const struct fleet_options *fleet,
				 struct options *options)
{
	struct lookouts_settings lookouts;
	autofree char *error = NULL;
	int err = lookouts_settle(&options->run.observers, fleet, &lookouts, &error);
	int status = err ? fail(err, error, EXIT_DEGRADED) : resume_fleet(resume, options);

	lookouts_clear(&lookouts);
	return status;
}

/* The members measure the rest of the steps. */
static int go_on_sweeping(struct resume *resume, const struct fleet_options *given,
			  struct options *options, const struct scenario *scenario)
{
	CLEANUP(kept_clear) struct kept kept = {0};
	CLEANUP(steps_clear) struct sweep_past past = {0};
	struct fleet_options fleet = *given;
	struct lookouts_settings lookouts;
	autofree char *error = NULL;
	int status, err = try_outputs(options, &error);

	if (!err)
		err = resume_sweep(resume, options->ladder.count, &fleet, &kept, &past, &error);
	if (!err)
		err = lookouts_settle(&options->run.observers, &fleet, &lookouts, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	status = open_and_sweep(&fleet, options, scenario, resume_command(resume), &kept, &past);
	lookouts_clear(&lookouts);
	return status;
}

/* The stored command line is parsed as the first coordinator did; it was valid then. */
static int find_and_resume(const struct fleet_options *fleet)
{
	CLEANUP(cleanup_resume_close) struct resume *resume = NULL;
	struct options options;
	struct scenario *scenario;
	autofree char *error = NULL;
	char **words;
	int err = resume_open(fleet, &resume, &error), count = 0, status;

	if (err)
		return fail(err, error, EXIT_DEGRADED);
	for (words = resume_command(resume); *words && strcmp(*words, "--") != 0;)
		words++;
	while (words[count])
		count++;
	err = scenario_of_command(count, words, NULL, &options, &scenario, &error);
	if (err)
		return fail(err, error, EXIT_DEGRADED);
	status = resume_is_sweep(resume) ? go_on_sweeping(resume, fleet, &options, scenario)
					 : resume_with_observers(resume, fleet, &options);
	scenario_free(scenario);
	options_clear(&options);
	return status;
}

/* --check: report how this host would judge the run. Nothing is sent to a server. */
static int tell_valid(const struct options *options, struct scenario *scenario)
{
	autofree char *error = NULL;
	struct drive_rows rows = {0};
	struct drive_job job = scenario_job_of(options, &rows, NULL);

	job.sockets = scenario_servers(scenario);
	for (size_t i = 0; i < scenario->step_count; i++) {
		struct target *target = &scenario->steps[i].target;
		autofree char *why = NULL;

		/* Warn only: perhaps the name resolves on the host of the run alone. */
		if (engine_has(target->engine, ENGINE_ADDRESSED) && target_look_up(target, &why) &&
		    why)
			log_warn("%s: whether the source ports suffice is not known", why);
	}
	scenario_rows(scenario, &rows);
	if (scenario_job_raise_files(options, &job, &error) && error)
		log_warn("%s", error);
	warn_of_ports(options, scenario, &job);
	if (scenario->of_targets)
		puts("the options are valid");
	else
		printf("%s is valid: %zu step%s, %s\n", scenario->path, scenario->step_count,
		       scenario->step_count == 1 ? "" : "s", scenario_order_names[scenario->order]);
	return EXIT_SUCCESS;
}

static int carry_out(struct options *options, struct scenario *scenario, char **argv,
		     const struct fleet_options *fleet)
{
	autofree char *error = NULL;
	int err = options->action == OPTIONS_DRIVE ? try_outputs(options, &error) : 0;

	if (!err && fleet && options->action == OPTIONS_DRIVE)
		err = fleet_check(fleet, options, scenario, &error);
	if (err)
		return fail(err, error, EXIT_USAGE);
	if (options->action == OPTIONS_HELP)
		options_help(options->command, stdout);
	else if (options->action == OPTIONS_VERSION)
		puts("sojourn-drive " SOJOURN_VERSION);
	else if (options->check_only)
		return tell_valid(options, scenario);
	else
		return fleet ? drive_fleet(fleet, options, scenario, argv)
			     : prepare_and_drive(options, scenario, argv);
	return EXIT_SUCCESS;
}

/* An option of fleet may have been written after "--". */
static int fail_usage(int err, const char *error, char **argv, const struct fleet_options *fleet)
{
	const char *option = fleet ? fleet_options_find(argv) : NULL;

	if (!error || !option || !strstr(error, "unknown option"))
		return fail(err, error, EXIT_USAGE);
	log_error("%s; '%s' is an option of fleet, before --", error, option);
	return EXIT_USAGE;
}

/* @command: the whole command line, of which @argv is what concerns the run. */
static int run(int argc, char **argv, char **command, const struct fleet_options *fleet)
{
	struct options options;
	struct scenario *scenario;
	struct lookouts_settings lookouts;
	autofree char *error = NULL;
	int err = scenario_of_command(argc, argv, NULL, &options, &scenario, &error);
	int status;

	if (err)
		return fail_usage(err, error, argv, fleet);
	err = lookouts_settle(&options.run.observers, fleet, &lookouts, &error);
	status = err ? fail(err, error, EXIT_USAGE) : carry_out(&options, scenario, command, fleet);
	lookouts_clear(&lookouts);
	scenario_free(scenario);
	options_clear(&options);
	return status;
}

static int run_fleet(int argc, char **argv, char **command)
{
	struct fleet_options fleet;
	autofree char *error = NULL;
	int rest = 0, status = EXIT_SUCCESS;
	int err = fleet_options_parse(argc, argv, &fleet, &rest, &error);

	if (err)
		return fail(err, error, EXIT_USAGE);
	if (fleet.help)
		fleet_options_help(stdout);
	else if (fleet.resume)
		status = find_and_resume(&fleet);
	else
		status = run(argc - rest, argv + rest, command, &fleet);
	fleet_options_clear(&fleet);
	return status;
}

static int serve_fleet(const struct agent_options *agent)
{
	autofree char *error = NULL;
	int err;

	if (agent->help) {
		agent_options_help(stdout);
		return EXIT_SUCCESS;
	}
	if (agent->nats.url) {
		err = agent->observers.url_count ? lookout_run(agent, &error)
						 : standby_run(agent, &error);
		return err ? fail(err, error, EXIT_DEGRADED) : EXIT_SUCCESS;
	}
	if (isatty(STDIN_FILENO))
		return fail(
			-EINVAL,
			"agent: standard input is a terminal, where the channel to a coordinator "
			"should be; sojourn-drive fleet starts agents, with ssh or kubectl exec "
			"without -t",
			EXIT_USAGE);
	err = agent_run(&agent->ceilings);
	return err ? fail(err, NULL, EXIT_DEGRADED) : EXIT_SUCCESS;
}

static int run_agent(int argc, char **argv, char **command)
{
	struct agent_options agent;
	autofree char *error = NULL;
	int err = agent_options_parse(argc, argv, &agent, &error);
	int status;

	(void)command;
	if (err)
		return fail(err, error, EXIT_USAGE);
	status = serve_fleet(&agent);
	agent_options_clear(&agent);
	return status;
}

/* Commands other than a run by this process alone; `help fleet` is `fleet --help`. */
static const struct {
	const char *word;
	int (*run)(int argc, char **argv, char **command);
	void (*help)(FILE *file);
} commands[] = {
	{"fleet", run_fleet, fleet_options_help},
	{"agent", run_agent, agent_options_help},
};

static int dispatch(int argc, char **argv)
{
	bool help = argc > 2 && !strcmp(argv[1], "help");

	log_open("sojourn-drive", false);
	signal(SIGPIPE, SIG_IGN); /* a server that goes away is an errno */
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[1 + help], commands[i].word) != 0)
			continue;
		if (!help)
			return commands[i].run(argc - 1, argv + 1, argv);
		commands[i].help(stdout);
		return EXIT_SUCCESS;
	}
	return run(argc, argv, argv, NULL);
}

int main(int argc, char **argv)
{
	streams_begin();
	return streams_end(dispatch(argc, argv));
}
