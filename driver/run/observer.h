/* SPDX-License-Identifier: MIT */
/* The observer over HTTP: marks the measured phase there and fetches its document. */
#ifndef DRIVER_RUN_OBSERVER_H
#define DRIVER_RUN_OBSERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"
#include "transport/loop.h"

struct observer;

struct drive_rows;
struct observer_group;

/*
 * Observers that are not given one by one: a group of all that see the targets. The driver's part of
 * a fleet knows how to reach them (fleet/observers/lookouts.c). All calls are of one thread.
 */
struct observer_source {
	const void *settings;
	/* Find the observers of the targets in @rows. -EINVAL with @ret_error: there are none. */
	int (*find)(const void *settings, const struct drive_rows *rows, struct patience patience,
		    struct observer_group **ret_group, char **ret_error);
	/* Mark the start of a phase on all. -EINVAL with @ret_error: one of them cannot. */
	int (*begin)(struct observer_group *group, char **ret_error);
	/* End the phase on all. Return how many documents take() has. */
	size_t (*end)(struct observer_group *group);
	/* Take the document of one. @ret_name is set in any case. -EINVAL with @ret_error. */
	int (*take)(struct observer_group *group, size_t index, const char **ret_name,
		    struct run **ret_run, char **ret_error);
	/* Return whose part is missing and why, for people, freed by the caller; NULL: no part is. */
	char *(*missing)(const struct observer_group *group);
	/*
	 * The next phase may be ended by another process, which is given this record of the group. @kept: the
	 * run under which agents store their documents if nobody ends it. NULL: no memory.
	 */
	json_t *(*record)(struct observer_group *group, const char *kept);
	/* End the phase on all, if there is one, without documents. */
	void (*drop)(struct observer_group *group);
	/* Takes NULL. */
	void (*free)(struct observer_group *group);
};

/* The observers' addresses, and the driver's access to each. */
struct observer_access {
	char **urls; /* "http://HOST:PORT" or https: */
	size_t url_count;
	char *token;	     /* bearer token; NULL: none */
	const char *ca_path; /* authority of its certificate; NULL: the system's */
	/* A NATS server at which observers wait, or "fleet": the one of the fleet's members. NULL: none. */
	const char *fleet;
	const char *credentials_path, *cert_path, *key_path; /* for that server; NULL: not given */
	const struct observer_source *source;		     /* of @fleet; NULL: none */
};

/* Return whether the run has observers. */
static inline bool observer_is_given(const struct observer_access *access)
{
	return access->url_count || access->fleet;
}

/*
 * The observer at @url, one of @access, which is borrowed. @port: the target's, for the observer to
 * look at; 0: none. -ENOMEM.
 */
int observer_new(const struct observer_access *access, const char *url, uint16_t port,
		 struct patience patience, struct observer **ret_observer);
/* Takes NULL. */
void observer_free(struct observer *observer);
DEFINE_CLEANUP(struct observer *, observer_free)

/* Its URL, without a trailing slash. */
const char *observer_url(const struct observer *observer);

/* Mark the start of a phase. -EINVAL with @ret_error if no observer answers there; -ENOMEM. */
int observer_begin(struct observer *observer, char **ret_error);

/* End the phase and fetch its run document. Errors as above. */
int observer_end(struct observer *observer, struct run **ret_run, char **ret_error);
/* Likewise, as text. The caller frees it. */
int observer_end_text(struct observer *observer, char **ret_text, size_t *ret_length,
		      char **ret_error);
/* End the phase without using the observer's part. Takes NULL. */
void observer_drop(struct observer *observer);

/* Fetch a run document of the services that it observes now. Errors as above. */
int observer_services(struct observer *observer, struct run **ret_run, char **ret_error);

#endif
