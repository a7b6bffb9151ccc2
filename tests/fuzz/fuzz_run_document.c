// SPDX-License-Identifier: MIT
/*
 * Any bytes as a run document: refused with a message, or read. Then writing, reading again,
 * subtracting and reporting must neither crash nor change it.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sojourn/report.h"
#include "sojourn/run.h"

static void report(const struct run *run, unsigned int width)
{
	struct report_options options = {
		.colour = width & 1, .ascii = width & 1, .verbose = !width, .width = width};
	autofree char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	require(file);
	report_text(run, &options, file);
	fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *error = NULL, *once = NULL, *twice = NULL;
	autorun struct run *run = NULL, *again = NULL;

	if (run_from_json((const char *)data, size, &run, &error)) {
		require(error && *error && !strchr(error, '\n'));
		return 0;
	}
	once = run_to_json(run);
	require(once && !run_from_json(once, strlen(once), &again, &error));
	twice = run_to_json(again);
	require(twice && !strcmp(once, twice));

	report(run, 0);
	report(run, 41);
	report(run, 60);
	run_subtract(again, run);
	report(again, 80);
	free(error);
	error = NULL;
	if (run_merge(run, again, &error)) {
		require(error && *error);
		return 0;
	}
	free(twice);
	twice = run_to_json(run);
	require(twice != NULL);
	return 0;
}
