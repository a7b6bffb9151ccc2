/* SPDX-License-Identifier: MIT */
/* The user's request, checked. Neighbours: engine/target.h (the URL), run/drive.h (the run). */
#ifndef DRIVER_OPTIONS_OPTIONS_H
#define DRIVER_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "load/ladder.h"
#include "load/load_settings.h"
#include "payload/request.h"
#include "run/assertion.h"
#include "run/run_settings.h"
#include "sojourn/cli.h"
#include "transport/link.h"

struct engine;

enum options_action {
	OPTIONS_DRIVE,
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

enum options_command {
	COMMAND_DRIVE,
	COMMAND_SWEEP,
	COMMAND_RUN,
};

/* Strings point into argv; options_clear() frees the rest. */
struct options {
	enum options_action action;
	enum options_command command;
	const char *url; /* NULL: the scenario's steps have URLs */
	char **urls;	 /* completed URLs, which @words point to */
	size_t url_count;
	struct request request;
	struct link_settings link;
	struct load_settings load;
	struct run_settings run;
	struct ladder ladder; /* COMMAND_SWEEP: its steps; otherwise empty */
	bool think_distribution_given;
	struct assertion *assertions;
	size_t assertion_count;
	const char *json_path;	/* NULL: none; "-": standard output */
	const char *csv_path;	/* likewise */
	const char *hlog_path;	/* likewise */
	const char *trace_path; /* NULL: none */
	bool verbose;		/* print the whole report */
	bool check_only;
	struct cli_words words; /* of the command line */
};

/* Set the defaults. Return how many words the command has: argc and argv continue after them. */
int options_begin(int argc, char **argv, struct options *ret_options);

/*
 * Read the command line of COMMAND_DRIVE or COMMAND_SWEEP; its URLs stay in @words. Return 0,
 * -ENOMEM, or -EINVAL with @ret_error that names the option, the value and what is allowed.
 */
int options_parse(int argc, char **argv, struct options *options, char **ret_error);
void options_clear(struct options *options);

/*
 * Complete "127.0.0.1:8080/x" at *@word to "http://127.0.0.1:8080/x", owned by @options. A word
 * that has a scheme or is no such address stays. -ENOMEM, or -EINVAL with @ret_error if it cannot
 * be a URL.
 */
int options_complete_url(struct options *options, char **word, char **ret_error);

/* Turn a request's settings into defaults, which later settings replace. */
void options_inherit_request(struct request *request);

/* Return whether the option of @length characters, without --, was given. */
bool options_were_given(const struct options *options, const char *name, size_t length);

/* Return the first request option given, or NULL. */
const char *options_request_given(const struct request *request);

/* Check that the target's engine can send such requests over such links. -EINVAL as above. */
int options_check(const struct request *request, const struct link_settings *link,
		  const struct engine *engine, char **ret_error);

/* Return whether a file goes to standard output, in place of the text report. */
bool options_own_stdout(const struct options *options);

void options_help(enum options_command command, FILE *file);

#endif
