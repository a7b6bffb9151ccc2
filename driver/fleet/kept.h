/* SPDX-License-Identifier: MIT */
/*
 * The record of a run, which its coordinator stores so that another one can take it up: the command
 * line, the members and the observers. Agents store their results (keep.h); of a sweep the coordinator
 * stores each complete step. resume.c is the other coordinator.
 */
#ifndef DRIVER_FLEET_KEPT_H
#define DRIVER_FLEET_KEPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fleet/agent/fleet_options.h"
#include "fleet/channel/store.h"
#include "sojourn/secret.h"
#include "sweep/sweep.h"

/* The names under which the record is stored, and the steps of a sweep; these with a number. */
#define KEPT_RECORD "record"
#define KEPT_STEP   "step-"

/* A zeroed one is valid: nothing is kept. */
struct kept {
	const struct fleet_options *options;
	char secret[SECRET_LENGTH + 1]; /* seal.h */
	char run[SECRET_LENGTH + 1];
	bool on;
	bool sweep;	     /* steps are kept, and no results of members */
	bool begun;	     /* members may have results */
	unsigned int steps;  /* that were stored */
	bool broken;	     /* one could not be stored */
	const char **agents; /* those of a sweep that is taken up; NULL: any */
	uint64_t age_ns;     /* how long; 0: without end */
	char *why;	     /* why results are not kept; NULL: they are, or there is no server */
};

/*
 * Make the run's secret, unless it has one, its key, and a place for its results if the server stores
 * any. 0 or -errno.
 */
int kept_open(struct kept *kept, const struct fleet_options *options, bool sweep);
/* Log the run's secret and what becomes of it without this coordinator. */
void kept_tell(const struct kept *kept);

/*
 * Store the record before the start. Takes @members and @observers; NULL: there are no observers. If it fails
 * nothing is kept, which is logged. @waiting is called meanwhile: the members, too, want to hear from their
 * coordinator.
 */
void kept_record(struct kept *kept, char **command, json_t *members, json_t *observers,
		 const struct store_owner *waiting);

/* Return whether the agents store their results. */
bool kept_by_members(const struct kept *kept);
/* Store the text of a step; NULL: no memory. It is as kept_record(). */
void kept_step(struct kept *kept, const char *text, const struct store_owner *waiting);

/*
 * The run is over. Delete what is stored if the document has the results of all members, or if
 * nothing was measured. @complete: it is written and has them.
 */
void kept_settle(const struct kept *kept, bool complete);
void kept_clear(struct kept *kept);

/*
 * The complete steps of a sweep are stored as a line of JSON, then a document with one step. Or the line
 * alone says that another coordinator has taken up the sweep.
 */

/* Return the text for step @index; NULL: no memory. */
char *steps_write(const struct run *run, size_t index, const struct run_outcome *outcome);

/*
 * Note that the sweep is taken up after the steps in @past, of @total. *@ret_text is to be stored; NULL:
 * that is stored already. 0 or -ENOMEM.
 */
int steps_note(struct sweep_past *past, size_t total, char **ret_text);

/*
 * Add what was stored, in that order. A step may come once more, then it was repeated. Ignore one
 * that does not follow: those between are missing. -EINVAL with a sentence in @ret_error, -ENOMEM.
 */
int steps_read(struct sweep_past *past, const char *text, char **ret_error);
void steps_clear(struct sweep_past *past);

#endif
