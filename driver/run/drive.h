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
};

/*
 * Return 0 with the complete document. It includes the observer's if requested, or has
 * driver->observer_error set. -EINVAL with @ret_error if there was nothing to measure; another
 * -errno.
 */
int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error);

#endif
