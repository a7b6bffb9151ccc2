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
#include "sojourn/finding.h"
#include "sojourn/join.h"
#include "sojourn/refuse.h"

static int copy(char **field, const char *text)
{
	*field = text ? strdup(text) : NULL;
	return text && !*field ? -ENOMEM : 0;
}

static int keep_result(struct member *member, struct run_driver *driver)
{
	member->result.known = true;
	member->result.begin_ns = driver->begin_ns;
	member->result.requests = driver->requests;
	member->result.sources = TAKE_PTR(driver->sources);
	return copy(&member->result.limited, driver->limited ? driver->limited->why : NULL);
}

/* Add from @level on, as a carry is added to a binary number. Takes @own. */
static void carry(struct fleet_sum *sum, uint32_t level, struct run *own)
{
	CLEANUP(cleanup_run_free) struct run *run = own;

	for (; sum->levels[level] && !sum->err; level++) {
		struct run *both = TAKE_PTR(sum->levels[level]);

		sum->err = run_merge(both, run, &sum->error);
		run_free(run);
		run = both;
	}
	if (!sum->err)
		sum->levels[level] = TAKE_PTR(run);
}

void fleet_sum_add(struct fleet_sum *sum, struct member *member)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;

	(void)member_read(member);
	run = TAKE_PTR(member->run);
	if (!run || sum->err)
		return;
	sum->err = keep_result(member, run->driver);
	if (!sum->err)
		carry(sum, 0, TAKE_PTR(run));
}

/* Add up the levels. NULL: there are no documents, or adding fails. */
static struct run *total(struct fleet_sum *sum)
{
	struct run *run = NULL;

	for (uint32_t level = 0; level < FLEET_SUM_LEVELS && !sum->err; level++) {
		struct run *own = TAKE_PTR(sum->levels[level]);

		if (own && run)
			sum->err = run_merge(own, run, &sum->error);
		if (own) {
			run_free(run);
			run = own;
		}
	}
	return run;
}

void fleet_sum_clear(struct fleet_sum *sum)
{
	for (uint32_t level = 0; level < FLEET_SUM_LEVELS; level++)
		run_free(sum->levels[level]);
	free(sum->error);
	*sum = (struct fleet_sum){0};
}

static uint64_t first_begin(const struct member *members, uint32_t count)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++)
		if (members[i].result.known && members[i].result.begin_ns < first_ns)
			first_ns = members[i].result.begin_ns;
	return first_ns;
}

static int describe(struct member *member, uint64_t first_ns, struct run_fleet_member *entry)
{
	struct member_result *result = &member->result;
	int err = copy(&entry->host, member->name);

	entry->lost = member->state == MEMBER_LOST;
	entry->clock_offset_ns = (struct run_signed){member->clock_known, member->offset_ns};
	entry->clock_uncertainty_ns =
		(struct run_number){member->clock_known, (member->round_ns + 1) / 2};
	if (entry->lost && !err)
		err = copy(&entry->reason, member->reason ? member->reason : "no memory");
	if (!result->known || err)
		return err;
	entry->requests = result->requests;
	entry->sources = TAKE_PTR(result->sources);
	entry->start_skew_ns = (struct run_number){true, result->begin_ns - first_ns};
	return copy(&entry->limited, result->limited);
}

/* A lost member may not have reported its connections, so they are dealt out as in crew.c. */
static int list_members(struct member *members, uint32_t count, const struct fleet_outcome *outcome,
			struct run_driver *driver)
{
	uint64_t first_ns = first_begin(members, count);
	int err = 0;

	driver->members = calloc(count, sizeof(*driver->members));
	if (!driver->members)
		return -ENOMEM;
	driver->member_count = count;
	for (uint32_t i = 0; i < count && !err; i++) {
		struct run_fleet_member *entry = &driver->members[i];

		entry->connections =
			share_of_driver(outcome->load->connections, outcome->threads, count, i);
		entry->rate = share_of_count(outcome->load->schedule.rate, count, i);
		err = describe(&members[i], first_ns, entry);
	}
	return err;
}

static int add_rest(struct fleet_sum *sum, struct member *members, uint32_t count,
		    struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;

	for (uint32_t i = 0; i < count; i++)
		fleet_sum_add(sum, &members[i]);
	run = total(sum);
	if (sum->err) {
		*ret_error = TAKE_PTR(sum->error);
		return sum->err;
	}
	if (!run)
		return refuse(ret_error, "%s: %s; no member has a result", members[0].name,
			      members[0].reason ? members[0].reason : "no memory");
	*ret_run = TAKE_PTR(run);
	return 0;
}

int fleet_result(struct fleet_sum *sum, struct member *members, uint32_t count,
		 const struct fleet_outcome *outcome, struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	int err = add_rest(sum, members, count, &run, ret_error);

	if (!err)
		err = list_members(members, count, outcome, run->driver);
	if (err)
		return err;
	/* Members know only their own shares, so set the requested numbers of the whole run. */
	free(TAKE_PTR(run->driver->interrupted));
	if (outcome->interrupted && result_set_interrupted(outcome->load, run->driver))
		return -ENOMEM;
	run_strings_free(run->command);
	run->command = run_strings_copy(outcome->command);
	if (!run->command)
		return -ENOMEM;
	*ret_run = TAKE_PTR(run);
	return 0;
}

int fleet_result_observe(struct observers *observers, const struct run_settings *settings,
			 struct run *run)
{
	int err = observers_merge(observers, run) ?: join_run(run, settings->slowest);

	if (!err && !settings->keep_samples)
		join_drop_samples(run);
	return err;
}
