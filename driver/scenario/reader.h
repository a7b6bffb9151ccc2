/* SPDX-License-Identifier: MIT */
/*
 * A YAML document being read into a scenario: nodes, their places, and tables of keys. Private to
 * this folder. Neighbours: file.c (nodes), keys.c (keys).
 */
#ifndef DRIVER_SCENARIO_READER_H
#define DRIVER_SCENARIO_READER_H

#include <yaml.h>

#include "scenario.h"

struct scenario_reader {
	yaml_document_t document;
	const char *path;
	const struct scenario_sent *sent; /* NULL: files are read by their names */
	struct scenario *scenario;
	struct options *options; /* settings of the run */
	char **ret_error;
};

/* A key and its value. */
struct scenario_key {
	const char *name;
	const char *value; /* for people: "URL", "cycle, mix" */
	/* @object: the mapping's scenario or step. Errors as scenario_load(). */
	int (*apply)(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *object);
};

struct scenario_mapping {
	const char *what; /* for people: "a step" */
	const struct scenario_key *keys;
	size_t count;
	/* Keys without a row; NULL: none. Return false if the key is unknown. */
	bool (*knows)(const char *name);
	int (*apply)(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *object);
	/* Append the keys of knows(). */
	void (*list)(FILE *file);
};

/* The tables, against which docs/scenarios.md is tested. */
extern const struct scenario_mapping scenario_top;
extern const struct scenario_mapping scenario_step_mapping;
extern const struct scenario_mapping scenario_load_mapping;

/* Read a text into @reader->document, which the caller deletes. Errors as scenario_load(). */
int scenario_read_text(struct scenario_reader *reader, const char *text, size_t length);

/* Refuse with one line that begins with @node's FILE:LINE:COLUMN. Return as refuse(). */
__attribute__((format(printf, 3, 4))) int
scenario_refuse(struct scenario_reader *reader, const yaml_node_t *node, const char *format, ...);

yaml_node_t *scenario_node(struct scenario_reader *reader, int index);
void scenario_place_of(const yaml_node_t *node, const char *name, struct scenario_place *ret_place);
/* Record that @key was given. */
void scenario_places_add(struct scenario_places *places, const yaml_node_t *key);

/* Read a scalar's text, which the scenario keeps; @what names it in errors. */
int scenario_text(struct scenario_reader *reader, const yaml_node_t *node, const char *what,
		  const char **ret_text);
/* Keep @text, from malloc(), and free it even on failure. -ENOMEM. */
int scenario_keep(struct scenario *scenario, char *text);

/* Read a mapping by its table; refuse unknown and repeated keys. */
int scenario_read_mapping(struct scenario_reader *reader, yaml_node_t *node,
			  const struct scenario_mapping *mapping, void *object);
/* Call @apply for each pair of a mapping, whatever the key. Refuse more than @max pairs. */
int scenario_each_pair(struct scenario_reader *reader, yaml_node_t *node, const char *what,
		       size_t max,
		       int (*apply)(struct scenario_reader *reader, yaml_node_t *key,
				    yaml_node_t *value, void *object),
		       void *object);

/* Return where to read the file of this path. NULL: a coordinator has not sent it. */
const char *scenario_where(const struct scenario_sent *sent, const char *path);

#endif
