/* SPDX-License-Identifier: MIT */
/*
 * The plan of a member: the options of a run, one by one, the files that they name, and the
 * member's share. The coordinator makes it from checked options. An agent parses it as options and
 * passes it to no shell.
 */
#ifndef DRIVER_FLEET_CHANNEL_PLAN_H
#define DRIVER_FLEET_CHANNEL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"
#include "options/options.h"
#include "scenario/scenario.h"

/* The part of the plan that all members share. */
struct plan {
	json_t *arguments;
	json_t *paths; /* of a scenario, the first files: its own, then those that it names */
	struct plan_file {
		char *bytes;
		size_t length;
	} *files;
	size_t file_count;
	bool sweep;  /* no run, but the runs of a sweep: see plan_step() */
	bool pauses; /* members wait for a second start between warm-up and measured phase */
	bool kept;   /* results are stored, also if the coordinator is gone */
	uint32_t members;
	uint32_t samples;     /* for each member */
	uint64_t patience_ns; /* after a silence of this length, either end gives up the other */
};

/* How much of a plan has been sent. A zeroed one is at its beginning. */
struct plan_place {
	size_t file, at;
	bool over;
};

/*
 * Check that the run can be divided between @members. -EINVAL with a sentence in @ret_error that
 * names the option and the reason.
 */
int plan_check(const struct options *options, uint32_t members, char **ret_error);

/*
 * Make a plan, reading the files that the options and the scenario name. Errors as above. A zeroed
 * plan is valid and empty.
 */
int plan_make(const struct options *options, const struct scenario *scenario, uint32_t members,
	      struct plan *ret_plan, char **ret_error);
void plan_clear(struct plan *plan);

/*
 * Return the next message of the plan for member @index, @name, and advance *@place. NULL: the plan
 * is sent (place->over is set), or there is no memory (it is not).
 */
json_t *plan_next(const struct plan *plan, uint32_t index, const char *name,
		  struct plan_place *place);

/* One run of a sweep, of all members that take part in it. */
struct plan_step {
	uint32_t members, threads; /* threads of each */
	const struct load_settings *load;
	bool keep_trying;
};

/*
 * Return how a step is divided between up to @members. A load of fewer connections or requests/s is
 * that of the first members alone.
 */
struct plan_step plan_step_of(const struct load_settings *load, const struct run_settings *run,
			      uint32_t members);

/* Return the message about a step to its member @index. NULL: no memory. */
json_t *plan_step_message(const struct plan_step *step, uint32_t index);

/* A plan as an agent receives it. A zeroed one is valid and empty. */
struct plan_inbox {
	int *files; /* descriptors of memfds */
	size_t file_count;
	uint64_t file_bytes;
	char **argv;
	size_t argc;
	bool sweep, pauses;
	struct scenario_sent sent; /* the first files; they have paths if there is a scenario */
	/* All members together have these: */
	uint32_t members, threads;
	uint64_t connect_rate;
	struct load_settings load; /* of a sweep: of its largest step, after the longest warm-up */
};

/* Take a message of type "file". -EINVAL with a sentence; other -errno. */
int plan_take_file(struct plan_inbox *inbox, const json_t *message, char **ret_error);

/* Read from the "plan" how long the coordinator may be silent. -EINVAL with a sentence. */
int plan_take_patience(const json_t *message, uint64_t *ret_ns, char **ret_error);

/*
 * Take a message of type "plan". Parse options and steps as from a command line, and apply the
 * member's share, of a sweep that of its largest step. Both borrow from @inbox. Errors as above.
 */
int plan_take(struct plan_inbox *inbox, const json_t *message, struct options *ret_options,
	      struct scenario **ret_scenario, char **ret_error);

/* Take a message of type "step": put the member's share of it into @options. Errors as above. */
int plan_take_step(const struct plan_inbox *inbox, const json_t *message, struct options *options,
		   char **ret_error);
void plan_inbox_clear(struct plan_inbox *inbox);

#endif
