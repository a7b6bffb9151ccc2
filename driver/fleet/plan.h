/* SPDX-License-Identifier: MIT */
/*
 * What a member is to do: the options of a run, one by one, with the files that they name, and which share of it
 * is the member's. Made by the coordinator of options that have been checked, taken by an agent, never by a shell.
 */
#ifndef DRIVER_FLEET_PLAN_H
#define DRIVER_FLEET_PLAN_H

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
	uint32_t samples; /* of each member */
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
 * Hands each message of the plan for member @index to @send, in their order; each is used up. @name: of the member.
 * -ENOMEM, or what @send returns.
 */
int plan_send(const struct plan *plan, uint32_t index, const char *name,
	      int (*send)(void *user, json_t *message), void *user);

/* What an agent has been sent. A zeroed one is valid and empty. */
struct plan_inbox {
	int *files; /* descriptors of memory */
	size_t file_count;
	char **argv;
	size_t argc;
};

/* A message of type "file". -EINVAL with a sentence; -errno. */
int plan_take_file(struct plan_inbox *inbox, const json_t *message, char **ret_error);

/*
 * A message of type "plan": fills in options and steps, as those of a command line, and the member's share. Both
 * borrow from @inbox. Errors as above.
 */
int plan_take(struct plan_inbox *inbox, const json_t *message, struct options *ret_options,
	      struct scenario **ret_scenario, char **ret_error);
void plan_inbox_clear(struct plan_inbox *inbox);

#endif
