// SPDX-License-Identifier: MIT
/* Metrics of calls to upstreams, with --calls. There are at most as many places as the kernel side has rows for, of all services. */
#include <stddef.h>

#include "output.h"

#define PLACE "upstream"

enum source {
	SOURCE_COUNT,	/* a uint64_t */
	SOURCE_UNCUT,	/* the sum of all reasons */
	SOURCE_UNTIMED, /* of both reasons */
};

struct metric {
	struct metrics_family family;
	enum source source;
	size_t offset;
};

#define OF(member) SOURCE_COUNT, offsetof(struct run_timed_call, member)

/* clang-format off */
static const struct metric metrics[] = {
	{{"sojourn_upstream_calls", METRICS_COUNTER, METRICS_ONE, "Calls to an address and port that were answered (--calls)."}, OF(calls)},
	{{"sojourn_upstream_calls_failed", METRICS_COUNTER, METRICS_ONE, "Calls whose connection ended before the response."}, OF(failed)},
	{{"sojourn_upstream_calls_untimed", METRICS_COUNTER, METRICS_ONE, "Calls that were not timed: the first ones in TLS, and those that another thread read."}, SOURCE_UNTIMED, 0},
	{{"sojourn_upstream_calls_open", METRICS_GAUGE, METRICS_ONE, "Calls that wait for their response now."}, OF(open)},
	{{"sojourn_upstream_connects", METRICS_COUNTER, METRICS_ONE, "Connections that were established."}, OF(connects)},
	{{"sojourn_upstream_connect_seconds", METRICS_COUNTER, METRICS_SECONDS, "How long that took, all together."}, OF(connect_ns)},
	{{"sojourn_upstream_connects_failed", METRICS_COUNTER, METRICS_ONE, "Connections that were not established."}, OF(connects_failed)},
	{{"sojourn_upstream_connections_older", METRICS_COUNTER, METRICS_ONE, "Older connections that were picked up."}, OF(older)},
	{{"sojourn_upstream_connections_uncut", METRICS_COUNTER, METRICS_ONE, "Connections that cannot be cut into calls; see docs/measurement.md."}, SOURCE_UNCUT, 0},
};
/* clang-format on */

static uint64_t value_of(const struct run_timed_call *call, const struct metric *metric)
{
	switch (metric->source) {
	case SOURCE_UNCUT:
		return run_call_uncut(call);
	case SOURCE_UNTIMED:
		return call->untimed + call->handshakes;
	default:
		return *(const uint64_t *)((const char *)call + metric->offset);
	}
}

static void tell_counts(const struct metrics_output *out, const struct run *run,
			const struct metric *metric)
{
	out->family(out->context, &metric->family);
	for (size_t i = 0; metrics_next_service(run, &i); i++) {
		const struct run_service *service = &run->services[i];

		for (size_t k = 0; k < service->timed_call_count; k++) {
			const struct run_timed_call *call = &service->timed_calls[k];
			struct metrics_numbers numbers;
			struct metrics_labels labels = metrics_labels_of(service, &numbers);

			metrics_add_label(&labels, PLACE, call->towards);
			out->number(out->context, &labels, value_of(call, metric));
		}
	}
}

/* Waits stay in the bucket that they were first counted in, so no edge ever falls. */
static void tell_wait(const struct metrics_output *out, enum metrics_buckets buckets,
		      const struct run_service *service, const struct run_timed_call *call)
{
	uint64_t below[METRICS_EDGES_MAX];
	const struct metrics_edges edges = {buckets, metrics_edge_count(buckets), below,
					    STAGE_SERVICE, NULL};
	struct metrics_numbers numbers;
	struct metrics_labels labels = metrics_labels_of(service, &numbers);

	metrics_count_edges(buckets, &call->wait, below);
	metrics_add_label(&labels, PLACE, call->towards);
	out->histogram(out->context, &labels, &edges, &call->wait);
}

void metrics_tell_calls(const struct run *run, enum metrics_buckets buckets,
			const struct metrics_output *out)
{
	static const struct metrics_family family = {
		"sojourn_upstream_wait_seconds", METRICS_HISTOGRAM, METRICS_SECONDS,
		"From the last write of a call's request to the first read of its response."};

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		tell_counts(out, run, &metrics[i]);
	out->family(out->context, &family);
	for (size_t i = 0; metrics_next_service(run, &i); i++)
		for (size_t k = 0; k < run->services[i].timed_call_count; k++)
			if (run_call_is_timed(&run->services[i].timed_calls[k]))
				tell_wait(out, buckets, &run->services[i],
					  &run->services[i].timed_calls[k]);
}
