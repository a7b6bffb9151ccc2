/* SPDX-License-Identifier: MIT */
/* Shared by the tables of keys. Private to this folder. */
#ifndef DRIVER_SCENARIO_KEYS_H
#define DRIVER_SCENARIO_KEYS_H

#include "reader.h"

/* Step keys with defaults for all steps. */
extern const struct scenario_mapping scenario_defaults_mapping;
/* The keys of a capture. */
extern const struct scenario_mapping scenario_capture_mapping;

/* Check that a name is printable and short enough for a report. Errors as scenario_load(). */
int scenario_check_name(struct scenario_reader *reader, const yaml_node_t *node, const char *what,
			const char *name);

#endif
