// SPDX-License-Identifier: MIT
/*
 * `run FILE.yaml`: the file's settings first, then the command line's, which replace them. So the words
 * are walked twice: to find the file, and to apply what stands beside it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "option_rows.h"
#include "scenario.h"
#include "sojourn/refuse.h"

/* Finds the words that are no options; whatever is wrong with the others is told here. */
static int find_words(int argc, char **argv, struct options *options, char **ret_error)
{
	struct options scratch = *options;
	int err = options_parse_words(argc, argv, &scratch, ret_error);
	int left = argc - optind;

	options->action = scratch.action;
	if (!err && scratch.action == OPTIONS_DRIVE && !left)
		err = refuse(ret_error,
			     "run: no FILE given; write e.g. sojourn-drive run scenario.yaml");
	if (!err && scratch.action == OPTIONS_DRIVE && left > 2)
		err = refuse(ret_error,
			     "run: one FILE and one URL are allowed, but '%s' follows '%s'",
			     argv[optind + 2], argv[optind + 1]);
	options_clear(&scratch);
	return err;
}

static int refuse_request(const struct options *options, char **ret_error)
{
	const char *given = options_request_given(options);

	if (!given)
		return 0;
	return refuse(ret_error,
		      "%s: the requests of 'run' are in its file; give it to a step, or to "
		      "its defaults",
		      given);
}

/* Whether @sentence names an option ("--rate") that stood on the command line. */
static bool names_given(const struct options *options, const char *sentence)
{
	for (const char *name = sentence; (name = strstr(name, "--"));) {
		size_t length;

		name += 2;
		length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
		if (options_were_given(options, name, length))
			return true;
	}
	return false;
}

static int settle(struct options *options, char **ret_error)
{
	const struct scenario *scenario = options->scenario;
	autofree char *error = NULL;
	int err = options_settle(options, &error);

	/* The file may be right by itself. */
	if (err == -EINVAL && error && names_given(options, error))
		return refuse(ret_error, "%s: with the command line: %s", scenario->path, error);
	if (err == -EINVAL && error)
		return scenario_refuse_at(scenario->path, &scenario->places, NULL, error,
					  ret_error);
	return err;
}

int options_parse_run(int argc, char **argv, struct options *options, char **ret_error)
{
	int err = find_words(argc, argv, options, ret_error);

	if (err || options->action != OPTIONS_DRIVE)
		return err;
	err = scenario_load(argv[optind], options, &options->scenario, ret_error);
	if (!err)
		err = options_parse_words(argc, argv, options, ret_error);
	if (err)
		return err;
	options->url = argc - optind > 1 ? argv[optind + 1] : NULL;
	err = refuse_request(options, ret_error);
	if (!err)
		err = settle(options, ret_error);
	return err ? err : scenario_check(options->scenario, options, ret_error);
}
