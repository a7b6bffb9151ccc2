// SPDX-License-Identifier: MIT
/* What no single option can decide. Neighbours: options.c (the words), option_sweep.c (of a sweep). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "option_rows.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define DURATION_NS (10 * NSEC_PER_SEC)
#define SLOTS_MAX   1000000U

static int settle_policy(struct options *options, char **ret_error)
{
	struct connection_policy *policy = &options->policy;

	if (options->new_connections && policy->requests > 1)
		return refuse(ret_error, "--requests-per-connection: --new-connections makes it 1; "
					 "give one of the two");
	if (options->new_connections)
		policy->requests = 1;
	options->new_connections = policy->requests == 1;
	return 0;
}

static bool is_timed(const struct shape *shape)
{
	return shape->count && shape->segments[shape->count - 1].duration_ns;
}

/* One segment without a length and of one value is no shape. */
static bool is_level(const struct shape *shape)
{
	return shape->count == 1 && !is_timed(shape) &&
	       shape->segments[0].from == shape->segments[0].to;
}

/* The segments' sum is the duration where none is given. */
static int settle_lengths(struct options *options, struct shape *shape, char **ret_error)
{
	uint64_t total_ns = 0;

	for (size_t i = 0; i < shape->count && is_timed(shape); i++)
		total_ns += shape->segments[i].duration_ns;
	if (!options->duration_ns && !options->requests)
		options->duration_ns = total_ns ? total_ns : DURATION_NS;
	return shape_settle(shape, options->duration_ns, ret_error);
}

/* The mean is what the rest goes by. */
static int settle_rate(struct options *options, char **ret_error)
{
	struct schedule_spec *spec = &options->schedule;
	struct shape *shape = &spec->shape;
	const struct shape_segment *last;
	double duration_ns;
	int err;

	if (!shape->count)
		return 0;
	if (is_level(shape)) {
		spec->rate = (uint64_t)shape->segments[0].from;
		shape->count = 0;
		return 0;
	}
	err = settle_lengths(options, shape, ret_error);
	if (err)
		return err;
	last = &shape->segments[shape->count - 1];
	duration_ns = options->duration_ns ? (double)options->duration_ns
					   : last->begin_ns + (double)last->duration_ns;
	spec->rate =
		(uint64_t)(shape_count(shape, duration_ns) / duration_ns * (double)NSEC_PER_SEC +
			   0.5);
	spec->rate = spec->rate ? spec->rate : 1;
	return 0;
}

static int settle_ramp(struct options *options, char **ret_error)
{
	if (!options->ramp.count)
		return 0;
	if (options->command == COMMAND_SWEEP || options->schedule.rate)
		return refuse(
			ret_error, "--connections: '%s' changes with time; give one number: %s",
			options->connections_text,
			options->command == COMMAND_SWEEP ? "a sweep goes through those of --ladder"
							  : "--rate is for all of them");
	if (is_level(&options->ramp)) {
		options->ramp.count = 0;
		return 0;
	}
	if (options->requests)
		return refuse(ret_error,
			      "--requests: %" PRIu64 " of them may end before --connections: '%s' "
			      "does; give --duration, or lengths, in place of the number",
			      options->requests, options->connections_text);
	return settle_lengths(options, &options->ramp, ret_error);
}

static int settle_schedule(struct options *options, char **ret_error)
{
	struct schedule_spec *spec = &options->schedule;

	if (options->command == COMMAND_SWEEP)
		return 0; /* each step has its own */
	if (spec->arrival != SCHEDULE_CLOSED && !spec->rate)
		return refuse(ret_error, "--arrival: %s needs a rate; add --rate=N",
			      schedule_arrival_names[spec->arrival]);
	if (spec->rate && spec->think_ns)
		return refuse(ret_error, "--think: a rate and a think time exclude each other; "
					 "give --rate or --think");
	if (options->think_distribution_given && !spec->think_ns)
		return refuse(ret_error, "--think-distribution: %s needs a time; add --think=TIME",
			      schedule_think_names[spec->think]);
	if (spec->rate && spec->arrival == SCHEDULE_CLOSED)
		spec->arrival = SCHEDULE_CONSTANT;
	return 0;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* "folder/name" with the folder's real path; NULL: it cannot be told. */
static char *real_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	autofree char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	autofree char *real = folder ? realpath(folder, NULL) : NULL;
	char *all;

	return real && asprintf(&all, "%s/%s", real, name) >= 0 ? all : NULL;
}

/* Whether what is written to one replaces what is written to the other: not so of /dev/null. */
static bool is_same_file(const char *a, const char *b)
{
	autofree char *real_a = NULL, *real_b = NULL;
	bool there_a, there_b;
	struct stat at, bt;

	there_a = !stat(a, &at);
	there_b = !stat(b, &bt);
	if (there_a && there_b)
		return S_ISREG(at.st_mode) && at.st_dev == bt.st_dev && at.st_ino == bt.st_ino;
	if (there_a || there_b)
		return false;
	real_a = real_name(a);
	real_b = real_name(b);
	return real_a && real_b && !strcmp(real_a, real_b);
}

static int check_apart(const struct options *options, char **ret_error)
{
	const struct {
		const char *option;
		const char *path;
	} outputs[] = {
		{"--json", options->json_path},
		{"--csv", options->csv_path},
		{"--hlog", options->hlog_path},
		{"--trace", options->trace_path},
	};

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		for (size_t j = 0; j < i; j++)
			if (outputs[i].path && outputs[j].path &&
			    is_same_file(outputs[i].path, outputs[j].path))
				return refuse(ret_error,
					      "%s: '%s' is the file of %s, too, which would be "
					      "lost; give two files",
					      outputs[i].option, outputs[i].path,
					      outputs[j].option);
	return 0;
}

static int settle_outputs(const struct options *options, char **ret_error)
{
	if (is_stdout(options->json_path) + is_stdout(options->csv_path) +
		    is_stdout(options->hlog_path) >
	    1)
		return refuse(ret_error, "only one of --json, --csv and --hlog can be -");
	return check_apart(options, ret_error);
}

bool options_own_stdout(const struct options *options)
{
	return is_stdout(options->json_path) || is_stdout(options->csv_path) ||
	       is_stdout(options->hlog_path);
}

static int settle_datagrams(const struct options *options, char **ret_error)
{
	char text[32];

	if (!options->datagrams.retransmit_ns ||
	    options->datagrams.retransmit_ns < options->timeout_ns)
		return 0;
	return refuse(ret_error,
		      "--retransmit: nothing is sent again before the request is given up, after "
		      "%s (--timeout); make it shorter than that",
		      units_format_duration((double)options->timeout_ns, text, sizeof(text)));
}

static int settle_h2(const struct options *options, char **ret_error)
{
	if ((uint64_t)options->connections * options->streams > SLOTS_MAX)
		return refuse(ret_error,
			      "--streams: %u on each of %u connections are more than %u at "
			      "a time",
			      options->streams, options->connections, SLOTS_MAX);
	if (options->grpc_expectation.given && !options->grpc)
		return refuse(ret_error, "--expect-grpc-status: there is none without gRPC; add "
					 "--grpc");
	return 0;
}

static int settle_tls(const struct options *options, char **ret_error)
{
	const struct tls_options *tls = &options->tls;

	if (tls->ca_path && tls->insecure)
		return refuse(ret_error,
			      "--insecure: every certificate is accepted, --ca says which "
			      "are; give one of the two");
	if (tls->key_path && !tls->cert_path)
		return refuse(ret_error, "--key: it belongs to a certificate; add --cert=FILE");
	return 0;
}

int options_settle(struct options *options, char **ret_error)
{
	int err;

	if (options->connections < options->threads * options->processes)
		return refuse(
			ret_error,
			"--connections: %u is fewer than the %u threads of --threads%s; every "
			"thread needs a connection",
			options->connections, options->threads * options->processes,
			options->processes > 1 ? " times --processes" : "");
	err = option_settle_sweep(options, ret_error);
	if (!err)
		err = settle_ramp(options, ret_error);
	if (!err)
		err = settle_rate(options, ret_error);
	if (err)
		return err;
	if (!options->duration_ns && !options->requests)
		options->duration_ns = DURATION_NS;
	err = settle_policy(options, ret_error);
	if (err)
		return err;
	if (options->trace_path && !options->observer.url)
		return refuse(ret_error, "--trace: the timelines are the observer's; add "
					 "--observer=URL");
	/* Only what is joined or written is worth its memory. */
	if (!options->observer.url && !options->json_path)
		options->samples = 0;
	err = option_settle_observer(options, ret_error);
	if (!err)
		err = settle_outputs(options, ret_error);
	if (!err)
		err = settle_tls(options, ret_error);
	if (!err)
		err = settle_h2(options, ret_error);
	if (!err)
		err = settle_datagrams(options, ret_error);
	return err ? err : settle_schedule(options, ret_error);
}
