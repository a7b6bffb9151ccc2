/* SPDX-License-Identifier: MIT */
/* Command-line options as keys of a scenario. Private to this folder. */
#ifndef DRIVER_SCENARIO_OPTIONS_H
#define DRIVER_SCENARIO_OPTIONS_H

#include "options/rows.h"
#include "reader.h"

/* Options allowed in one mapping. */
struct scenario_options {
	const struct cli_table *const *tables;
	size_t count;
};

extern const struct scenario_options scenario_run_options;
extern const struct scenario_options scenario_request_options;

/* Return NULL if the option is not allowed there. */
const struct cli_option *scenario_option_find(const struct scenario_options *which,
					      const char *name);
/* Append the options' names to a list of keys. */
void scenario_option_list(const struct scenario_options *which, FILE *file);

/* Apply the option of @key to @settings, the object of its table. Errors as scenario_load(). */
int scenario_option_apply(struct scenario_reader *reader, const struct scenario_options *which,
			  yaml_node_t *key, yaml_node_t *value, void *settings);

#endif
