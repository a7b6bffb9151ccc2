/* SPDX-License-Identifier: MIT */
/*
 * `sojourn-drive fleet`: one run by the drivers of several hosts. A command reaches each host and
 * starts an agent there (agent.c). The command's standard input and output are the channel
 * (channel.h).
 *
 * The plan that an agent gets is the given options with its member's share, which it parses as a command line
 * (agent.c). Slots and intended times are dealt out as if all threads belonged to one driver (load/share.h,
 * load/schedule.h). The members' clocks are compared (member.c), all begin at one time, and their documents are merged
 * (lib/run/merge.c).
 */
#ifndef DRIVER_FLEET_FLEET_H
#define DRIVER_FLEET_FLEET_H

#include "fleet/agent/fleet_options.h"
#include "kept.h"
#include "options/options.h"
#include "run/drive.h"
#include "scenario/scenario.h"
#include "sojourn/cleanup.h"
#include "sojourn/outcome.h"
#include "sojourn/run.h"

/*
 * Check that the run can be divided between the hosts, so that bad usage is reported before
 * anything starts. Return as refuse().
 */
int fleet_check(const struct fleet_options *fleet, const struct options *options,
		const struct scenario *scenario, char **ret_error);

/*
 * Carry out the run. @kept is zeroed; kept_settle() is due in the end, and kept_clear(). @options are
 * those of the whole run, already checked. Return 0 with the
 * document of all members, including lost ones. -EINVAL with a reason in @ret_error if nothing was
 * measured; other -errno.
 */
int fleet_run(const struct fleet_options *fleet, const struct options *options,
	      const struct scenario *scenario, char **command, struct kept *kept,
	      struct run **ret_run, char **ret_error);

struct fleet;

/*
 * Get the members ready for a sweep, whose runs fleet_step() carries out. Errors as fleet_run(). The
 * fleet borrows from the arguments.
 */
int fleet_open(const struct fleet_options *fleet, const struct options *options,
	       const struct scenario *scenario, struct kept *kept, struct fleet **ret_fleet,
	       char **ret_error);

/*
 * Carry out one run of a sweep by the fleet @user; see struct sweep_runner. A run of fewer
 * connections or requests/s than members is one of the first members alone.
 */
int fleet_step(void *user, const struct drive_job *job, struct run **ret_run, const char **ret_lost,
	       char **ret_error);

/* Store a complete step; see struct sweep_runner. */
void fleet_keep_step(void *user, const struct run *run, size_t index,
		     const struct run_outcome *outcome);

/* Return how a step lost a member; NULL: none was lost. */
const char *fleet_lost(const struct fleet *fleet);

/* End the members and wait for them. Takes NULL. */
void fleet_close(struct fleet *fleet);
DEFINE_CLEANUP(struct fleet *, fleet_close)

#endif
