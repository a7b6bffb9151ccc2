// SPDX-License-Identifier: MIT
/*
 * Fills run->joined from the samples of both sides. match.c finds pairs, parts.c computes their
 * parts, reason.c explains why others were not joined.
 */
#include "sojourn/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match.h"
#include "parts.h"

/* Percentiles with a tail, in thousandths. */
static const uint32_t tail_per_mille[] = {500, 900, 990, 999};

static uint64_t lowest_threshold(const struct run *run)
{
	uint64_t threshold = run->driver->samples->threshold;

	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_samples *samples = run->services[i].samples;

		if (samples && samples->threshold < threshold)
			threshold = samples->threshold;
	}
	return threshold;
}

static bool has_service_samples(const struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].samples)
			return true;
	return false;
}

static void copy_counts(const struct join_match *match, struct run_joined *joined)
{
	joined->joined = match->count;
	joined->repeated = match->repeated;
	joined->driver_only = match->driver_only;
	joined->unknown_flow = match->unknown_flow;
	joined->observer_only = match->observer_only;
	joined->unmeasured = match->unmeasured;
	joined->other_clients = match->other_clients;
	joined->ambiguous = match->ambiguous;
	joined->implausible = match->implausible;
}

static void count_parts(struct run_joined *joined, const struct run_parts *parts)
{
	joined->early += parts->overhang_ns != 0;
	run_parts_add(&joined->sum, parts);
	histogram_record(&joined->round_trip, parts->round_trip_ns);
	histogram_record(&joined->network, parts->network_ns);
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		if (!parts->stages[i].known)
			continue;
		joined->stages[i].measured = true;
		histogram_record(&joined->stages[i].histogram, parts->stages[i].value);
	}
	for (size_t i = 0; i < joined->tail_count; i++) {
		struct run_tail *tail = &joined->tail[i];

		if (run_parts_total(parts) <= tail->above_ns)
			continue;
		tail->count++;
		run_parts_add(&tail->sum, parts);
	}
}

static int open_tail(const struct run_driver *driver, struct run_joined *joined)
{
	const struct histogram *latency = run_driver_latency(driver);

	joined->tail = calloc(ARRAY_SIZE(tail_per_mille), sizeof(*joined->tail));
	if (!joined->tail)
		return -ENOMEM;
	joined->tail_count = ARRAY_SIZE(tail_per_mille);
	for (size_t i = 0; i < joined->tail_count; i++) {
		joined->tail[i].per_mille = tail_per_mille[i];
		joined->tail[i].above_ns = histogram_quantile(latency, tail_per_mille[i] / 1000.0);
	}
	return 0;
}

/* Open an entry with a name for each of @rows, so that a sample's step is its index. */
static int open_steps(const struct run_row_list *rows, struct run_joined *joined)
{
	joined->steps = calloc(rows->count + 1, sizeof(*joined->steps));
	if (!joined->steps)
		return -ENOMEM;
	for (; joined->step_count < rows->count; joined->step_count++) {
		const char *name = rows->list[joined->step_count].name;

		joined->steps[joined->step_count].name = strdup(name ? name : "");
		if (!joined->steps[joined->step_count].name)
			return -ENOMEM;
	}
	return 0;
}

/* Return the first service with samples in the service's host, and there in its pod or container. */
static size_t first_there(const struct run *run, size_t service)
{
	size_t i = 0;

	while (i < service && !(run->services[i].samples &&
				run_same_instance(&run->services[i], &run->services[service])))
		i++;
	return i;
}

/* Return whether the services with samples are of several hosts, or in several pods or containers. */
static bool are_in_several(const struct run *run)
{
	size_t instances = 0;

	for (size_t i = 0; i < run->service_count && instances < 2; i++) {
		if (!run->services[i].samples)
			continue;
		if (run->services[i].host)
			return true;
		instances += first_there(run, i) == i;
	}
	return instances > 1;
}

static int name_host(const struct run *run, const struct run_service *service,
		     struct run_joined_step *host)
{
	const char *name = run_host_of(run, service);
	char place[RUN_PLACE_NAME];

	host->name = strdup(name ? name : "");
	if (*run_place_name(&service->place, place))
		host->place = strdup(place);
	return host->name && (host->place || !*place) ? 0 : -ENOMEM;
}

/*
 * Open an entry for each host, and for each pod or container there, that has samples. @ret_of is the entry of each
 * service.
 */
static int open_hosts(const struct run *run, struct run_joined *joined, size_t *ret_of)
{
	int err = 0;

	if (!are_in_several(run))
		return 0;
	joined->hosts = calloc(run->service_count + 1, sizeof(*joined->hosts));
	if (!joined->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < run->service_count && !err; i++) {
		size_t first;

		if (!run->services[i].samples)
			continue;
		first = first_there(run, i);
		ret_of[i] = first < i ? ret_of[first] : joined->host_count;
		if (first == i)
			err = name_host(run, &run->services[i],
					&joined->hosts[joined->host_count++]);
	}
	return err;
}

static void count_in(struct run_joined_step *list, size_t count, size_t index,
		     const struct run_parts *parts)
{
	if (index >= count)
		return;
	list[index].count++;
	run_parts_add(&list[index].sum, parts);
}

/* A stage without joined exchanges is missing for the service's reason. */
static int tell_missing(const struct run *run, struct run_joined *joined)
{
	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		const char *reason = "no joined exchange has it";

		if (joined->stages[i].measured)
			continue;
		for (size_t j = 0; j < run->service_count; j++)
			if (run->services[j].samples && run->services[j].stages[i].reason)
				reason = run->services[j].stages[i].reason;
		joined->stages[i].reason = strdup(reason);
		if (!joined->stages[i].reason)
			return -ENOMEM;
	}
	return 0;
}

/* If any service inferred the end of accept_queue, mark the joined stage as inferred, too. */
static int tell_accept_source(const struct run *run, struct run_joined *joined)
{
	struct run_stage *accept = &joined->stages[STAGE_ACCEPT_QUEUE];

	for (size_t i = 0; accept->measured && i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (!service->samples || !run_accept_is_inferred(service->stages))
			continue;
		accept->source = strdup(service->stages[STAGE_ACCEPT_QUEUE].source);
		return accept->source ? 0 : -ENOMEM;
	}
	return 0;
}

static int compare_total(const void *a, const void *b)
{
	uint64_t one = join_pair_total(a), other = join_pair_total(b);

	return (one < other) - (one > other);
}

/* Sort the pairs, slowest first, and keep the first ones. */
static int keep_slowest(struct join_match *match, size_t slowest, struct run_joined *joined)
{
	size_t count = match->count < slowest ? match->count : slowest;

	joined->slowest = calloc(count + 1, sizeof(*joined->slowest));
	if (!joined->slowest)
		return -ENOMEM;
	qsort(match->pairs, match->count, sizeof(*match->pairs), compare_total);
	joined->slowest_count = count;
	for (size_t i = 0; i < count; i++)
		join_exchange(&match->pairs[i], &joined->slowest[i]);
	return 0;
}

static int fill(const struct run *run, struct join_match *match, size_t slowest,
		struct run_joined *joined)
{
	autofree size_t *host_of = calloc(run->service_count + 1, sizeof(*host_of));
	struct run_parts parts;
	int err;

	if (!host_of)
		return -ENOMEM;
	copy_counts(match, joined);
	if (match->count)
		joined->begin_ns = match->pairs[0].sent->start_ns;
	err = open_tail(run->driver, joined);
	if (!err)
		err = open_steps(&run->driver->rows[RUN_ROWS_STEP], joined);
	if (!err)
		err = open_hosts(run, joined, host_of);
	for (size_t i = 0; !err && i < match->count; i++) {
		const struct run_sample *sent = match->pairs[i].sent;

		join_parts(&match->pairs[i], &parts);
		count_parts(joined, &parts);
		if (sent->known & RUN_SAMPLE_STEP)
			count_in(joined->steps, joined->step_count, sent->step, &parts);
		count_in(joined->hosts, joined->host_count, host_of[match->pairs[i].service],
			 &parts);
	}
	if (!err)
		err = tell_missing(run, joined);
	if (!err)
		err = tell_accept_source(run, joined);
	return err ? err : keep_slowest(match, slowest, joined);
}

static int join_samples(const struct run *run, size_t slowest, struct run_joined *joined)
{
	struct join_match match = {0};
	int err;

	if (!run->driver->samples || !has_service_samples(run))
		return 0;
	joined->threshold = lowest_threshold(run);
	err = join_match(run->driver->samples, run, joined->threshold, &match);
	if (!err)
		err = fill(run, &match, slowest, joined);
	free(match.pairs);
	return err;
}

int join_run(struct run *run, size_t slowest)
{
	CLEANUP(cleanup_run_joined_free) struct run_joined *joined = NULL;
	int err = join_pair_hosts(run);

	if (!err)
		err = join_nest(run);
	if (err)
		return err;
	if (!run->driver || !run->service_count)
		return 0;
	if (!run->driver->samples && !run->driver->unsampled && !has_service_samples(run)) {
		if (run->joined && run->joined->slowest_count > slowest)
			run->joined->slowest_count = slowest;
		return 0;
	}
	joined = calloc(1, sizeof(*joined));
	if (!joined)
		return -ENOMEM;
	err = join_samples(run, slowest, joined);
	if (!err)
		err = join_explain(run, joined);
	if (err)
		return err;
	run_joined_free(run->joined);
	run->joined = TAKE_PTR(joined);
	return 0;
}

void join_drop_samples(struct run *run)
{
	if (!run->joined)
		return;
	for (size_t i = 0; i < run->service_count; i++) {
		run_samples_free(TAKE_PTR(run->services[i].samples));
		run_samples_free(TAKE_PTR(run->services[i].call_samples));
	}
	if (!run->driver)
		return;
	run_samples_free(run->driver->samples);
	run->driver->samples = NULL;
}
