/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive fleet resume ID`: takes up a run whose coordinator is gone. Its members have
 * stored their results at the NATS server, or are about to (keep.h).
 */
#ifndef DRIVER_FLEET_RESUME_H
#define DRIVER_FLEET_RESUME_H

#include "fleet/agent/fleet_options.h"
#include "kept.h"
#include "options/options.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"
#include "sweep/sweep.h"

struct resume;

/*
 * Find the run. -EINVAL with a sentence in @ret_error; other -errno. *@ret_resume is to be closed
 * also then.
 */
int resume_open(const struct fleet_options *fleet, struct resume **ret_resume, char **ret_error);
/* Return the command line of the run, which ends with a NULL. */
char **resume_command(const struct resume *resume);
/*
 * Wait for the members that are still there, and make the document of the run. @options are those
 * of its command line. Errors as above.
 */
int resume_run(struct resume *resume, const struct options *options, struct run **ret_run,
	       char **ret_error);
/* Return whether it is a sweep, for which the following takes the place of resume_run(). */
bool resume_is_sweep(const struct resume *resume);
/*
 * Release the agents from the step at work, and prepare the rest of @total steps. Set the members and
 * limits of @fleet. @ret_kept and @ret_past are zeroed before. All borrow from @resume. Errors as above.
 */
int resume_sweep(struct resume *resume, size_t total, struct fleet_options *fleet,
		 struct kept *ret_kept, struct sweep_past *ret_past, char **ret_error);
/* The document is written: delete what is stored, unless a member may still store its result. */
void resume_forget(struct resume *resume);
/* Takes NULL. */
void resume_close(struct resume *resume);
DEFINE_CLEANUP(struct resume *, resume_close)

#endif
