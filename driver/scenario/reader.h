/* SPDX-License-Identifier: MIT */
/*
 * A YAML document that is being read into a scenario: its nodes, where they stand, and the tables of
 * keys. Private to this folder. Neighbours: file.c (nodes), keys.c (keys).
 */
#ifndef DRIVER_SCENARIO_READER_H
#define DRIVER_SCENARIO_READER_H

#include <yaml.h>

#include "scenario.h"

struct scenario_reader {
	yaml_document_t document;
	const char *path;
	struct scenario *scenario;
	struct options *options; /* settings of the run */
	char **ret_error;
};

/* A key that may be written, and what stands behind it. */
struct scenario_key {
	const char *name;
	const char *value; /* for people: "URL", "cycle, mix" */
	/* @object is the mapping's: scenario or step. Errors as scenario_load(). */
	int (*apply)(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *object);
};

struct scenario_mapping {
	const char *what; /* for people: "a step" */
	const struct scenario_key *keys;
	size_t count;
	/* Keys that are in no row; NULL: there are none. False: it is not known either. */
	bool (*knows)(const char *name);
	int (*apply)(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *object);
	/* Appends what knows() knows. */
	void (*list)(FILE *file);
};

/* The tables: docs/scenarios.md is tested against them. */
extern const struct scenario_mapping scenario_top;
extern const struct scenario_mapping scenario_step_mapping;
extern const struct scenario_mapping scenario_load_mapping;

/* Reads a text into @reader->document, which then is to be deleted. Errors as scenario_load(). */
int scenario_read_text(struct scenario_reader *reader, const char *text, size_t length);

/* One line that begins with FILE:LINE:COLUMN of @node. As refuse(). */
__attribute__((format(printf, 3, 4))) int
scenario_refuse(struct scenario_reader *reader, const yaml_node_t *node, const char *format, ...);

yaml_node_t *scenario_node(struct scenario_reader *reader, int index);
void scenario_place_of(const yaml_node_t *node, const char *name, struct scenario_place *ret_place);
/* Notes that @key was given. */
void scenario_places_add(struct scenario_places *places, const yaml_node_t *key);

/* A scalar's text, which the scenario keeps; @what names it in errors. */
int scenario_text(struct scenario_reader *reader, const yaml_node_t *node, const char *what,
		  const char **ret_text);
/* Keeps @text, which malloc() gave, whatever becomes of it. -ENOMEM. */
int scenario_keep(struct scenario *scenario, char *text);

/* Reads a mapping by its table: unknown keys and those given twice are refused. */
int scenario_read_mapping(struct scenario_reader *reader, yaml_node_t *node,
			  const struct scenario_mapping *mapping, void *object);
/* Calls @apply for each pair of a mapping of at most @max, whatever its keys are. */
int scenario_each_pair(struct scenario_reader *reader, yaml_node_t *node, const char *what,
		       size_t max,
		       int (*apply)(struct scenario_reader *reader, yaml_node_t *key,
				    yaml_node_t *value, void *object),
		       void *object);

#endif
