/* SPDX-License-Identifier: MIT */
/* The observer over HTTP: marks the measured phase there and fetches what it saw of it. */
#ifndef DRIVER_RUN_OBSERVER_H
#define DRIVER_RUN_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

struct observer;

/* Asked several times a second while a request to the observer is under way. */
struct observer_patience {
	bool (*is_over)(void *user); /* true: give up, the user wants to leave */
	void *user;
};

/* Where it is, and how to be let in. */
struct observer_access {
	char *url;	     /* "http://HOST:PORT" or https:; NULL: no observer */
	char *token;	     /* the bearer token; NULL: none */
	const char *ca_path; /* the authority of its certificate; NULL: those of the system */
};

/* @access is borrowed. @port: of the target, which the observer is to look at; 0: none. -ENOMEM. */
int observer_new(const struct observer_access *access, uint16_t port,
		 struct observer_patience patience, struct observer **ret_observer);
/* Takes NULL. */
void observer_free(struct observer *observer);
DEFINE_CLEANUP(struct observer *, observer_free)

/*
 * Marks the begin of a phase. -EINVAL with a reason in @ret_error (freed by the caller) if the
 * observer cannot be reached or does not answer as one; -ENOMEM.
 */
int observer_begin(struct observer *observer, char **ret_error);

/* Ends the phase and fetches its run document. Errors as above. */
int observer_end(struct observer *observer, struct run **ret_run, char **ret_error);

/*
 * Likewise, and merges it into @run, which has the driver's part. That stands without the observer's: where this is
 * missing, the document says why. -ENOMEM.
 */
int observer_merge(struct observer *observer, struct run *run);
/* Its part is of no use, but its phase is to end. Takes NULL. */
void observer_drop(struct observer *observer);

#endif
