// SPDX-License-Identifier: MIT
/*
 * Merges two run documents: the document itself and the observers' parts. Neighbour: merge_driver.c
 * (the drivers' parts).
 */
#include "sojourn/array.h"
#include "sojourn/run.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "merge.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/machine.h"
#include "sojourn/refuse.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

static bool has_observer(const struct run *run)
{
	return run->cost || run->service_count;
}

/* Host, kernel and period of a document describe its services: take all but the driver's part. */
static void swap_observer(struct run *run, struct run *other)
{
	SWAP(*run, *other);
	SWAP(run->tool, other->tool);
	SWAP(run->command, other->command);
	SWAP(run->driver, other->driver);
	SWAP(run->joined, other->joined);
	SWAP(run->sweep, other->sweep);
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* Join to "sojourn 0.1.0 + sojourn-drive 0.1.0", the observer's first, each once. */
static int join_tools(struct run *run, const struct run *other)
{
	bool swapped = has_observer(other) && !has_observer(run);
	const char *first = swapped ? other->tool : run->tool;
	const char *second = swapped ? run->tool : other->tool;
	char *tool;

	if (!second || (first && has_word(first, second)))
		return swapped ? merge_copy(&run->tool, first) : 0;
	if (asprintf(&tool, "%s%s%s", first ? first : "", first ? " + " : "", second) < 0)
		return -ENOMEM;
	free(run->tool);
	run->tool = tool;
	return 0;
}

/* Name the driver's host once its document is no longer its own. */
static int name_driver(struct run *run)
{
	if (!run->driver || run->driver->part_count || has_observer(run))
		return 0;
	return merge_copy(&run->driver->host, run->host);
}

static int name_services(struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->service_count && !err; i++)
		err = merge_copy(&run->services[i].host, run->host);
	return err;
}

/* Two observations of one service would count its exchanges twice. */
static int refuse_common(const struct run *run, const struct run_service *service, char **ret_error)
{
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *other = &run->services[i];

		if (text_same(other->host, service->host) && run_same_port(other, service))
			return refuse(ret_error,
				      "services[]: %s port %" PRIu16 " of host %s is in both "
				      "documents: observations of one service do not add up, and "
				      "hosts of "
				      "one name cannot be distinguished",
				      service->protocol, service->port,
				      service->host ? service->host : "(unknown)");
	}
	return 0;
}

static int move_services(struct run *run, struct run *other, char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < other->service_count && !err; i++)
		err = refuse_common(run, &other->services[i], ret_error);
	if (err || !other->service_count)
		return err;
	return merge_list(&run->services, &run->service_count, other->services,
			  &other->service_count, sizeof(*run->services));
}

static int add_cost(struct run *run, struct run *other)
{
	if (!run->cost || !other->cost) {
		if (!run->cost)
			run->cost = TAKE_PTR(other->cost);
		return 0;
	}
	run->cost->cpu_ns += other->cost->cpu_ns;
	run->cost->resident_bytes += other->cost->resident_bytes;
	run->cost->map_bytes += other->cost->map_bytes;
	run_cost_share(run->cost, other->cost);
	run_machine_merge(&run->cost->machine, &other->cost->machine);
	return run_cost_add_programs(run->cost, other->cost);
}

static int name_findings(struct run *run)
{
	for (size_t i = 0; i < run->finding_count; i++) {
		if (run->findings[i].host || !run->host)
			continue;
		run->findings[i].host = strdup(run->host);
		if (!run->findings[i].host)
			return -ENOMEM;
	}
	return 0;
}

static int merge_notes(struct run *run, struct run *other)
{
	int err = 0;

	if (!run->not_seen) {
		run->not_seen = TAKE_PTR(other->not_seen);
		return 0;
	}
	for (char **text = other->not_seen; text && *text && !err; text++)
		err = run_add_text(&run->not_seen, *text);
	return err;
}

static int merge_findings(struct run *run, struct run *other)
{
	int err = name_findings(run);

	if (!err)
		err = name_findings(other);
	for (size_t i = 0; i < other->finding_count && !err; i++) {
		struct run_finding *finding = ARRAY_APPEND(run->findings, run->finding_count);

		if (!finding)
			return -ENOMEM;
		*finding = other->findings[i];
		other->findings[i] = (struct run_finding){0};
	}
	return err ? err : merge_notes(run, other);
}

/* Extend the period from the earliest start to the latest end, by wall clocks. */
static int add_period(struct run *run, const struct run *other)
{
	uint64_t begin_ns, other_ns, end_ns;
	char *text;

	if (!run->started_at || !other->started_at || run_parse_time(run->started_at, &begin_ns) ||
	    run_parse_time(other->started_at, &other_ns)) {
		merge_label(&run->started_at, NULL);
		run->duration_ns += other->duration_ns;
		return 0;
	}
	end_ns = begin_ns + run->duration_ns;
	if (other_ns + other->duration_ns > end_ns)
		end_ns = other_ns + other->duration_ns;
	begin_ns = other_ns < begin_ns ? other_ns : begin_ns;
	text = run_format_time(begin_ns);
	if (!text)
		return -ENOMEM;
	free(run->started_at);
	run->started_at = text;
	run->duration_ns = end_ns - begin_ns;
	return 0;
}

/* Add up the namespaces of several hosts. */
static void add_namespaces(struct run_namespaces *sum, const struct run_namespaces *other)
{
	sum->observed += other->observed;
	sum->ended += other->ended;
	sum->not_entered += other->not_entered;
	sum->left_out += other->left_out;
	sum->unseen_processes += other->unseen_processes;
	sum->visited += other->visited;
	sum->visit_ns += other->visit_ns;
	if (!sum->reason[0])
		memcpy(sum->reason, other->reason, sizeof(sum->reason));
}

static int add_observer(struct run *run, struct run *other, char **ret_error)
{
	int err = name_services(run);

	if (!err)
		err = name_services(other);
	if (!err)
		err = move_services(run, other, ret_error);
	if (!err)
		err = add_cost(run, other);
	if (!err)
		err = merge_findings(run, other);
	if (!err)
		err = add_period(run, other);
	if (err)
		return err;
	merge_label(&run->host, other->host);
	merge_label(&run->kernel, other->kernel);
	run->services_dropped += other->services_dropped;
	run->connections_dropped += other->connections_dropped;
	run->listeners_idle += other->listeners_idle;
	run_reclaimed_add(&run->reclaimed, &other->reclaimed);
	add_namespaces(&run->namespaces, &other->namespaces);
	return 0;
}

/* Take host and period from the observer, if there is one. */
static int merge_observers(struct run *run, struct run *other, char **ret_error)
{
	if (has_observer(run) && has_observer(other))
		return add_observer(run, other, ret_error);
	if (has_observer(other))
		swap_observer(run, other);
	if (has_observer(run))
		return 0;
	merge_label(&run->host, other->host);
	merge_label(&run->kernel, other->kernel);
	return add_period(run, other);
}

/* Exchanges joined with one driver do not represent all: drop them, samples can be joined again. */
static void merge_joined(struct run *run, struct run *other)
{
	if (run->driver && other->driver) {
		run_joined_free(run->joined);
		run->joined = NULL;
	} else if (!run->joined) {
		run->joined = TAKE_PTR(other->joined);
	}
}

/* Maximum difference between two hosts' clocks; a host's own agree. */
#define CLOCKS_APART_NS (60 * NSEC_PER_SEC)

/*
 * An observer cannot have seen a driver's requests at another time. Compare the driver's times with
 * the observer's period; unknown times are accepted.
 */
static int refuse_other_times(const struct run *driven, const struct run *seen, char **ret_error)
{
	const struct run_driver *driver = driven->driver;
	bool one_host = text_same(driven->host, seen->host);
	uint64_t begin_ns, apart_ns = one_host ? 0 : CLOCKS_APART_NS;

	if (!driver->begin_ns || !seen->started_at || !seen->duration_ns ||
	    run_parse_time(seen->started_at, &begin_ns))
		return 0;
	if (driver->begin_ns <= begin_ns + seen->duration_ns + apart_ns &&
	    begin_ns <= driver->begin_ns + driver->duration_ns + apart_ns)
		return 0;
	return refuse(
		ret_error,
		"started_at: the observer's period (from %s) and the driver's run have no time"
		" in common, must overlap to be merged",
		seen->started_at);
}

int run_check_times(const struct run *run, const struct run *other, char **ret_error)
{
	if (run->driver && !has_observer(run) && has_observer(other) && !other->driver)
		return refuse_other_times(run, other, ret_error);
	if (other->driver && !has_observer(other) && has_observer(run) && !run->driver)
		return refuse_other_times(other, run, ret_error);
	return 0;
}

int run_merge(struct run *run, struct run *other, char **ret_error)
{
	int err;

	if (run->sweep || other->sweep)
		return refuse(ret_error, "sweep: the results of several sweeps cannot be added");
	err = name_driver(run);
	if (!err)
		err = name_driver(other);
	if (!err)
		merge_joined(run, other);
	if (!err && run->driver && other->driver)
		err = merge_driver(run, other, ret_error);
	else if (other->driver)
		run->driver = TAKE_PTR(other->driver);
	if (!err)
		err = join_tools(run, other);
	if (!err)
		err = merge_observers(run, other, ret_error);
	if (!run->command)
		run->command = TAKE_PTR(other->command);
	return err;
}
