/* SPDX-License-Identifier: MIT */
/*
 * Which targets of a run an observer sees: by address and port. The driver sends their addresses
 * (lookouts.c), and the agent beside the observer compares them with its host (lookout.c).
 */
#ifndef DRIVER_FLEET_OBSERVERS_SIGHT_H
#define DRIVER_FLEET_OBSERVERS_SIGHT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/drive_rows.h"

struct run;

#define SIGHT_TARGETS DRIVE_ROWS_MAX

/* ---- the driver's side ---- */

/* The targets of a run, each server once. */
struct sight_targets {
	json_t *list; /* as sent */
	const char *names[SIGHT_TARGETS];
	size_t count;
};

/*
 * Name the addresses of the targets. Look up names that have none yet. Return -EINVAL with @ret_error
 * if a name is not known, or if no target has an address and a port. -ENOMEM.
 */
int sight_describe(const struct drive_rows *rows, struct sight_targets *ret_targets,
		   char **ret_error);
/* The targets of a list that was sent before. -EBADMSG: it is not valid. */
int sight_again(json_t *list, struct sight_targets *ret_targets);
void sight_targets_clear(struct sight_targets *targets);

/* Return a text that is equal in all processes of one network namespace, and nowhere else. */
#define SIGHT_PLACE 96
void sight_place(char ret_place[static SIGHT_PLACE]);

/* ---- the agent's side ---- */

/* Limits set on the agent's own host. Strings are borrowed. */
struct sight_limits {
	const char *allow; /* --allow; NULL: every target */
	const char *sees;  /* --sees: more than this host's own addresses; NULL: no more */
};

/* One target of a run, as this host sees it. */
struct sight_target {
	bool here;	  /* an address is of this host, and the observer must have the port */
	bool sure;	  /* in --sees: any port */
	uint16_t port;	  /* host order */
	char name[64];	  /* for people */
	char address[48]; /* the one that matches */
};

struct sight {
	struct sight_target targets[SIGHT_TARGETS];
	size_t count;
	bool any;	   /* one is here, or sure */
	char refused[256]; /* why --allow forbids it; empty: it does not */
};

/* Compare the targets of a message with this host. -EINVAL: the message is not valid. */
int sight_compare(const json_t *list, const char *place, const struct sight_limits *limits,
		  struct sight *ret_sight);
/* Return the bits of the targets that the observer of @run's services sees, by their index. */
uint64_t sight_of(const struct sight *sight, const struct run *run);

#endif
