/* SPDX-License-Identifier: MIT */
/*
 * The drivers' parts of two run documents made one. The table of members says what becomes of each;
 * what needs more than that is here. Neighbours: run_merge.c, run_intervals.c.
 */
#include "run_merge.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "run_intervals.h"
#include "run_members.h"
#include "run_samples.h"
#include "sojourn/refuse.h"

#define MAX_PARTS 1024

struct merging {
	const struct run_member *member;
	char **ret_error;
};

static int refuse_number(const struct merging *merging, uint64_t a, uint64_t b)
{
	return refuse(merging->ret_error, "driver.%s: %" PRIu64 " and %" PRIu64 " cannot be merged",
		      merging->member->name, a, b);
}

static int merge_numbers(const struct merging *merging, uint64_t a, uint64_t b, uint64_t max,
			 uint64_t *ret_value)
{
	enum run_merging how = merging->member->merging;

	if (how == RUN_MERGING_SAME && a != b)
		return refuse_number(merging, a, b);
	if (how == RUN_MERGING_BY_KIND && (a > max || b > max - a))
		return refuse(merging->ret_error,
			      "driver.%s: the sum of %" PRIu64 " and %" PRIu64 " is above %" PRIu64,
			      merging->member->name, a, b, max);
	if (how == RUN_MERGING_BY_KIND)
		*ret_value = a + b;
	else
		*ret_value = a > b ? a : b;
	return 0;
}

static int merge_u64(const struct merging *merging, void *field, const void *other)
{
	uint64_t *value = field;

	return merge_numbers(merging, *value, *(const uint64_t *)other, INT64_MAX, value);
}

static int merge_u32(const struct merging *merging, void *field, const void *other)
{
	uint64_t sum = 0;
	int err = merge_numbers(merging, *(uint32_t *)field, *(const uint32_t *)other, UINT32_MAX,
				&sum);

	if (!err)
		*(uint32_t *)field = (uint32_t)sum;
	return err;
}

/* Of one that is not known the sum is not known either. */
static int merge_number(const struct merging *merging, void *field, const void *other)
{
	const struct run_number *another = other;
	struct run_number *number = field;

	if (number->known && another->known)
		return merge_u64(merging, &number->value, &another->value);
	*number = (struct run_number){0};
	return 0;
}

static int merge_bool(const struct merging *merging, void *field, const void *other)
{
	if (*(bool *)field == *(const bool *)other)
		return 0;
	return refuse(merging->ret_error, "driver.%s: true and false cannot be merged",
		      merging->member->name);
}

static int merge_string(const struct merging *merging, void *field, const void *other)
{
	const char *text = *(char *const *)other;
	char **string = field;

	if (merging->member->merging == RUN_MERGING_FIRST)
		return merge_copy(string, text);
	if (merging->member->merging == RUN_MERGING_SAME && !merge_same(*string, text))
		return refuse(merging->ret_error, "driver.%s: '%s' and '%s' cannot be merged",
			      merging->member->name, *string ? *string : "(unknown)",
			      text ? text : "(unknown)");
	merge_label(string, text);
	return 0;
}

static int merge_counters(const struct merging *merging, void *field, const void *other)
{
	const uint64_t *others = other;
	uint64_t *counters = field;
	int err = 0;

	for (size_t i = 0; i < merging->member->size && !err; i++)
		err = merge_u64(merging, &counters[i], &others[i]);
	return err;
}

static int merge_histogram(const struct merging *merging, void *field, const void *other)
{
	const struct histogram *h = other;
	struct histogram *sum = field;

	if (sum->count > INT64_MAX - h->count || sum->sum > INT64_MAX - h->sum)
		return refuse(merging->ret_error, "driver.%s: the sum is above 2^63 - 1",
			      merging->member->name);
	histogram_add(sum, h);
	return 0;
}

/* One side alone would look complete and is not: then there are none. */
static int merge_samples(const struct merging *merging, void *field, const void *other)
{
	struct run_samples *const *others = other;
	struct run_samples **samples = field;

	(void)merging;
	if (*samples && *others)
		return run_samples_add(*samples, *others);
	run_samples_free(TAKE_PTR(*samples));
	return 0;
}

static int (*const mergers[RUN_KIND_COUNT])(const struct merging *, void *, const void *) = {
	[RUN_KIND_U64] = merge_u64,	      [RUN_KIND_U32] = merge_u32,
	[RUN_KIND_BOOL] = merge_bool,	      [RUN_KIND_STRING] = merge_string,
	[RUN_KIND_COUNTERS] = merge_counters, [RUN_KIND_HISTOGRAM] = merge_histogram,
	[RUN_KIND_SAMPLES] = merge_samples,   [RUN_KIND_NUMBER] = merge_number,
};

int merge_members(const struct run_members *members, void *structure, const void *other,
		  char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < members->count && !err; i++) {
		const struct run_member *member = &members->list[i];
		const struct merging merging = {member, ret_error};

		if (member->merging == RUN_MERGING_OWN)
			continue;
		if (!mergers[member->kind])
			return refuse(ret_error, "driver.%s: cannot be merged", member->name);
		err = mergers[member->kind](&merging, (char *)structure + member->offset,
					    (const char *)other + member->offset);
	}
	return err;
}

/* When the measured phase began, which older documents only say of the document. */
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

/* A driver that has not been merged yet is its own only part. */
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
	struct run_part *parts;

	if (count > MAX_PARTS)
		return refuse(ret_error, "driver.parts: %zu drivers, must be at most %d", count,
			      MAX_PARTS);
	parts = reallocarray(driver->parts, count, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	memcpy(parts + driver->part_count, other->parts, other->part_count * sizeof(*parts));
	other->part_count = 0;
	driver->parts = parts;
	driver->part_count = count;
	qsort(parts, count, sizeof(*parts), compare_parts);
	return 0;
}

/* How much time at least one part covers; they are in order of their begin. */
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

static struct run_failure *find_failure(struct run_driver *driver, const char *kind)
{
	for (size_t i = 0; i < driver->failure_count; i++)
		if (!strcmp(driver->failures[i].kind, kind))
			return &driver->failures[i];
	return NULL;
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
	struct run_failure *failure = find_failure(driver, other->kind);

	if (failure) {
		failure->count += other->count;
		if (other->first_ns < failure->first_ns)
			failure->first_ns = other->first_ns;
		if (other->last_ns > failure->last_ns)
			failure->last_ns = other->last_ns;
		return merge_copy(&failure->explanation, other->explanation);
	}
	failure = reallocarray(driver->failures, driver->failure_count + 1, sizeof(*failure));
	if (!failure)
		return -ENOMEM;
	driver->failures = failure;
	failure[driver->failure_count++] = *other;
	other->explanation = NULL;
	return 0;
}

static int merge_failures(struct run_driver *driver, struct run_driver *other)
{
	int err = 0;

	for (size_t i = 0; i < other->failure_count && !err; i++)
		err = add_failure(driver, &other->failures[i]);
	return err;
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

/* The least that a server allows. */
static void merge_streams(struct run_driver *driver, const struct run_driver *other)
{
	struct run_number *allowed = &driver->streams_allowed;

	if (other->streams_allowed.known &&
	    (!allowed->known || other->streams_allowed.value < allowed->value))
		*allowed = other->streams_allowed;
}

/*
 * Arrivals of two rates are those of a load of both, whatever their laws. With a closed loop there is no
 * common latency: under a rate it counts from when a request was due, else from when it was sent.
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

static void merge_processes(struct run_driver *driver, const struct run_driver *other)
{
	bool known = driver->processes && other->processes;

	driver->processes = known ? driver->processes + other->processes : 0;
}

/* Times of both count from the earlier begin. */
static void align(struct run_driver *driver, struct run_driver *other)
{
	uint64_t begin_ns = driver->begin_ns < other->begin_ns ? driver->begin_ns : other->begin_ns;

	shift_failures(driver, driver->begin_ns - begin_ns);
	shift_failures(other, other->begin_ns - begin_ns);
}

static int merge_own(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	int err = intervals_merge(driver, other, ret_error);

	/* Two drivers of one host look at the same ports, two hosts have different ones. */
	driver->ports = (struct run_ports){0};
	align(driver, other);
	if (other->begin_ns < driver->begin_ns)
		driver->begin_ns = other->begin_ns;
	merge_processes(driver, other);
	merge_streams(driver, other);
	if (!err)
		err = merge_failures(driver, other);
	if (!err)
		err = merge_limited(driver, other);
	if (!err)
		err = merge_rows(driver, other, ret_error);
	if (!err)
		err = merge_parts(driver, other, ret_error);
	if (err)
		return err;
	driver->duration_ns = union_of(driver->parts, driver->part_count);
	merge_label(&driver->host, other->host);
	driver->drift = run_drift(driver);
	return 0;
}

int merge_driver(struct run *run, struct run *other, char **ret_error)
{
	int err = settle_begin(run, ret_error);

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
