/* SPDX-License-Identifier: MIT */
/*
 * The record of a run, which its coordinator stores so that another one can take it up: the command
 * line and the members. Agents store their results (keep.h). resume.c is the other coordinator.
 */
#ifndef DRIVER_FLEET_KEPT_H
#define DRIVER_FLEET_KEPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fleet_options.h"
#include "sojourn/secret.h"
#include "store.h"

/* The name under which the record is stored. */
#define KEPT_RECORD "record"

/* A zeroed one is valid: nothing is kept. */
struct kept {
	const struct fleet_options *options;
	char secret[SECRET_LENGTH + 1]; /* seal.h */
	char run[SECRET_LENGTH + 1];
	bool on;
	bool begun;	 /* members may have results */
	uint64_t age_ns; /* how long; 0: without end */
	char *why;	 /* why results are not kept; NULL: they are, or there is no server */
};

/* Make the run's secret and key, and a place for its results if the server stores any. 0 or -errno. */
int kept_open(struct kept *kept, const struct fleet_options *options, bool sweep);
/* Log the run's secret and what becomes of it without this coordinator. */
void kept_tell(const struct kept *kept);

/* One member of the record: its agent's key, its name, how far its clock is ahead. */
json_t *kept_member(const char *agent, const char *name, int64_t offset_ns, uint64_t round_ns);
/*
 * Store the record before the start. Takes @members. If it fails nothing is kept, which is logged.
 * @waiting is called meanwhile: the members, too, want to hear from their coordinator.
 */
void kept_record(struct kept *kept, char **command, json_t *members,
		 const struct store_owner *waiting);

/*
 * The run is over. Delete what is stored if the document has the results of all members, or if
 * nothing was measured. @complete: it is written and has them.
 */
void kept_settle(const struct kept *kept, bool complete);
void kept_clear(struct kept *kept);

#endif
