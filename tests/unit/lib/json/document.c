/* SPDX-License-Identifier: MIT */
/* docs/run-document.md: its tables name exactly the members that are written. */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/run.h"
#include "support/runs.h"

#define MAX_PATHS 1024

struct paths {
	char *list[MAX_PATHS];
	size_t count;
};

static void free_paths(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->list[i]);
}

static bool has_path(const struct paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (!strcmp(paths->list[i], path))
			return true;
	return false;
}

static void add_path(struct paths *paths, const char *path)
{
	if (has_path(paths, path))
		return;
	assert_true(paths->count < MAX_PATHS);
	paths->list[paths->count] = strdup(path);
	assert_non_null(paths->list[paths->count++]);
}

static bool is_one_of(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static bool ends_in(const char *path, const char *end)
{
	size_t length = strlen(path), rest = strlen(end);

	return length > rest && !strcmp(path + length - rest, end);
}

/* What stands in tables for the member @name of @path: members that are alike have one row. */
static const char *row_name(const char *path, const char *name)
{
	if (ends_in(path, ".stages") && is_one_of(run_stage_names, STAGE_COUNT, name))
		return "NAME";
	if (ends_in(path, ".cpu") && is_one_of(run_cpu_names, RUN_CPU_COUNT, name))
		return "PART";
	if (ends_in(path, ".series.closes") || ends_in(path, ".series.losses"))
		return "KIND";
	return name;
}

/* Paths of the members below @json as the document writes them; leaves, and arrays' elements. */
static void collect(struct paths *paths, const json_t *json, const char *path)
{
	const char *name;
	char below[256];
	json_t *value;
	size_t i;

	if (json_is_array(json)) {
		snprintf(below, sizeof(below), "%s[]", path);
		add_path(paths, below);
		json_array_foreach (json, i, value)
			if (json_is_object(value))
				collect(paths, value, below);
	} else if (json_is_object(json)) {
		json_object_foreach ((json_t *)json, name, value) {
			snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "",
				 row_name(path, name));
			collect(paths, value, below);
		}
	} else {
		add_path(paths, path);
	}
}

static void collect_written(struct paths *paths)
{
	autorun struct run *run = support_full_run();
	autofree char *text = run_to_json(run);
	json_t *document = json_loads(text, 0, NULL);

	assert_non_null(document);
	collect(paths, document, "");
	json_decref(document);
}

/* The first cell of every table row: "| `path` | …". */
static void collect_documented(struct paths *paths)
{
	autofclose FILE *file = fopen(DOCS_DIR "/run-document.md", "r");
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *end = strncmp(line, "| `", 3) ? NULL : strchr(line + 3, '`');

		if (!end)
			continue;
		*end = '\0';
		/* These are introduced by a row of their own. */
		if (strcmp(line + 3, "cost") && strcmp(line + 3, "driver") &&
		    strcmp(line + 3, "joined") && strcmp(line + 3, "sweep") &&
		    strcmp(line + 3, "looked_at") && strcmp(line + 3, "sweep.three_quarters"))
			add_path(paths, line + 3);
	}
}

static void document_and_writer_agree(void **state)
{
	struct paths written = {0}, documented = {0};
	unsigned int wrong = 0;

	(void)state;
	collect_written(&written);
	collect_documented(&documented);
	for (size_t i = 0; i < written.count; i++)
		if (!has_path(&documented, written.list[i])) {
			print_error("written, not documented: %s\n", written.list[i]);
			wrong++;
		}
	for (size_t i = 0; i < documented.count; i++)
		if (!has_path(&written, documented.list[i])) {
			print_error("documented, not written: %s\n", documented.list[i]);
			wrong++;
		}
	assert_true(written.count > 100);
	free_paths(&written);
	free_paths(&documented);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(document_and_writer_agree)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
