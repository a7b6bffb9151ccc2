/* SPDX-License-Identifier: MIT */
/* The observer over HTTP: marks the measured phase there and fetches its document. */
#ifndef DRIVER_RUN_OBSERVER_H
#define DRIVER_RUN_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

struct observer;

/* Called several times a second during a request to the observer. */
struct observer_patience {
	bool (*is_over)(void *user); /* true: the user wants to leave, give up */
	void *user;
};

/* The observers' addresses, and the driver's access to each. */
struct observer_access {
	char **urls; /* "http://HOST:PORT" or https: */
	size_t url_count;
	char *token;	     /* bearer token; NULL: none */
	const char *ca_path; /* authority of its certificate; NULL: the system's */
};

/*
 * The observer at @url, one of @access, which is borrowed. @port: the target's, for the observer to
 * look at; 0: none. -ENOMEM.
 */
int observer_new(const struct observer_access *access, const char *url, uint16_t port,
		 struct observer_patience patience, struct observer **ret_observer);
/* Takes NULL. */
void observer_free(struct observer *observer);
DEFINE_CLEANUP(struct observer *, observer_free)

/* Its URL, without a trailing slash. */
const char *observer_url(const struct observer *observer);

/* Mark the start of a phase. -EINVAL with @ret_error if no observer answers there; -ENOMEM. */
int observer_begin(struct observer *observer, char **ret_error);

/* End the phase and fetch its run document. Errors as above. */
int observer_end(struct observer *observer, struct run **ret_run, char **ret_error);

/* Likewise, and merge it into @run, which stays valid if the observer's part is missing. */
int observer_merge(struct observer *observer, struct run *run, char **ret_error);
/* End the phase without using the observer's part. Takes NULL. */
void observer_drop(struct observer *observer);

#endif
