/* SPDX-License-Identifier: MIT */
/*
 * A scenario: named steps that every client cycles through or draws from a mix, and the settings of
 * a run. Read from a YAML file (docs/scenarios.md). Neighbours: keys.c (keys), file.c (libyaml),
 * targets.c (several URLs), check.c (checks), engine.c (carries it out).
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
#define SCENARIO_TEXT_MAX      ((size_t)16 << 20) /* of all values, aliases expanded */
#define SCENARIO_STEPS_MAX     64U
#define SCENARIO_HEADERS_MAX   100U
#define SCENARIO_VARIABLES_MAX 64U /* bits of struct template_variables.visible */
#define SCENARIO_NAME_MAX      31U
#define SCENARIO_WEIGHT_MAX    1000000U

enum scenario_order {
	SCENARIO_CYCLE, /* all steps in order */
	SCENARIO_MIX,	/* each step drawn by weight */
};

enum scenario_failure {
	SCENARIO_RESTART, /* after a failed step: the first step */
	SCENARIO_NEXT,	  /* after a failed step: the next one */
};

extern const char *const scenario_order_names[2];

/* A place in the file, from 1. */
struct scenario_place {
	char name[32]; /* the key */
	size_t line;
	size_t column;
};

#define SCENARIO_PLACES_MAX 40U

/* The given keys of one mapping. */
struct scenario_places {
	struct scenario_place list[SCENARIO_PLACES_MAX];
	size_t count;
};

/* A value that a step sets before its request. */
struct scenario_set {
	uint32_t variable;
	const char *text; /* a template */
	struct scenario_place place;
};

struct scenario_step {
	const char *name;
	struct scenario_place place;
	struct scenario_places places;
	const char *url; /* NULL: the scenario's */
	const char *path;
	uint32_t weight;   /* 0: not given */
	uint64_t think_ns; /* of the key, if it was given */
	struct request request;
	struct scenario_set *sets;
	size_t set_count;
	struct capture_list captures;

	/* Set by scenario_check(): */
	struct target target;
	uint64_t visible; /* variables with a value when the request is made */
};

/* A file that a scenario names. */
struct scenario_file {
	const char *key;  /* "rows" */
	const char *path; /* from the working folder */
};

/*
 * Files that a coordinator has sent with a scenario. They are read in place of those on this host.
 */
struct scenario_sent {
	struct scenario_sent_file {
		char *path; /* as the coordinator has it */
		char *own;  /* where it is on this host */
	} *list;
	size_t count;
};

struct scenario {
	bool of_targets; /* made of URLs, without a file: steps borrow their requests */
	const char *path;
	const char *name; /* NULL: none */
	const char *url;  /* default for steps; NULL: each has its own */
	enum scenario_order order;
	enum scenario_failure on_failure;
	struct scenario_places places; /* the run's settings */
	struct scenario_step *steps;
	size_t step_count;
	uint64_t think_ns[SCENARIO_STEPS_MAX]; /* after each step; set by scenario_check() */
	bool thinks;			       /* not all are 0 */
	struct template_variable variables[SCENARIO_VARIABLES_MAX];
	size_t variable_count;
	struct scenario_file *files; /* each once */
	size_t file_count;
	char **texts; /* owned texts, which other members point to */
	size_t text_count;
	size_t text_bytes;
};

/*
 * Read @path and apply the run's settings to @options. @sent: NULL, or read these files only.
 * -EINVAL with a line in @ret_error that names place, value and what is allowed; -ENOMEM.
 */
int scenario_load(const char *path, const struct scenario_sent *sent, struct options *options,
		  struct scenario **ret_scenario, char **ret_error);
/* Parse a text likewise; @path names it in errors. */
int scenario_parse(const char *path, const char *text, size_t length, struct options *options,
		   struct scenario **ret_scenario, char **ret_error);
/*
 * Make a scenario of @options' request to each of @urls in turn; it borrows from all of them.
 * -EINVAL with @ret_error, -ENOMEM.
 */
int scenario_of_targets(char *const *urls, size_t count, const struct options *options,
			struct scenario **ret_scenario, char **ret_error);
/*
 * Parse a command line; one URL makes a scenario of one step. It borrows from @ret_options, which
 * options_clear() clears. *@ret_scenario is NULL if options->action is not to drive. @sent: as for
 * scenario_load(). Errors as above.
 */
int scenario_of_command(int argc, char **argv, const struct scenario_sent *sent,
			struct options *ret_options, struct scenario **ret_scenario,
			char **ret_error);
/* Takes NULL. */
void scenario_free(struct scenario *scenario);

/*
 * Check all steps with @options of file and command line, and set what depends on them. Errors as
 * above.
 */
int scenario_check(struct scenario *scenario, const struct options *options, char **ret_error);

/* Combine a step's request with @run's settings for all steps. Borrows from all. */
void scenario_step_request(const struct scenario *scenario, const struct scenario_step *step,
			   const struct request *run, struct request *ret_request);

/* Return the rows of a run. Borrows from @scenario. */
void scenario_rows(const struct scenario *scenario, struct drive_rows *ret_rows);

/* Refuse with @sentence; one that names an option shows the place of its key. See refuse(). */
int scenario_refuse_at(const char *path, const struct scenario_places *places,
		       const struct scenario_place *fallback, const char *sentence,
		       char **ret_error);

#endif
