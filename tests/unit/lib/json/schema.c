// SPDX-License-Identifier: MIT
/*
 * The JSON Schema has exactly the members that are written: of each structure, wherever it is. Python
 * tests validate all documents with it; tests/check/members.py compares docs/run-document.md.
 */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/run.h"
#include "support/runs.h"

#define WRITTEN "written" /* added to the schema of a member that is in the document */

/* Return the schema of an object, of a list's elements, or of a number; follow references. */
static json_t *resolve(const json_t *root, json_t *schema)
{
	json_t *any = json_object_get(schema, "anyOf");
	json_t *items = json_object_get(schema, "items");
	const char *reference;

	if (any)
		return resolve(root, json_array_get(any, 0));
	if (items)
		return resolve(root, items);
	reference = json_string_value(json_object_get(schema, "$ref"));
	if (!reference)
		return schema;
	return json_object_get(json_object_get(root, "$defs"), strrchr(reference, '/') + 1);
}

/* Mark the schema of each member of @json. Return how many have none. */
static unsigned int mark(const json_t *root, json_t *schema, const json_t *json)
{
	json_t *members = json_object_get(resolve(root, schema), "properties");
	unsigned int unknown = 0;
	const char *name;
	json_t *value;
	size_t i;

	json_array_foreach (json, i, value)
		unknown += mark(root, schema, value);
	json_object_foreach ((json_t *)json, name, value) {
		json_t *member = json_object_get(members, name);

		if (member) {
			json_object_set_new(member, WRITTEN, json_true());
			unknown += mark(root, member, value);
		} else {
			print_error("written, not in the schema: %s\n", name);
			unknown++;
		}
	}
	return unknown;
}

/* Return how many members of @schema, and of the objects in it, no document has. */
static unsigned int count_unwritten(const json_t *schema, const char *type)
{
	unsigned int unwritten = 0;
	const char *name;
	json_t *member;

	json_object_foreach (json_object_get(schema, "properties"), name, member) {
		if (!json_object_get(member, WRITTEN)) {
			print_error("in the schema, not written: %s of %s\n", name, type);
			unwritten++;
		}
		unwritten += count_unwritten(member, name);
	}
	return unwritten;
}

static json_t *parse(char *text)
{
	autofree char *owned = text;
	json_t *json = owned ? json_loads(owned, 0, NULL) : NULL;

	assert_non_null(json);
	return json;
}

static void schema_has_what_is_written(void **state)
{
	autorun struct run *run = support_full_run();
	json_t *schema = parse(run_schema_to_json()), *document = parse(run_to_json(run));
	unsigned int wrong = mark(schema, schema, document);
	const char *type;
	json_t *structure;

	wrong += count_unwritten(schema, "document");
	json_object_foreach (json_object_get(schema, "$defs"), type, structure)
		wrong += count_unwritten(structure, type);
	assert_int_equal(wrong, 0);
	assert_true(json_object_size(json_object_get(schema, "$defs")) > 30);
	json_decref(document);
	json_decref(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schema_has_what_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
