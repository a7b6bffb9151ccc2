// SPDX-License-Identifier: MIT
/* Opens the sinks, each at its time, and reports their errors; see outputs.h. */
#include "outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/listen.h"
#include "process/scribe.h"
#include "sinks/http/http.h"
#include "sinks/http/secrets.h"
#include "sinks/live/live.h"
#include "sinks/otlp/sink.h"
#include "sinks/recording/sink.h"
#include "sinks/term.h"
#include "sojourn/cli.h"
#include "sojourn/log.h"
#include "sojourn/run.h"
#include "sojourn/units.h"

/* ---- a recording ---- */

static void say_recording(const char *path, int error)
{
	if (error < 0)
		log_errno(error, "cannot write to '%s', trying again at each interval", path);
	else
		log_warn("'%s' can be written to again: only points in time are missing", path);
}

/* Errors that the file's state explains; any other is reported by its number. */
static int explain_recording(const struct observe_options *options, int error)
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
	else if (error == -ELOOP)
		log_error("--output: '%s' is a symbolic link, which a recording does not follow: "
			  "give the name of a file",
			  path);
	else
		log_errno(error, "--output: cannot write to '%s'", path);
	return error == -EEXIST || error == -ELOOP ? EXIT_USAGE : EXIT_FAILURE;
}

static int prepare_recording(struct outputs *outputs)
{
	const struct observe_options *options = outputs->options;
	struct sink_record_options sink = {
		.path = options->record,
		.interval_ns = options->interval_ns,
		.max_bytes = options->record_max_bytes,
		.follow = outputs->scribe ? scribe_follow : NULL,
		.context = outputs->scribe,
		.say = say_recording,
	};
	int r = options->record ? sink_record_open(&sink, &outputs->record) : 0;

	if (outputs->record)
		outputs->list[outputs->count++] = outputs->record;
	return r < 0 ? explain_recording(options, r) : EXIT_SUCCESS;
}

static int end_recording(struct outputs *outputs, struct run *run)
{
	const char *path = outputs->options->record;
	int r = sink_end(outputs->record, run);

	if (r < 0)
		return log_errno(r, "'%s' lacks the end: cannot write to it", path);
	if (!outputs->options->quiet)
		log_print("", "%s readings, %s bytes in %s",
			  as_count(sink_record_count(outputs->record)),
			  as_count(sink_record_bytes(outputs->record)), path);
	return 0;
}

/* ---- a collector ---- */

static void say_otlp(int error)
{
	log_errno(error, "--otlp: nothing is sent any more");
}

static int prepare_otlp(struct outputs *outputs)
{
	const struct otlp_target *target = &outputs->options->otlp;
	int r = target->url ? sink_otlp_open(target, say_otlp, &outputs->otlp) : 0;

	if (r == -ENOSYS)
		log_error("--otlp: libcurl is not here (Debian: libcurl4)");
	else if (r < 0)
		log_errno(r, "--otlp: cannot start the process that sends");
	if (outputs->otlp)
		outputs->list[outputs->count++] = outputs->otlp;
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- all of them ---- */

/* Try the document's file now: an error is reported before the observation, not after it. */
static int try_document(const char *path)
{
	int r = path ? run_try_write(path) : 0;

	if (error_is_passing(r)) {
		log_errno(r, "--json: cannot write '%s'", path);
		return EXIT_FAILURE;
	}
	if (r < 0)
		log_error("--json: cannot write '%s': %s: give a file in a folder that exists and "
			  "may be written to",
			  path, strerror(-r));
	return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
}

static int start_scribe(struct outputs *outputs)
{
	const struct observe_options *options = outputs->options;
	const struct scribe_files files = {
		.document = options->json && strcmp(options->json, "-") ? options->json : NULL,
		.recording = options->record_max_bytes ? options->record : NULL,
		.follow = sink_record_follow,
	};
	int r = files.document || files.recording ? scribe_start(&files, &outputs->scribe) : 0;

	return r < 0 ? log_errno(r, "cannot start the process that writes files") : 0;
}

int outputs_prepare(struct outputs *outputs, const struct observe_options *options, bool confined)
{
	int exit_code = try_document(options->json);

	outputs->options = options;
	if (exit_code)
		return exit_code;
	/* First, so that their processes inherit no descriptor, map or program. */
	exit_code = prepare_otlp(outputs);
	if (!exit_code && confined && start_scribe(outputs) < 0)
		exit_code = EXIT_FAILURE;
	return exit_code ? exit_code : prepare_recording(outputs);
}

static void say_secret(const char *path, const char *wrong)
{
	if (wrong)
		log_warn("--listen: '%s' has changed and cannot be used, as it is not %s: the "
			 "endpoint keeps using what it read before",
			 path, wrong);
	else
		log_warn("--listen: '%s' has changed: the endpoint now uses its new content", path);
}

static void warn_of_public_secrets(const struct sink_http_access *access)
{
	const char *const files[] = {access->files.token, access->files.read_token,
				     access->files.tls_key};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i] && http_secrets_is_public(files[i]))
			log_warn("--listen: every user of this host can read '%s': chmod 600",
				 files[i]);
}

static int open_endpoint(struct outputs *outputs, const struct snapshot_source *source)
{
	const struct observe_options *options = outputs->options;
	struct sink_http_access access = options->access;
	struct sink *sink = NULL;
	int r;

	access.own_token = options_own_token(options);
	access.user = outputs->user;
	access.say = say_secret;
	warn_of_public_secrets(&access);
	r = sink_http_open(&options->address, source, &access, &sink);
	if (r < 0)
		return r;
	outputs->list[outputs->count++] = sink;
	if (sink->locked)
		log_warn("--listen: no driver can measure through it, as its token cannot be kept: "
			 "%s: "
			 "give --token-file FILE, or --open",
			 strerror(-sink->locked));
	return 0;
}

int outputs_begin(struct outputs *outputs, const struct snapshot_source *source)
{
	const struct observe_options *options = outputs->options;
	struct sink **next = &outputs->list[outputs->count];
	/* Lines go where the summary goes, unless the document takes standard output. */
	FILE *lines = options->json && !strcmp(options->json, "-") ? stderr : stdout;
	int r = 0;

	if (options->live)
		r = sink_live_open(source, options->interval_ns, next);
	else if (outputs->record)
		r = sink_record_begin(outputs->record, source);
	else if (outputs->otlp)
		sink_otlp_begin(outputs->otlp, source);
	else if (options->interval_ns)
		r = sink_term_open(source, lines, next);
	outputs->count += *next != NULL;
	return r || !options->listen ? r : open_endpoint(outputs, source);
}

uint64_t outputs_interval_ns(const struct outputs *outputs)
{
	return outputs->otlp ? outputs->options->otlp.interval_ns : outputs->options->interval_ns;
}

const char *outputs_url(const struct outputs *outputs)
{
	const char *url = NULL;

	for (size_t i = 0; i < outputs->count; i++)
		url = outputs->list[i]->url ? outputs->list[i]->url : url;
	return url;
}

void outputs_leave(struct outputs *outputs)
{
	size_t kept = 0;

	for (size_t i = 0; i < outputs->count; i++) {
		if (outputs->list[i]->operations->end)
			outputs->list[kept++] = outputs->list[i];
		else
			sink_close(outputs->list[i]);
	}
	outputs->count = kept;
}

int outputs_document(struct outputs *outputs, const struct run *run)
{
	const char *path = outputs->options->json;

	if (!path)
		return 0;
	return outputs->scribe && strcmp(path, "-") ? scribe_write(outputs->scribe, run)
						    : run_write(run, path);
}

int outputs_end(struct outputs *outputs, struct run *run)
{
	int r = outputs->record ? end_recording(outputs, run) : 0;

	if (outputs->otlp)
		(void)sink_end(outputs->otlp, run);
	return r;
}

void outputs_close(struct outputs *outputs)
{
	while (outputs->count)
		sink_close(outputs->list[--outputs->count]);
	scribe_stop(outputs->scribe);
}
