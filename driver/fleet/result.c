// SPDX-License-Identifier: MIT
/*
 * Merges documents: run_merge() adds up counts and histograms, and the list of members is made
 * here.
 */
#include "result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load/share.h"
#include "run/result.h"
#include "sojourn/refuse.h"
#include "sojourn/finding.h"

static uint64_t first_begin(const struct member *members, uint32_t count)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++)
		if (members[i].run && members[i].run->driver->begin_ns < first_ns)
			first_ns = members[i].run->driver->begin_ns;
	return first_ns;
}

/*
 * Return a member's connections, dealt out as in crew.c: a lost member may not have reported them.
 */
static uint32_t connections_of(const struct options *options, uint32_t count, uint32_t index)
{
	uint32_t threads = options->run.threads, sum = 0;

	for (uint32_t thread = 0; thread < threads; thread++)
		sum += share_of(options->load.connections, threads * count,
				share_sharer(index, count, thread));
	return sum;
}

static int copy(char **field, const char *text)
{
	*field = text ? strdup(text) : NULL;
	return text && !*field ? -ENOMEM : 0;
}

static int describe(const struct member *member, uint64_t first_ns, struct run_fleet_member *entry)
{
	const struct run_driver *driver = member->run ? member->run->driver : NULL;
	int err = copy(&entry->host, member->name);

	entry->lost = member->state == MEMBER_LOST;
	entry->clock_offset_ns = (struct run_signed){member->clock_known, member->offset_ns};
	entry->clock_uncertainty_ns =
		(struct run_number){member->clock_known, (member->round_ns + 1) / 2};
	if (entry->lost && !err)
		err = copy(&entry->reason, member->reason ? member->reason : "no memory");
	if (!driver || err)
		return err;
	entry->requests = driver->requests;
	entry->start_skew_ns = (struct run_number){true, driver->begin_ns - first_ns};
	return driver->limited ? copy(&entry->limited, driver->limited->why) : 0;
}

static void free_list(struct run_fleet_member *list, uint32_t count)
{
	for (uint32_t i = 0; list && i < count; i++) {
		free(list[i].host);
		free(list[i].limited);
		free(list[i].reason);
	}
	free(list);
}

static int list_members(const struct member *members, uint32_t count, const struct options *options,
			struct run_fleet_member **ret_list)
{
	struct run_fleet_member *list = calloc(count, sizeof(*list));
	uint64_t first_ns = first_begin(members, count);
	int err = list ? 0 : -ENOMEM;

	*ret_list = list;
	for (uint32_t i = 0; i < count && !err; i++) {
		list[i].connections = connections_of(options, count, i);
		list[i].rate = share_of_count(options->load.schedule.rate, count, i);
		err = describe(&members[i], first_ns, &list[i]);
	}
	return err;
}

/* The first document absorbs the others. */
static int merge_all(struct member *members, uint32_t count, struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		CLEANUP(cleanup_run_free) struct run *own = TAKE_PTR(members[i].run);

		if (!run)
			run = TAKE_PTR(own);
		else if (own)
			err = run_merge(run, own, ret_error);
	}
	if (!err && !run)
		return refuse(ret_error, "%s: %s; no member has a result", members[0].name,
			      members[0].reason ? members[0].reason : "no memory");
	if (!err)
		*ret_run = TAKE_PTR(run);
	return err;
}

/* Members know only their own shares, so set the requested numbers of the whole run. */
static int settle_interrupted(const struct fleet_outcome *outcome, struct run_driver *driver)
{
	free(TAKE_PTR(driver->interrupted));
	return outcome->interrupted ? result_set_interrupted(&outcome->options->load, driver) : 0;
}

static int settle_command(char **command, struct run *run)
{
	run_strings_free(run->command);
	run->command = run_strings_copy(command);
	return run->command ? 0 : -ENOMEM;
}

int fleet_result(struct member *members, uint32_t count, const struct fleet_outcome *outcome,
		 struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	struct run_fleet_member *list = NULL;
	int err = list_members(members, count, outcome->options, &list);

	if (!err)
		err = merge_all(members, count, &run, ret_error);
	if (!err) {
		run->driver->members = list;
		run->driver->member_count = count;
		err = settle_interrupted(outcome, run->driver);
	} else {
		free_list(list, count);
	}
	if (!err)
		err = settle_command(outcome->command, run);
	if (!err)
		*ret_run = TAKE_PTR(run);
	return err;
}
