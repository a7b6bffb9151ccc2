/* SPDX-License-Identifier: MIT */
/*
 * A scenario: named steps that every client cycles through, or draws from a mix, and the settings of a
 * run. Read from a YAML file (docs/scenarios.md). Neighbours: keys.c (what may be written),
 * file.c (libyaml), targets.c (several URLs), check.c (whether it makes
 * sense), engine.c (carries it out).
 */
#ifndef DRIVER_SCENARIO_SCENARIO_H
#define DRIVER_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "payload/capture.h"
#include "options/options.h"
#include "run/drive_rows.h"
#include "engine/target.h"

#define SCENARIO_FILE_MAX      ((size_t)1 << 20)
#define SCENARIO_TEXT_MAX      ((size_t)16 << 20) /* of all values, with aliases replaced */
#define SCENARIO_STEPS_MAX     64U
#define SCENARIO_HEADERS_MAX   100U
#define SCENARIO_VARIABLES_MAX 64U /* they are bits of struct template_variables.visible */
#define SCENARIO_NAME_MAX      31U
#define SCENARIO_WEIGHT_MAX    1000000U

enum scenario_order {
	SCENARIO_CYCLE, /* one step after the other, in their order */
	SCENARIO_MIX,	/* each is drawn, by weight */
};

enum scenario_failure {
	SCENARIO_RESTART, /* after a step that failed: from the first step again */
	SCENARIO_NEXT,	  /* the next one all the same */
};

extern const char *const scenario_order_names[2];
extern const char *const scenario_failure_names[2];

/* Where something stands in the file; from 1. */
struct scenario_place {
	char name[32]; /* of the key */
	size_t line;
	size_t column;
};

#define SCENARIO_PLACES_MAX 40U

/* The keys of one mapping that were given. */
struct scenario_places {
	struct scenario_place list[SCENARIO_PLACES_MAX];
	size_t count;
};

/* A variable that a step gives a value before its request is made. */
struct scenario_set {
	uint32_t variable;
	const char *text; /* a template */
	struct scenario_place place;
};

struct scenario_step {
	const char *name;
	struct scenario_place place;
	struct scenario_places places;
	const char *url; /* NULL: that of the scenario */
	const char *path;
	uint32_t weight; /* 0: not given */
	bool think_given;
	uint64_t think_ns;
	struct request request;
	struct scenario_set *sets;
	size_t set_count;
	struct capture_list captures;

	/* Filled by scenario_check(): */
	struct target target;
	uint64_t visible; /* variables that have a value when its request is made */
};

struct scenario {
	bool of_targets; /* made of URLs: requests of the steps are borrowed, there is no file */
	const char *path;
	const char *name; /* NULL: none was given */
	const char *url;  /* default of the steps; NULL: each has its own */
	enum scenario_order order;
	enum scenario_failure on_failure;
	struct scenario_places places; /* of the settings of the run */
	struct scenario_step *steps;
	size_t step_count;
	uint64_t think_ns[SCENARIO_STEPS_MAX]; /* after each step; filled by scenario_check() */
	bool thinks;			       /* one of them is not 0 */
	struct template_variable variables[SCENARIO_VARIABLES_MAX];
	size_t variable_count;
	char **texts; /* owned: what the rest points to */
	size_t text_count;
	size_t text_bytes;
};

/*
 * Reads @path; settings of the run are applied to @options. -EINVAL with one line in @ret_error (freed
 * by the caller) that names file, line, column, the value and what is allowed; -ENOMEM.
 */
int scenario_load(const char *path, struct options *options, struct scenario **ret_scenario,
		  char **ret_error);
/* The same of a text, which @path is only the name of. */
int scenario_parse(const char *path, const char *text, size_t length, struct options *options,
		   struct scenario **ret_scenario, char **ret_error);
/*
 * The request of @options for each of @urls, in turn; borrows from all of them. -EINVAL with a sentence in
 * @ret_error, -ENOMEM.
 */
int scenario_of_targets(char *const *urls, size_t count, const struct options *options,
			struct scenario **ret_scenario, char **ret_error);
/*
 * All that a command line asks for: one URL is a scenario of one step. Borrows from @ret_options, which
 * options_clear() clears. *@ret_scenario is NULL if options->action is not to drive. Errors as above.
 */
int scenario_of_command(int argc, char **argv, struct options *ret_options,
			struct scenario **ret_scenario, char **ret_error);
/* Takes NULL. */
void scenario_free(struct scenario *scenario);

/*
 * Whether all steps make sense, with @options as they are after the command line; fills in what depends on
 * them. Errors as above.
 */
int scenario_check(struct scenario *scenario, const struct options *options, char **ret_error);

/* A step's request, with what @run says of all of them. Borrows from all. */
void scenario_step_request(const struct scenario *scenario, const struct scenario_step *step,
			   const struct request *run, struct request *ret_request);

/* What a run asks for in turn. Borrows from @scenario. */
void scenario_rows(const struct scenario *scenario, struct drive_rows *ret_rows);

/* Sentences that name an option ("--rate: …") get the place of its key instead. As refuse(). */
int scenario_refuse_at(const char *path, const struct scenario_places *places,
		       const struct scenario_place *fallback, const char *sentence,
		       char **ret_error);

#endif
