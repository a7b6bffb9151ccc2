/* SPDX-License-Identifier: MIT */
/*
 * A YAML document being read into a scenario: nodes, their places, and tables of keys. Private to
 * this folder. Neighbours: file.c (nodes), keys.c (keys).
 */
#ifndef DRIVER_SCENARIO_READER_H
#define DRIVER_SCENARIO_READER_H

#include <yaml.h>

#include "options/rows.h"

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

/* Command-line options as keys: those allowed in one mapping. */
struct scenario_options {
	const struct cli_table *const *tables;
	size_t count;
};

extern const struct scenario_options scenario_run_options;
extern const struct scenario_options scenario_request_options;

struct scenario_mapping {
	const char *what; /* for people: "a step" */
	const struct scenario_key *keys;
	size_t count;
	const struct scenario_options *options; /* keys without a row; NULL: none */
	int (*apply)(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *object);
};

/* The tables, against which docs/scenarios.md is tested. */
extern const struct scenario_mapping scenario_top;
extern const struct scenario_mapping scenario_step_mapping;
extern const struct scenario_mapping scenario_load_mapping;
extern const struct scenario_mapping
	scenario_defaults_mapping; /* step keys with defaults for all steps */
extern const struct scenario_mapping scenario_capture_mapping;

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

/* Check that a name is printable and short enough for a report. Errors as scenario_load(). */
int scenario_check_name(struct scenario_reader *reader, const yaml_node_t *node, const char *what,
			const char *name);

/* Return NULL if the option is not allowed there. */
const struct cli_option *scenario_option_find(const struct scenario_options *which,
					      const char *name);

/* Apply the option of @key to @settings, the object of its table. Errors as scenario_load(). */
int scenario_option_apply(struct scenario_reader *reader, const struct scenario_options *which,
			  yaml_node_t *key, yaml_node_t *value, void *settings);

/* Return where to read the file of this path. NULL: a coordinator has not sent it. */
const char *scenario_where(const struct scenario_sent *sent, const char *path);

#endif
