// SPDX-License-Identifier: MIT
/* The parts of a run besides its options; see job.h. */
#include "job.h"

#include <stdlib.h>

#include "transport/host_limits.h"

uint32_t scenario_most_connections(const struct options *options)
{
	const struct ladder *ladder = &options->ladder;

	/* A member of a fleet has its share of a step. */
	if (options->command != COMMAND_SWEEP || ladder->of_rates || options->load.member.count)
		return options->load.connections;
	return (uint32_t)ladder->loads[ladder->count - 1];
}

int scenario_job_raise_files(const struct options *options, struct drive_job *job, char **ret_error)
{
	const struct limits_need need = {
		.connections = scenario_most_connections(options),
		.sockets = job->sockets,
		.threads = options->run.threads,
	};

	return limits_raise_files(&need, &job->own_files, ret_error);
}

struct drive_job scenario_job_of(const struct options *options, const struct drive_rows *rows,
				 char **command)
{
	return (struct drive_job){
		.url = options->url,
		.link = &options->link,
		.load = &options->load,
		.settings = &options->run,
		.rows = rows,
		.command = command,
	};
}

int scenario_job_open(const struct options *options, struct scenario *scenario, char **command,
		      struct scenario_job *ret_job, char **ret_error)
{
	struct scenario_job *job = ret_job;
	int err;

	job->job = scenario_job_of(options, &job->rows, command);
	scenario_rows(scenario, &job->rows);
	err = expectation_statuses(&options->request.expectation, &job->expected);
	job->job.expected = job->expected;
	return err ? err
		   : scenario_engine_prepare(scenario, &options->request, &job->job, ret_error);
}

void scenario_job_close(struct scenario_job *job)
{
	if (job->job.engine)
		job->job.engine->release(job->job.shared);
	free(job->expected);
	*job = (struct scenario_job){0};
}
