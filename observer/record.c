// SPDX-License-Identifier: MIT
/* The face of `sojourn record`; see record.h. */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sojourn/cli.h"
#include "sojourn/log.h"
#include "sojourn/units.h"

static void say(const char *path, int error)
{
	if (error < 0)
		log_errno(error, "cannot write to '%s', trying again at each interval", path);
	else
		log_warn("'%s' can be written to again: only points in time are missing", path);
}

/* Errors that the file's state explains; any other is told by its number. */
static int explain(const struct observe_options *options, int error)
{
	const char *path = options->record;

	if (error == -EEXIST && options->record_max_bytes)
		log_error("--output: '%s' or '%s.1' is there and is no recording: give another "
			  "name",
			  path, path);
	else if (error == -EEXIST)
		log_error("--output: '%s' is there and is no recording: give another name", path);
	else if (error == -EWOULDBLOCK)
		log_error("--output: '%s' is being written to by another process: give another "
			  "name",
			  path);
	else
		log_errno(error, "--output: cannot write to '%s'", path);
	return error == -EEXIST ? EXIT_USAGE : EXIT_FAILURE;
}

int record_open(const struct observe_options *options, struct sink_record **ret_sink)
{
	struct sink_record_options sink = {
		.path = options->record,
		.interval_ns = options->interval_ns,
		.max_bytes = options->record_max_bytes,
		.say = say,
	};
	int r = options->record ? sink_record_open(&sink, ret_sink) : 0;

	return r < 0 ? explain(options, r) : EXIT_SUCCESS;
}

int record_end(const struct observe_options *options, struct sink_record *sink, struct run *run)
{
	char readings[32], bytes[32];
	int r = sink_record_end(sink, run);

	if (r < 0)
		return log_errno(r, "'%s' lacks the end: cannot write to it", options->record);
	units_format_count(sink_record_count(sink), readings, sizeof(readings));
	units_format_count(sink_record_bytes(sink), bytes, sizeof(bytes));
	if (!options->quiet)
		fprintf(stderr, "sojourn record: %s readings, %s bytes in %s\n", readings, bytes,
			options->record);
	return 0;
}
