/* SPDX-License-Identifier: MIT */
/*
 * docs/run-document.md: its tables name exactly the members that are written, and those of the JSON
 * Schema.
 */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/run.h"
#include "support/runs.h"

#define MAX_PATHS 2048

struct paths {
	char *list[MAX_PATHS];
	bool optional[MAX_PATHS]; /* may be null or absent; not set within an optional member */
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

static void add_path(struct paths *paths, const char *path, bool optional)
{
	if (has_path(paths, path))
		return;
	assert_true(paths->count < MAX_PATHS);
	paths->optional[paths->count] = optional;
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

/* Return the name in tables of member @name of @path: similar members share one row. */
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

/*
 * Collect paths of the members below @json as written in the document; leaves, and arrays'
 * elements.
 */
static void collect(struct paths *paths, const json_t *json, const char *path)
{
	const char *name;
	char below[256];
	json_t *value;
	size_t i;

	if (json_is_array(json)) {
		snprintf(below, sizeof(below), "%s[]", path);
		add_path(paths, below, false);
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
		add_path(paths, path, false);
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
		bool optional;

		if (!end)
			continue;
		*end = '\0';
		optional = strstr(end + 1, "*optional*") || strstr(end + 1, "*derived*");
		/* Each of these has a row of its own before. */
		if (strcmp(line + 3, "cost") && strcmp(line + 3, "driver") &&
		    strcmp(line + 3, "joined") && strcmp(line + 3, "sweep") &&
		    strcmp(line + 3, "looked_at") && strcmp(line + 3, "sweep.three_quarters"))
			add_path(paths, line + 3, optional);
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

/* ---- the JSON Schema ---- */

static const json_t *resolve(const json_t *root, const json_t *schema)
{
	const json_t *any = json_object_get(schema, "anyOf");
	const char *reference;

	schema = any ? json_array_get(any, 0) : schema;
	reference = json_string_value(json_object_get(schema, "$ref"));
	if (!reference)
		return schema;
	return json_object_get(json_object_get(root, "$defs"), strrchr(reference, '/') + 1);
}

static bool may_be_null(const json_t *schema)
{
	return json_object_get(schema, "anyOf") || json_is_array(json_object_get(schema, "type"));
}

static bool is_required(const json_t *object, const char *name)
{
	const json_t *names = json_object_get(object, "required"), *value;
	size_t i;

	json_array_foreach (names, i, value)
		if (!strcmp(json_string_value(value), name))
			return true;
	return false;
}

/*
 * Collect paths below @schema. @inside: within an optional member, which has its own row;
 * @optional: itself optional.
 */
static void collect_schema(struct paths *paths, const json_t *root, const json_t *schema,
			   const char *path, bool inside, bool optional)
{
	const json_t *members, *items;
	char below[256];
	const char *name;
	json_t *value;

	schema = resolve(root, schema);
	members = json_object_get(schema, "properties");
	items = json_object_get(schema, "items");
	if (items) {
		snprintf(below, sizeof(below), "%s[]", path);
		add_path(paths, below, optional && !inside);
		if (json_object_get(resolve(root, items), "properties"))
			collect_schema(paths, root, items, below, inside || optional, false);
		return;
	}
	json_object_foreach ((json_t *)members, name, value) {
		snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "",
			 row_name(path, name));
		collect_schema(paths, root, value, below, inside || optional,
			       may_be_null(value) || !is_required(schema, name));
	}
	if (!members)
		add_path(paths, path, optional && !inside);
}

/*
 * The driver and the observer fill different columns of the same table; each is documented where it
 * is filled.
 */
static bool is_column(const char *path)
{
	return strstr(path, ".samples.");
}

static void document_and_schema_agree(void **state)
{
	struct paths told = {0}, documented = {0};
	autofree char *text = run_schema_to_json();
	json_t *schema = text ? json_loads(text, 0, NULL) : NULL;
	unsigned int wrong = 0;

	(void)state;
	assert_non_null(schema);
	collect_schema(&told, schema, schema, "", false, false);
	collect_documented(&documented);
	for (size_t i = 0; i < told.count; i++) {
		size_t row = 0;

		while (row < documented.count && strcmp(documented.list[row], told.list[i]))
			row++;
		if (row == documented.count && !is_column(told.list[i])) {
			print_error("in the schema, not documented: %s\n", told.list[i]);
			wrong++;
		} else if (row < documented.count && told.optional[i] &&
			   !documented.optional[row]) {
			print_error("optional, and the document does not say so: %s\n",
				    told.list[i]);
			wrong++;
		}
	}
	for (size_t i = 0; i < documented.count; i++)
		if (!has_path(&told, documented.list[i])) {
			print_error("documented, not in the schema: %s\n", documented.list[i]);
			wrong++;
		}
	assert_true(told.count > 100);
	json_decref(schema);
	free_paths(&told);
	free_paths(&documented);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document_and_writer_agree),
		cmocka_unit_test(document_and_schema_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
