/* SPDX-License-Identifier: MIT */
/*
 * Parts of a JSON Schema (draft 2020-12), for files that write parts of the run document. Each
 * function returns NULL or -ENOMEM without memory, and accepts NULL for a failed schema.
 */
#ifndef LIB_JSON_SCHEMA_PARTS_H
#define LIB_JSON_SCHEMA_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number from 0 to @max. */
json_t *schema_integer(uint64_t max);

/* An array of at most @limit elements; takes over @element. */
json_t *schema_array(size_t limit, json_t *element);

/* @schema or null; takes over @schema. */
json_t *schema_nullable(json_t *schema);

/* An object without members; schema_add() adds one, and takes over @member. */
json_t *schema_object(void);
int schema_add(json_t *object, const char *name, json_t *member, bool required);

/* Return the schema of the object member @name, adding it if missing. */
json_t *schema_within(json_t *object, const char *name);

/* describe.c: add to each member of a schema and of its definitions its unit and meaning. */
int schema_describe(json_t *document);

#endif
