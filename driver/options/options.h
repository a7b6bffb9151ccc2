/* SPDX-License-Identifier: MIT */
/* What the user asked for, checked. Neighbours: engine/target.h (the URL), run/drive.h (carries it out). */
#ifndef DRIVER_OPTIONS_OPTIONS_H
#define DRIVER_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "load/ladder.h"
#include "load/load_settings.h"
#include "payload/request.h"
#include "run/assertion.h"
#include "run/run_settings.h"
#include "sojourn/cli.h"
#include "transport/link_settings.h"

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

/* Strings point into argv; what else is owned, options_clear() frees. */
struct options {
	enum options_action action;
	enum options_command command;
	const char *url; /* NULL: that of the scenario's steps */
	char **urls;	 /* those that were completed; the words point to them */
	size_t url_count;
	struct request request;
	struct link_settings link;
	struct load_settings load;
	struct run_settings run;
	struct ladder ladder; /* without steps unless COMMAND_SWEEP, which goes through it */
	bool think_distribution_given;
	struct assertion *assertions;
	size_t assertion_count;
	const char *json_path;	/* NULL: none; "-": standard output */
	const char *csv_path;	/* the same */
	const char *hlog_path;	/* the same */
	const char *trace_path; /* NULL: none */
	bool verbose;		/* the whole report */
	bool check_only;
	struct cli_words words; /* of the command line */
};

/* The defaults; returns how many words the command itself is: argc and argv go on behind them. */
int options_begin(int argc, char **argv, struct options *ret_options);

/*
 * Reads the command line of COMMAND_DRIVE or COMMAND_SWEEP; its URLs are left in words. 0, or -EINVAL with
 * a sentence in @ret_error (to be freed by the caller) that names the option, the value and what is
 * allowed; -ENOMEM.
 */
int options_parse(int argc, char **argv, struct options *options, char **ret_error);
void options_clear(struct options *options);

/*
 * "127.0.0.1:8080/x" at *@word becomes "http://127.0.0.1:8080/x", which @options own; what has a scheme, or is no
 * such address, stays as it is. -ENOMEM, or -EINVAL with a sentence in @ret_error for what is no URL at all.
 */
int options_complete_url(struct options *options, char **word, char **ret_error);

/* One more condition of --assert, or of a scenario's; returns as options_parse() does. */
int options_assert(struct options *options, const char *text, char **ret_error);

/* What was given of a request so far is a default from now on, which what follows replaces. */
void options_inherit_request(struct request *request);

/* Whether the option of these @length characters, without --, stood on the command line. */
bool options_were_given(const struct options *options, const char *name, size_t length);

/* The first option of that kind that was given; NULL: none was. */
const char *options_request_given(const struct request *request);

/*
 * Whether such requests over such links make sense for the engine of the target. -EINVAL with a sentence as above.
 */
int options_check(const struct request *request, const struct link_settings *link,
		  const struct engine *engine, char **ret_error);

/* The statuses of --expect-status, "200,302"; NULL in @ret_text: none were given. -ENOMEM. */
int options_expected(const struct options *options, char **ret_text);

/* Whether standard output is for one of the files, and the text report has no place there. */
bool options_own_stdout(const struct options *options);

/* Prints what --help does. */
void options_help(enum options_command command, FILE *file);

#endif
