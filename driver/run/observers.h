/* SPDX-License-Identifier: MIT */
/* All observers of a run: each marks the measured phase, and their documents are merged. */
#ifndef DRIVER_RUN_OBSERVERS_H
#define DRIVER_RUN_OBSERVERS_H

#include "drive_rows.h"
#include "observer.h"

#define OBSERVERS_MAX 64U

struct observers;

/*
 * Find the observers of the targets in @rows. @access is borrowed. @rehearse: begin and end a phase on
 * all, to see that they work. @ret_observers: NULL if the run has none. -EINVAL with @ret_error: a group
 * has none, or as below; -ENOMEM.
 */
int observers_new(const struct observer_access *access, const struct drive_rows *rows,
		  struct patience patience, bool rehearse, struct observers **ret_observers,
		  char **ret_error);
/* The observers of a run that is taken up: those of @group alone, which @access has made. -ENOMEM. */
int observers_adopt(const struct observer_access *access, struct observer_group *group,
		    struct observers **ret_observers);
/* Takes NULL. */
void observers_free(struct observers *observers);
DEFINE_CLEANUP(struct observers *, observers_free)

/* Return the record of the group, as observer.h has it. NULL: there is none. Takes NULL. */
json_t *observers_record(struct observers *observers, const char *kept);

/* Mark the start of a phase on all. -EINVAL with @ret_error: one does not answer, none has a phase. */
int observers_begin(struct observers *observers, char **ret_error);

/*
 * End the phase on all, and merge their documents into @run, which has the driver's part already.
 * If an observer's part is missing, the others stay valid and driver->observer_error names it.
 * -ENOMEM.
 */
int observers_merge(struct observers *observers, struct run *run);
/* End the phase without using the observers' parts. Takes NULL. */
void observers_drop(struct observers *observers);

#endif
