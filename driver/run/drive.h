/* SPDX-License-Identifier: MIT */
/* Carries out a run: warm-up, measured phase, and the observer's marks around the latter. */
#ifndef DRIVER_RUN_DRIVE_H
#define DRIVER_RUN_DRIVE_H

#include "drive_rows.h"
#include "engine/engine.h"
#include "load/load_settings.h"
#include "run_settings.h"
#include "sojourn/run.h"
#include "transport/link.h"

/*
 * A caller that follows a run, and starts and ends it. The callbacks run on the thread of
 * drive_run(), which waits for them.
 */
struct drive_watch {
	void *user;
	int stop_fd; /* once readable, the run ends as by Ctrl-C */
	/*
	 * Called once all is open. Return as soon as the run may wait for its start, which the call
	 * may change in @start. -ECANCELED: @patience ended it.
	 */
	int (*await)(void *user, struct patience patience, struct start_spec *start);
	bool pauses; /* call await() again between warm-up and measured phase */
	/*
	 * Once a second in the measured phase: the driver's part so far, without intervals and
	 * rows.
	 */
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
	void *shared;	       /* the engine's */
	uint32_t sockets;      /* maximum of sockets per configured connection */
	bool own_files;	       /* of the workers, see load/worker.h */
	const char *unsampled; /* why no exchange can be sampled, for people; NULL: they can */
	const char *expected;  /* good statuses, in the form of --expect-status; NULL: not given */
	char **command;	       /* argv */
	bool *ret_interrupted; /* of a sweep: set if a signal ended the run; may be NULL */
	const struct drive_watch *watch; /* NULL: nobody follows */
};

/*
 * Return 0 with the complete document. It includes the observer's if requested, or has
 * driver->observer_error set. -EINVAL with @ret_error if there was nothing to measure; another
 * -errno.
 */
int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error);

#endif
