/* SPDX-License-Identifier: MIT */
/* Carries a run out: warm-up, measured phase, and the observer's bracket around the latter. */
#ifndef DRIVER_RUN_DRIVE_H
#define DRIVER_RUN_DRIVE_H

#include "drive_rows.h"
#include "engine/engine.h"
#include "load/load_settings.h"
#include "run_settings.h"
#include "sojourn/run.h"
#include "transport/link_settings.h"

struct drive_job {
	const char *url; /* NULL: there are several */
	const struct link_settings *link;
	const struct load_settings *load;
	const struct run_settings *settings;
	const struct drive_rows *rows;
	const struct engine *engine;
	const void *shared;    /* of the engine */
	uint32_t sockets;      /* that a connection of the options may consist of */
	bool own_files;	       /* of the workers: see load/worker.h */
	const char *unsampled; /* why no exchange can be sampled, for people; NULL: they can */
	const char *
		expected; /* statuses that are good, as --expect-status has them; NULL: not given */
	char **command;	  /* argv */
	bool *ret_interrupted; /* set if the run was ended by a signal: of a sweep; may be NULL */
};

/*
 * 0 with the complete document, merged with the observer's if that was asked for (or with
 * driver->observer_error set). -EINVAL with a reason for people in @ret_error (freed by the caller) if
 * there was nothing to measure; another -errno.
 */
int drive_run(const struct drive_job *job, struct run **ret_run, char **ret_error);

#endif
