/* SPDX-License-Identifier: MIT */
/*
 * What a member is to do: the options of a run, one by one, with the files that they name, and which share of it
 * is the member's. Made by the coordinator of options that have been checked, taken by an agent, never by a shell.
 */
#ifndef DRIVER_FLEET_PLAN_H
#define DRIVER_FLEET_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"
#include "options/options.h"
#include "scenario/scenario.h"

/* Of a run over several hosts. */
struct plan {
	json_t *arguments;
	struct plan_file {
		char *bytes;
		size_t length;
	} *files;
	size_t file_count;
	uint32_t members;
	uint32_t samples;     /* of each member */
	uint64_t patience_ns; /* who is silent for so long is lost */
};

/* How far a plan has been handed over. A zeroed one is at its begin. */
struct plan_place {
	size_t file, at;
	bool over;
};

/*
 * Whether it can be divided between so many members. -EINVAL with a sentence in @ret_error that names the option
 * and says why not.
 */
int plan_check(const struct options *options, uint32_t members, char **ret_error);

/* Reads the files. Errors as above. A zeroed plan is valid and empty. */
int plan_make(const struct options *options, uint32_t members, struct plan *ret_plan,
	      char **ret_error);
void plan_clear(struct plan *plan);

/*
 * The next message of the plan for member @index, @name, from *@place on, which is moved. NULL: it was the last one,
 * or no memory, in which case place->over is not set.
 */
json_t *plan_next(const struct plan *plan, uint32_t index, const char *name,
		  struct plan_place *place);

/* What an agent has been sent. A zeroed one is valid and empty. */
struct plan_inbox {
	int *files; /* descriptors of memory */
	size_t file_count;
	char **argv;
	size_t argc;
};

/* A message of type "file". -EINVAL with a sentence; -errno. */
int plan_take_file(struct plan_inbox *inbox, const json_t *message, char **ret_error);

/* Of a message of type "plan": after such a silence the coordinator is gone. -EINVAL with a sentence. */
int plan_take_patience(const json_t *message, uint64_t *ret_ns, char **ret_error);

/*
 * A message of type "plan": fills in options and steps, as those of a command line, and the member's share. Both
 * borrow from @inbox. Errors as above.
 */
int plan_take(struct plan_inbox *inbox, const json_t *message, struct options *ret_options,
	      struct scenario **ret_scenario, char **ret_error);
void plan_inbox_clear(struct plan_inbox *inbox);

#endif
