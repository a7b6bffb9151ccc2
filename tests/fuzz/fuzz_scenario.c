/* SPDX-License-Identifier: MIT */
/*
 * Any text as a scenario file: taken, with every step fit to be sent, or refused with a place and a sentence
 * on one line. What it may read by name (bodies, rows) is not looked for in the system's own folders.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "options/options.h"
#include "scenario/scenario.h"
#include "sojourn/cleanup.h"

#define NAME "f.yaml"

static bool has(const uint8_t *data, size_t size, const char *text)
{
	return memmem(data, size, text, strlen(text)) != NULL;
}

/* "f.yaml:LINE:COLUMN: what", or "f.yaml: what" of the whole. */
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
	text[size] = '\0';
	if (has(data, size, "/dev") || has(data, size, "/proc") || has(data, size, "/sys"))
		return 0;
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
