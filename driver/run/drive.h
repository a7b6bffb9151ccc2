/* SPDX-License-Identifier: MIT */
/* Carries a run out: warm-up, measured phase, and the observer's marks around the latter. */
#ifndef DRIVER_RUN_DRIVE_H
#define DRIVER_RUN_DRIVE_H

#include "drive_rows.h"
#include "engine/engine.h"
#include "load/load_settings.h"
#include "run_settings.h"
#include "sojourn/run.h"
#include "transport/link_settings.h"

/*
 * Who follows a run from outside, begins and ends it. All is called on the thread of drive_run(), which goes on
 * when the call returns.
 */
struct drive_watch {
	void *user;
	int stop_fd; /* once it can be read, the run ends as by Ctrl-C */
	/* All is open: returns when settings->start is to be waited for, changed or not; -errno as there. */
	int (*await)(void *user, struct start_patience patience, struct start_spec *start);
	/* Once a second while it is measured: the driver's part so far, without intervals and rows. */
	void (*so_far)(void *user, const struct run *run);
	/* settings->fail_fast: a request has failed. */
	void (*failed)(void *user);
};

struct drive_job {
	const char *url; /* NULL: several */
	const struct link_settings *link;
	const struct load_settings *load;
	const struct run_settings *settings;
	const struct drive_rows *rows;
	const struct engine *engine;
	const void *shared;    /* the engine's */
	uint32_t sockets;      /* maximum of sockets per configured connection */
	bool own_files;	       /* of the workers, see load/worker.h */
	const char *unsampled; /* why no exchange can be sampled, for people; NULL: they can */
	const char *expected;  /* good statuses, in the form of --expect-status; NULL: not given */
	char **command;	       /* argv */
	bool *ret_interrupted; /* of a sweep: set if a signal ended the run; may be NULL */
	const struct drive_watch *watch; /* NULL: nobody does */
};

/*
 * Return 0 with the complete document. It includes the observer's if requested, or has
 * driver->observer_error set. -EINVAL with @ret_error if there was nothing to measure; another
 * -errno.
 */
int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error);

#endif
