// SPDX-License-Identifier: MIT
/*
 * Any text as a scenario file, with the files that it may name. It is accepted, with every step
 * ready to send, or refused with a place and a sentence on one line. After a record separator comes
 * the contents of `body`, after another that of `rows`. No file is opened in the system's own
 * folders.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "options/options.h"
#include "scenario/scenario.h"
#include "sojourn/cleanup.h"

#define NAME	  "f.yaml"
#define SEPARATOR '\x1e'

/* ---- a folder of its own ---- */

static char folder[] = "/tmp/fuzz-scenario.XXXXXX";

static void leave_folder(void)
{
	(void)unlink("body");
	(void)unlink("rows");
	(void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	require(mkdtemp(folder) && !chdir(folder));
	atexit(leave_folder);
	return 0;
}

/* Write the last part of @text, after a separator, to file @name; return the remaining length. */
static size_t cut_file(const char *text, size_t length, const char *name)
{
	const char *split = length ? memrchr(text, SEPARATOR, length) : NULL;
	FILE *file = split ? fopen(name, "w") : NULL;

	if (!split) {
		(void)unlink(name);
		return length;
	}
	require(file != NULL);
	fwrite(split + 1, 1, length - (size_t)(split + 1 - text), file);
	require(!fclose(file));
	return (size_t)(split - text);
}

/* ---- invariants ---- */

static bool has(const uint8_t *data, size_t size, const char *text)
{
	return memmem(data, size, text, strlen(text)) != NULL;
}

/* Require "f.yaml:LINE:COLUMN: message", or "f.yaml: message" about the whole file. */
static void check_error(int err, const char *error)
{
	if (err == -ENOMEM)
		return;
	require(err == -EINVAL && error && *error);
	require(!strncmp(error, NAME ":", strlen(NAME ":")) && !strchr(error, '\n'));
}

static void check_taken(const struct scenario *scenario)
{
	require(scenario->step_count >= 1 && scenario->step_count <= SCENARIO_STEPS_MAX);
	for (size_t i = 0; i < scenario->step_count; i++) {
		require(scenario->steps[i].name && *scenario->steps[i].name);
		require(scenario->steps[i].target.engine != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct options options = {.load = {.connections = 16}, .run = {.threads = 1}};
	autofree char *error = NULL, *text = malloc(size + 1);
	struct scenario *scenario = NULL;
	int err;

	require(text != NULL);
	memcpy(text, data, size);
	if (has(data, size, "/dev") || has(data, size, "/proc") || has(data, size, "/sys"))
		return 0;
	size = cut_file(text, size, "rows");
	size = cut_file(text, size, "body");
	text[size] = '\0';
	err = scenario_parse(NAME, text, size, &options, &scenario, &error);
	if (!err) {
		require(!error && scenario);
		err = scenario_check(scenario, &options, &error);
	}
	if (err)
		check_error(err, error);
	else
		check_taken(scenario);
	scenario_free(scenario);
	options_clear(&options);
	return 0;
}
