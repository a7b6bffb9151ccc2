// SPDX-License-Identifier: MIT
/*
 * The command line's request: URLs, or `run FILE.yaml`. A file's settings come first and the
 * command line's replace them. The words are therefore read twice: to find the file, and to apply
 * the options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options/rows.h"
#include "scenario.h"
#include "sojourn/refuse.h"

/* Find the first word that is no option. Errors in the other words are reported here. */
static int find_file(int argc, char **argv, struct options *options, const char **ret_file,
		     char **ret_error)
{
	struct options scratch = *options;
	int err = options_parse_words(argc, argv, &scratch, ret_error);
	int left = scratch.words.count;
	char **words = scratch.words.list;

	options->action = scratch.action;
	if (!err && scratch.action == OPTIONS_DRIVE && !left)
		err = refuse(ret_error,
			     "run: no FILE given; write e.g. sojourn-drive run scenario.yaml");
	if (!err && scratch.action == OPTIONS_DRIVE && left > 2)
		err = refuse(ret_error,
			     "run: one FILE and one URL are allowed, but '%s' follows '%s'",
			     words[2], words[1]);
	*ret_file = left ? words[0] : NULL;
	options_clear(&scratch);
	return err;
}

static int refuse_request(const struct options *options, char **ret_error)
{
	const char *given = options_request_given(&options->request);

	if (!given)
		return 0;
	return refuse(ret_error,
		      "%s: the requests of 'run' are in its file; give it to a step, or to "
		      "its defaults",
		      given);
}

/* Return whether @sentence names an option ("--rate") given on the command line. */
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

static int settle(const struct scenario *scenario, struct options *options, char **ret_error)
{
	autofree char *error = NULL;
	int err = options_settle(options, &error);

	/* The file alone may be right. */
	if (err == -EINVAL && error && names_given(options, error))
		return refuse(ret_error, "%s: with the command line: %s", scenario->path, error);
	if (err == -EINVAL && error)
		return scenario_refuse_at(scenario->path, &scenario->places, NULL, error,
					  ret_error);
	return err;
}

static int parse_run(int argc, char **argv, const struct scenario_sent *sent,
		     struct options *options, struct scenario **ret_scenario, char **ret_error)
{
	const char *file = NULL;
	int err = find_file(argc, argv, options, &file, ret_error);

	if (err || options->action != OPTIONS_DRIVE)
		return err;
	err = scenario_load(file, sent, options, ret_scenario, ret_error);
	if (!err)
		err = options_parse_words(argc, argv, options, ret_error);
	if (!err && options->words.count > 1)
		err = options_complete_url(options, &options->words.list[1], ret_error);
	if (err)
		return err;
	options->url = options->words.count > 1 ? options->words.list[1] : NULL;
	err = refuse_request(options, ret_error);
	if (!err)
		err = settle(*ret_scenario, options, ret_error);
	return err ? err : scenario_check(*ret_scenario, options, ret_error);
}

int scenario_of_command(int argc, char **argv, const struct scenario_sent *sent,
			struct options *ret_options, struct scenario **ret_scenario,
			char **ret_error)
{
	struct options *options = ret_options;
	int skip = options_begin(argc, argv, options), err;

	*ret_scenario = NULL;
	if (options->command == COMMAND_RUN) {
		err = parse_run(argc - skip, argv + skip, sent, options, ret_scenario, ret_error);
	} else {
		err = options_parse(argc - skip, argv + skip, options, ret_error);
		if (!err && options->action == OPTIONS_DRIVE)
			err = scenario_of_targets(options->words.list, (size_t)options->words.count,
						  options, ret_scenario, ret_error);
	}
	if (err) {
		scenario_free(*ret_scenario);
		options_clear(options);
	}
	return err;
}
