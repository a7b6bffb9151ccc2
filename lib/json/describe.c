// SPDX-License-Identifier: MIT
/*
 * The descriptions in the JSON Schema of the run document, from meanings.txt; its head has the form
 * of its lines. A member without a line stays without a description, which a test refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema_parts.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"

/* meanings.S */
extern const char run_meanings[];

#define SEPARATOR " | "
#define NO_UNIT	  "-"
#define MAX_PATH  128

/* The parts of a line, in its text. */
struct meaning {
	const char *unit;
	int unit_length;
	const char *text;
	int text_length;
};

/* Return whether there is a line for the member @name of @path; NULL: for @path itself. */
static bool find(const char *path, const char *name, struct meaning *ret_meaning)
{
	char start[MAX_PATH + sizeof(SEPARATOR)];
	const char *line, *text;

	snprintf(start, sizeof(start), "\n%s%s%s" SEPARATOR, path, name ? "." : "",
		 name ? name : "");
	line = strstr(run_meanings, start);
	if (!line)
		return false;
	line += strlen(start);
	text = strstr(line, SEPARATOR);
	if (!text)
		return false;
	*ret_meaning = (struct meaning){
		.unit = line,
		.unit_length = (int)(text - line),
		.text = text + strlen(SEPARATOR),
		.text_length = (int)strcspn(text + strlen(SEPARATOR), "\n"),
	};
	return true;
}

static bool has_unit(const struct meaning *meaning)
{
	return meaning->unit_length && strncmp(meaning->unit, NO_UNIT, meaning->unit_length);
}

static int set_description(json_t *schema, const struct meaning *meaning)
{
	bool unit = has_unit(meaning);
	autofree char *text =
		text_format("%.*s%s%.*s", unit ? meaning->unit_length : 0, meaning->unit,
			    unit ? ": " : "", meaning->text_length, meaning->text);

	if (!text)
		return -ENOMEM;
	return json_object_set_new(schema, "description", json_string(text)) ? -ENOMEM : 0;
}

/*
 * Return whether @name is of the set of names after which the object at @path is called, as stages are
 * in `samples.stages`. Its meaning is that in the set. Its unit is the object's, if that has one.
 */
static bool find_in_set(const char *path, const char *name, struct meaning *ret_meaning)
{
	const char *set = strchr(path, '.');
	struct meaning whole, named;

	if (!set || !find(set + 1, name, &named))
		return false;
	if (find(path, NULL, &whole) && has_unit(&whole)) {
		named.unit = whole.unit;
		named.unit_length = whole.unit_length;
	}
	*ret_meaning = named;
	return true;
}

/* Describe the members of @object, and of the objects in it. */
static int describe_members(json_t *object, const char *path)
{
	json_t *member;
	const char *name;
	int err = 0;

	json_object_foreach (json_object_get(object, "properties"), name, member) {
		struct meaning meaning;
		char below[MAX_PATH];
		bool named = false, found = find(path, name, &meaning);

		if (!found)
			found = named = find_in_set(path, name, &meaning);
		if (found && !err)
			err = set_description(member, &meaning);
		/* `series.stages.count` is of every stage. */
		snprintf(below, sizeof(below), "%s%s%s", path, named ? "" : ".", named ? "" : name);
		if (!err)
			err = describe_members(member, below);
	}
	return err;
}

int schema_describe(json_t *document)
{
	int err = describe_members(document, "document");
	const char *type;
	json_t *schema;

	json_object_foreach (json_object_get(document, "$defs"), type, schema)
		if (!err)
			err = describe_members(schema, type);
	return err;
}
