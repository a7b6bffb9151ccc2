// SPDX-License-Identifier: MIT
/*
 * The JSON Schema of the run document, from the writer's tables: run/members.c. Each structure is a
 * definition of its own. describe.c adds the units and meanings.
 */
#include "sojourn/run.h"

#include <errno.h>

#include "columns.h"
#include "run/members.h"
#include "schema_parts.h"
#include "sojourn/autojson.h"
#include "sojourn/text.h"

/* ---- shared definitions ---- */

static json_t *reference(const char *name)
{
	return json_pack("{s:s+}", "$ref", "#/$defs/", name);
}

/* [[index, count], …] */
static json_t *schema_pairs(size_t count, uint64_t most)
{
	return schema_array(count, json_pack("{s:s, s:i, s:i, s:[o, o]}", "type", "array",
					     "minItems", 2, "maxItems", 2, "prefixItems",
					     schema_integer(most), schema_integer(INT64_MAX)));
}

static int add_histogram(json_t *object, bool required)
{
	static const char *const derived[] = {"mean_ns",  "stddev_ns", "p50_ns",
					      "p90_ns",	  "p99_ns",    "p999_ns",
					      "p9999_ns", "p99999_ns", "max_ns"};
	int err = schema_add(object, "count", schema_integer(INT64_MAX), required);

	if (!err)
		err = schema_add(object, "sum_ns", schema_integer(INT64_MAX), required);
	for (size_t i = 0; i < ARRAY_SIZE(derived) && !err; i++)
		err = schema_add(object, derived[i], schema_nullable(schema_integer(INT64_MAX)),
				 false);
	return err ? err
		   : schema_add(object, "buckets", schema_pairs(BUCKET_COUNT, BUCKET_COUNT - 1),
				required);
}

static json_t *define_histogram(void)
{
	autojson json_t *object = schema_object();

	return add_histogram(object, true) ? NULL : TAKE_PTR(object);
}

/* A histogram's members if measured, otherwise the reason. */
static json_t *define_stage(void)
{
	autojson json_t *object = schema_object();
	json_t *if_measured = json_pack("{s:{s:{s:b}}}", "properties", "measured", "const", 1);
	json_t *then = json_pack("{s:[s, s, s]}", "required", "count", "sum_ns", "buckets");

	if (json_object_set_new(object, "if", if_measured) |
	    json_object_set_new(object, "then", then))
		return NULL;
	if (schema_add(object, "measured", json_pack("{s:s}", "type", "boolean"), true) ||
	    schema_add(object, "source", json_pack("{s:[s, s]}", "type", "string", "null"),
		       false) ||
	    schema_add(object, "reason", json_pack("{s:[s, s]}", "type", "string", "null"), false))
		return NULL;
	return add_histogram(object, false) ? NULL : TAKE_PTR(object);
}

/* ---- each kind of member ---- */

/* An object with a member per name; older writers may lack some. */
static json_t *schema_named(const struct run_member *member)
{
	autojson json_t *object = schema_object();

	for (size_t i = 0; i < member->size; i++) {
		json_t *schema = member->kind == RUN_KIND_STAGES ? reference("stage")
								 : schema_integer(INT64_MAX);

		if (member->kind == RUN_KIND_NUMBERS)
			schema = schema_nullable(schema);
		if (schema_add(object, member->names[i], schema, false))
			return NULL;
	}
	return TAKE_PTR(object);
}

static json_t *schema_of(const struct run_member *member)
{
	switch (member->kind) {
	case RUN_KIND_U64:
	case RUN_KIND_NUMBER:
		return schema_integer(INT64_MAX);
	case RUN_KIND_U32:
		return schema_integer(UINT32_MAX);
	case RUN_KIND_U16:
		return schema_integer(UINT16_MAX);
	case RUN_KIND_SIGNED:
		return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum",
				 (json_int_t)INT64_MIN, "maximum", (json_int_t)INT64_MAX);
	case RUN_KIND_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case RUN_KIND_RATIO:
		return json_pack("{s:s, s:i, s:i}", "type", "number", "minimum", -1, "maximum", 1);
	case RUN_KIND_STRING:
		return json_pack("{s:s}", "type", "string");
	case RUN_KIND_TEXT: /* the limit is in bytes; there are never more characters */
		return json_pack("{s:s, s:I}", "type", "string", "maxLength",
				 (json_int_t)member->size - 1);
	case RUN_KIND_STRINGS:
		return schema_array(member->limit, json_pack("{s:s}", "type", "string"));
	case RUN_KIND_COUNTERS:
	case RUN_KIND_STAGES:
		return reference(member->set);
	case RUN_KIND_NUMBERS:
		return schema_named(member);
	case RUN_KIND_STATUSES:
		return schema_pairs(member->size, RUN_STATUS_LEAST + member->size - 1);
	case RUN_KIND_HISTOGRAM:
		return reference("histogram");
	case RUN_KIND_OBJECT:
	case RUN_KIND_POINTER:
		return reference(member->members->type);
	case RUN_KIND_LIST:
		return schema_array(member->limit, reference(member->members->type));
	case RUN_KIND_SAMPLES:
		return reference("samples");
	case RUN_KIND_SERIES:
		return reference("series");
	case RUN_KIND_COUNT:
		break;
	}
	return NULL;
}

static int add_members(json_t *object, const struct run_members *members)
{
	int err = 0;

	for (size_t i = 0; i < members->count && !err; i++) {
		const struct run_member *member = &members->list[i];
		bool optional = member->optional || member->sparse;
		json_t *schema = schema_of(member);

		err = schema_add(object, member->name, optional ? schema_nullable(schema) : schema,
				 !optional);
	}
	return err;
}

static json_t *schema_members(const struct run_members *members)
{
	autojson json_t *object = schema_object();

	return add_members(object, members) ? NULL : TAKE_PTR(object);
}

static json_t *schema_layout(void)
{
	autojson json_t *object = schema_object();

	if (schema_add(object, "layout", json_pack("{s:s}", "const", RUN_BUCKET_LAYOUT), true) ||
	    schema_add(object, "sub_bits", json_pack("{s:i}", "const", BUCKET_SUB_BITS), true) ||
	    schema_add(object, "value_bits", json_pack("{s:i}", "const", BUCKET_VALUE_BITS), true))
		return NULL;
	return TAKE_PTR(object);
}

/* ---- definitions ---- */

/* Add a definition; @schema is NULL without memory. */
static int define(json_t *defs, const char *name, json_t *schema)
{
	return json_object_set_new(defs, name, schema) ? -ENOMEM : 0;
}

/* Add a definition for each structure and each set of names that @members refer to. */
static int define_below(json_t *defs, const struct run_members *members)
{
	int err = 0;

	for (size_t i = 0; i < members->count && !err; i++) {
		const struct run_member *member = &members->list[i];
		const struct run_members *inner = member->members;

		if (member->set && !json_object_get(defs, member->set))
			err = define(defs, member->set, schema_named(member));
		if (!inner || json_object_get(defs, inner->type))
			continue;
		err = define(defs, inner->type, schema_members(inner));
		if (!err)
			err = define_below(defs, inner);
	}
	return err;
}

static int add_definitions(json_t *document)
{
	json_t *defs = json_object();

	if (json_object_set_new(document, "$defs", defs) ||
	    define(defs, "histogram", define_histogram()) ||
	    define(defs, "stage", define_stage()) ||
	    define(defs, "samples", run_samples_schema()) ||
	    define(defs, "series", run_series_schema()))
		return -ENOMEM;
	return define_below(defs, &run_document_members);
}

char *run_schema_to_json(void)
{
	autojson json_t *document = json_pack("{s:s, s:s, s:s, s:s, s:{}}", "$schema",
					      "https://json-schema.org/draft/2020-12/schema",
					      "title", RUN_SCHEMA, "description",
					      "A run document of Sojourn. Descriptions begin with "
					      "the unit. docs/run-document.md has them as tables, "
					      "and the invariants, which `sojourn report --check` "
					      "checks.",
					      "type", "object", "properties");
	autofree char *json = NULL;

	if (schema_add(document, "schema", json_pack("{s:s}", "const", RUN_SCHEMA), true) ||
	    schema_add(document, "buckets", schema_layout(), true) ||
	    add_members(document, &run_document_members) || add_definitions(document) ||
	    schema_describe(document))
		return NULL;
	json = json_dumps(document, JSON_INDENT(1));
	return json ? text_format("%s\n", json) : NULL;
}
