// SPDX-License-Identifier: MIT
/* Parts of a JSON Schema: see schema_parts.h. */
#include "schema_parts.h"

#include <errno.h>

json_t *schema_integer(uint64_t max)
{
	return json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum", 0, "maximum",
			 (json_int_t)max);
}

json_t *schema_array(size_t limit, json_t *element)
{
	return json_pack("{s:s, s:I, s:o}", "type", "array", "maxItems", (json_int_t)limit, "items",
			 element);
}

json_t *schema_nullable(json_t *schema)
{
	json_t *type = json_object_get(schema, "type");

	if (!type)
		return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
	if (json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"))) {
		json_decref(schema);
		return NULL;
	}
	return schema;
}

json_t *schema_object(void)
{
	return json_pack("{s:s, s:{}}", "type", "object", "properties");
}

int schema_add(json_t *object, const char *name, json_t *member, bool required)
{
	json_t *names = json_object_get(object, "required");

	if (json_object_set_new(json_object_get(object, "properties"), name, member))
		return -ENOMEM;
	if (!required)
		return 0;
	if (!names && json_object_set_new(object, "required", json_array()))
		return -ENOMEM;
	names = json_object_get(object, "required");
	return json_array_append_new(names, json_string(name)) ? -ENOMEM : 0;
}

json_t *schema_within(json_t *object, const char *name)
{
	json_t *properties = json_object_get(object, "properties");

	if (!json_object_get(properties, name) && schema_add(object, name, schema_object(), false))
		return NULL;
	return json_object_get(properties, name);
}
