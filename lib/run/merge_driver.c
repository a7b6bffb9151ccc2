// SPDX-License-Identifier: MIT
/*
 * Merges the drivers' parts of two run documents. The table of members has the simple cases, this
 * file the others. Neighbours: merge.c, intervals.c.
 */
#include "merge.h"

#include <errno.h>
#include <string.h>

#include "intervals.h"
#include "members.h"
#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

#define MAX_PARTS 1024

/* Set the start of the measured phase. Older documents have only the document's start. */
static int settle_begin(struct run *run, char **ret_error)
{
	struct run_driver *driver = run->driver;

	if (driver->begin_ns)
		return 0;
	if (!run->cost && !run->service_count && run->started_at &&
	    !run_parse_time(run->started_at, &driver->begin_ns))
		return 0;
	return refuse(ret_error, "driver.begin_ns: is missing, must be known to merge");
}

/* An unmerged driver is its own single part. */
static int settle_parts(struct run_driver *driver)
{
	struct run_part *part;

	if (driver->part_count)
		return 0;
	part = calloc(1, sizeof(*part));
	if (!part)
		return -ENOMEM;
	driver->parts = part;
	driver->part_count = 1;
	part->connections = driver->connections;
	part->begin_ns = driver->begin_ns;
	part->duration_ns = driver->duration_ns;
	part->requests = driver->requests;
	part->drained = driver->drained;
	part->errors = run_driver_errors(driver);
	part->latency = *run_driver_latency(driver);
	return merge_copy(&part->host, driver->host) || merge_copy(&part->target, driver->target)
		       ? -ENOMEM
		       : 0;
}

static int compare_parts(const void *a, const void *b)
{
	const struct run_part *first = a, *second = b;

	return (first->begin_ns > second->begin_ns) - (first->begin_ns < second->begin_ns);
}

static int merge_parts(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	size_t count = driver->part_count + other->part_count;

	if (count > MAX_PARTS)
		return refuse(ret_error, "driver.parts: %zu drivers, must be at most %d", count,
			      MAX_PARTS);
	if (merge_list(&driver->parts, &driver->part_count, other->parts, &other->part_count,
		       sizeof(*driver->parts)))
		return -ENOMEM;
	qsort(driver->parts, count, sizeof(*driver->parts), compare_parts);
	return 0;
}

/* Append the members of @other's fleet, if it has one. */
static int merge_fleet(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	size_t count = driver->member_count + other->member_count;

	if (!other->member_count)
		return 0;
	if (count > MAX_PARTS)
		return refuse(ret_error, "driver.members: %zu drivers, must be at most %d", count,
			      MAX_PARTS);
	return merge_list(&driver->members, &driver->member_count, other->members,
			  &other->member_count, sizeof(*driver->members));
}

/* Return the time that at least one part covers; parts are in order of start. */
static uint64_t union_of(const struct run_part *parts, size_t count)
{
	uint64_t sum = 0, until = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t begin = parts[i].begin_ns, end = begin + parts[i].duration_ns;

		begin = begin > until ? begin : until;
		if (end <= begin)
			continue;
		sum += end - begin;
		until = end;
	}
	return sum;
}

static void shift_failures(struct run_driver *driver, uint64_t by_ns)
{
	for (size_t i = 0; i < driver->failure_count; i++) {
		driver->failures[i].first_ns += by_ns;
		driver->failures[i].last_ns += by_ns;
	}
}

static int add_failure(struct run_driver *driver, struct run_failure *other)
{
	struct run_failure *failure;

	for (size_t i = 0; i < driver->failure_count; i++) {
		failure = &driver->failures[i];
		if (strcmp(failure->kind, other->kind))
			continue;
		failure->count += other->count;
		if (other->first_ns < failure->first_ns)
			failure->first_ns = other->first_ns;
		if (other->last_ns > failure->last_ns)
			failure->last_ns = other->last_ns;
		return merge_copy(&failure->explanation, other->explanation);
	}
	failure = ARRAY_APPEND(driver->failures, driver->failure_count);
	if (!failure)
		return -ENOMEM;
	*failure = *other;
	other->explanation = NULL;
	return 0;
}

/* One driver that was its own bottleneck limits the whole result. */
static int merge_limited(struct run_driver *driver, struct run_driver *other)
{
	char *why;

	if (driver->limited || !other->limited)
		return 0;
	driver->limited = TAKE_PTR(other->limited);
	if (!other->host || !driver->limited->why)
		return 0;
	if (asprintf(&why, "on %s, %s", other->host, driver->limited->why) < 0)
		return -ENOMEM;
	free(driver->limited->why);
	driver->limited->why = why;
	return 0;
}

/* The planned extent of both together is not known. */
static void merge_interrupted(struct run_driver *driver, struct run_driver *other)
{
	if (!driver->interrupted)
		driver->interrupted = TAKE_PTR(other->interrupted);
	if (driver->interrupted)
		*driver->interrupted = (struct run_interrupted){0};
}

/*
 * Arrivals at two rates combine to one load. Refuse a rate with a closed loop, as they have no
 * common latency: it counts from the due time or from sending.
 */
static int merge_arrival(struct run_driver *driver, const struct run_driver *other,
			 char **ret_error)
{
	if (!driver->rate != !other->rate)
		return refuse(
			ret_error,
			"driver.arrival: '%s' and '%s' cannot be merged: under a rate latency "
			"counts from when a request was due, else from when it was sent",
			driver->arrival ? driver->arrival : "(unknown)",
			other->arrival ? other->arrival : "(unknown)");
	merge_label(&driver->arrival, other->arrival);
	return 0;
}

/* ---- rows: steps, targets, statuses, identified by name ---- */

static struct run_row *find_row(struct run_row_list *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (text_same(rows->list[i].name, name))
			return &rows->list[i];
	return NULL;
}

/* Append @other's row, taking over its members. */
static int append_row(struct run_row_list *rows, const char *kind, struct run_row *other,
		      char **ret_error)
{
	struct run_row *row;

	if (rows->count == RUN_ROWS_MAX)
		return refuse(ret_error, "driver.%s: more than %u of different names", kind,
			      RUN_ROWS_MAX);
	row = ARRAY_APPEND(rows->list, rows->count);
	if (!row)
		return -ENOMEM;
	*row = *other;
	other->name = other->target = other->method = NULL;
	return 0;
}

/* Compute where add_rows() will put the rows of @others. */
static void number_rows(struct run_row_list *rows, const struct run_row_list *others,
			uint32_t ret_places[static RUN_ROWS_MAX])
{
	size_t appended = rows->count;

	for (size_t i = 0; i < others->count && i < RUN_ROWS_MAX; i++) {
		const struct run_row *row = find_row(rows, others->list[i].name);

		ret_places[i] = (uint32_t)(row ? (size_t)(row - rows->list) : appended++);
	}
}

/* Renumber the steps of @other's samples for the rows after merge_rows(). */
static void merge_sample_steps(struct run_driver *driver, struct run_driver *other)
{
	const struct run_row_list *others = &other->rows[RUN_ROWS_STEP];
	struct run_samples *samples = other->samples;
	uint32_t places[RUN_ROWS_MAX];

	if (!samples)
		return;
	number_rows(&driver->rows[RUN_ROWS_STEP], others, places);
	for (size_t i = 0; i < samples->count; i++) {
		struct run_sample *sample = &samples->samples[i];

		if (sample->known & RUN_SAMPLE_STEP && sample->step < others->count)
			sample->step = places[sample->step];
		else
			sample->known &= ~(uint32_t)RUN_SAMPLE_STEP;
	}
}

static int add_rows(struct run_row_list *rows, const char *kind, struct run_row_list *others,
		    char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < others->count && !err; i++) {
		struct run_row *row = find_row(rows, others->list[i].name);

		if (row)
			err = merge_members(&run_row_members, row, &others->list[i], ret_error);
		else
			err = append_row(rows, kind, &others->list[i], ret_error);
	}
	return err;
}

static int compare_names(const void *a, const void *b)
{
	const struct run_row *first = a, *second = b;

	return strcmp(first->name ? first->name : "", second->name ? second->name : "");
}

/*
 * Return whether @rows cover the @requests of their driver. Rows of only one driver would look like
 * those of both. Steps may differ between drivers.
 */
static bool is_complete(const struct run_row_list *rows, enum run_rows_by by, uint64_t requests)
{
	return by == RUN_ROWS_STEP || rows->count || !requests;
}

static int merge_kind(struct run_driver *driver, struct run_driver *other, enum run_rows_by by,
		      char **ret_error)
{
	struct run_row_list *rows = &driver->rows[by], *others = &other->rows[by];

	/* The requests of both are already summed. */
	if (is_complete(rows, by, driver->requests - other->requests) &&
	    is_complete(others, by, other->requests))
		return add_rows(rows, run_rows_names[by], others, ret_error);
	run_row_list_clear(rows);
	return 0;
}

/* Call after summing @driver's counts. */
static int merge_rows(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	struct run_row_list *statuses = &driver->rows[RUN_ROWS_STATUS];
	int err = 0;

	for (enum run_rows_by by = 0; by < RUN_ROWS_COUNT && !err; by++)
		err = merge_kind(driver, other, by, ret_error);
	if (statuses->count)
		qsort(statuses->list, statuses->count, sizeof(*statuses->list), compare_names);
	return err;
}

/* ---- everything else ---- */

static int merge_own(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	uint64_t begin_ns = driver->begin_ns < other->begin_ns ? driver->begin_ns : other->begin_ns;
	const struct run_number *allowed = &other->streams_allowed;
	int err = intervals_merge(driver, other, ret_error);

	run_strings_free(TAKE_PTR(driver->sources)); /* members keep theirs */
	/* Drivers on one host see the same ports, on two hosts different ones. */
	driver->ports = (struct run_ports){0};
	/* Failure times of both count from the earlier start. */
	shift_failures(driver, driver->begin_ns - begin_ns);
	shift_failures(other, other->begin_ns - begin_ns);
	driver->begin_ns = begin_ns;
	driver->processes =
		driver->processes && other->processes ? driver->processes + other->processes : 0;
	/* Keep the lowest limit of a server. */
	if (allowed->known &&
	    (!driver->streams_allowed.known || allowed->value < driver->streams_allowed.value))
		driver->streams_allowed = *allowed;
	for (size_t i = 0; i < other->failure_count && !err; i++)
		err = add_failure(driver, &other->failures[i]);
	if (!err)
		err = merge_limited(driver, other);
	merge_interrupted(driver, other);
	if (!err)
		err = merge_rows(driver, other, ret_error);
	if (!err)
		err = merge_parts(driver, other, ret_error);
	if (!err)
		err = merge_fleet(driver, other, ret_error);
	if (err)
		return err;
	driver->duration_ns = union_of(driver->parts, driver->part_count);
	merge_label(&driver->host, other->host);
	driver->drift = run_drift(driver);
	return 0;
}

/*
 * Members of a fleet that share a host may begin in the same nanosecond. Their counts and CPU times may be equal, too.
 * Their responses do not take the same time altogether.
 */
static int refuse_twice(const struct run_driver *driver, const struct run_driver *other,
			char **ret_error)
{
	if (!driver->begin_ns || !text_same(driver->host, other->host) ||
	    !text_same(driver->target, other->target) || driver->begin_ns != other->begin_ns ||
	    !driver->requests || driver->requests != other->requests ||
	    driver->round_trip.sum != other->round_trip.sum)
		return 0;
	return refuse(ret_error, "driver: the same run of %s twice, must be given once",
		      driver->host ? driver->host : "the driver");
}

int merge_driver(struct run *run, struct run *other, char **ret_error)
{
	int err = refuse_twice(run->driver, other->driver, ret_error);

	if (!err)
		err = settle_begin(run, ret_error);
	if (!err)
		err = settle_begin(other, ret_error);
	if (!err)
		err = settle_parts(run->driver);
	if (!err)
		err = settle_parts(other->driver);
	if (!err)
		merge_sample_steps(run->driver, other->driver);
	if (!err)
		err = merge_arrival(run->driver, other->driver, ret_error);
	if (!err)
		err = merge_members(&run_driver_members, run->driver, other->driver, ret_error);
	return err ? err : merge_own(run->driver, other->driver, ret_error);
}
