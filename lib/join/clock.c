// SPDX-License-Identifier: MIT
/*
 * Removes pairs whose times cannot be of one exchange, without knowing the clocks' difference.
 *
 * A request cannot arrive before it was sent, nor a response be complete before the server read the
 * request. Each pair thus bounds the difference of the clocks, and all true pairs allow the true
 * one. A pair that excludes it was matched with another request of its connection. That happens if
 * a server answers before it has read the whole request, which shifts the count. The difference is
 * the one that most pairs allow, by K. Marzullo's intersection (1984), with which NTP selects
 * sources (RFC 5905, 11.2.1). It is used for nothing else.
 *
 * Each host has a clock of its own. So pairs are only compared with those of the same observer and,
 * in a run of several drivers, of the same client address.
 */
#include <stdlib.h>
#include <string.h>

#include "match.h"

/* Pairs per window: enough for a majority, few enough that clocks do not drift. */
#define WINDOW_PAIRS 64

/* Maximum drift between two clocks in a window: 50 ppm to either side. */
#define DRIFT_PER_NS 20000

struct bounds {
	int64_t low, high; /* ns by which the server's clock may be ahead */
};

struct edge {
	int64_t at;
	int step; /* +1: a pair's bounds begin; -1: they end after it */
};

/* Return when the whole request had been read, by the server's clock. */
static uint64_t read_ns(const struct run_sample *seen)
{
	return seen->arrival_ns + seen->stage_ns[STAGE_ACCEPT_QUEUE] +
	       seen->stage_ns[STAGE_SOCKET_QUEUE] + seen->stage_ns[STAGE_RECEIVE];
}

static struct bounds bounds_of(const struct join_pair *pair, uint64_t slack_ns)
{
	uint64_t end_ns = pair->sent->start_ns + pair->sent->round_trip_ns;

	return (struct bounds){
		.low = (int64_t)(read_ns(pair->seen) - end_ns - slack_ns),
		.high = (int64_t)(pair->seen->arrival_ns - pair->sent->start_ns + slack_ns),
	};
}

/* Sort begins before ends, so that bounds which touch share a difference. */
static int compare_edges(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	if (left->at != right->at)
		return left->at < right->at ? -1 : 1;
	return right->step - left->step;
}

/* Find the difference that most pairs allow. Return whether more than half of them do. */
static bool find_difference(const struct bounds *bounds, size_t count, struct edge *edges,
			    int64_t *ret_difference)
{
	size_t depth = 0, deepest = 0, used = 0;

	for (size_t i = 0; i < count; i++) {
		if (bounds[i].low > bounds[i].high)
			continue;
		edges[used++] = (struct edge){bounds[i].low, 1};
		edges[used++] = (struct edge){bounds[i].high, -1};
	}
	qsort(edges, used, sizeof(*edges), compare_edges);
	for (size_t i = 0; i < used; i++) {
		depth += (size_t)edges[i].step;
		if (depth <= deepest)
			continue;
		deepest = depth;
		*ret_difference = edges[i].at;
	}
	return deepest > count / 2;
}

/* Keep the plausible pairs of @window in @kept. Return how many. */
static size_t check_window(const struct join_pair *window, size_t count, struct edge *edges,
			   struct join_pair *kept)
{
	uint64_t span_ns = window[count - 1].sent->start_ns - window[0].sent->start_ns;
	struct bounds bounds[2 * WINDOW_PAIRS];
	int64_t difference = 0;
	size_t keep = 0;

	for (size_t i = 0; i < count; i++)
		bounds[i] = bounds_of(&window[i], span_ns / DRIFT_PER_NS);
	if (!find_difference(bounds, count, edges, &difference))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (bounds[i].low <= difference && difference <= bounds[i].high)
			kept[keep++] = window[i];
	return keep;
}

/* Check pairs of the same two clocks, in order of start. Return how many are kept in @kept. */
static size_t check_clocks(const struct join_pair *pairs, size_t count, struct join_pair *kept)
{
	struct edge edges[4 * WINDOW_PAIRS];
	size_t keep = 0;

	for (size_t i = 0, size; i < count; i += size) {
		size_t left = count - i;

		/* The last window takes the rest, as a few pairs have no majority. */
		size = left < 2 * WINDOW_PAIRS ? left : WINDOW_PAIRS;
		keep += check_window(&pairs[i], size, edges, &kept[keep]);
	}
	return keep;
}

static int compare_start(const void *a, const void *b)
{
	const struct join_pair *left = a, *right = b;
	uint64_t one = left->sent->start_ns, other = right->sent->start_ns;

	return (one > other) - (one < other);
}

/* Order by the two clocks; 0: the same. */
static int compare_clocks(const struct join_pair *one, const struct join_pair *other,
			  const struct run *run)
{
	const char *host = run->services[one->service].host;
	const char *host2 = run->services[other->service].host;
	int order = strcmp(host ? host : "", host2 ? host2 : "");

	if (order || !run->driver || run->driver->part_count < 2)
		return order;
	return memcmp(one->seen->flow.client, other->seen->flow.client,
		      sizeof(one->seen->flow.client));
}

static int compare_pairs(const void *a, const void *b, void *run)
{
	int order = compare_clocks(a, b, run);

	return order ? order : compare_start(a, b);
}

void join_check_clocks(const struct run *run, struct join_match *match)
{
	size_t kept = 0;

	qsort_r(match->pairs, match->count, sizeof(*match->pairs), compare_pairs, (void *)run);
	for (size_t i = 0, size; i < match->count; i += size) {
		const struct join_pair *first = &match->pairs[i];

		size = 1;
		while (i + size < match->count && !compare_clocks(first, &first[size], run))
			size++;
		kept += check_clocks(first, size, &match->pairs[kept]);
	}
	match->implausible = match->count - kept;
	match->count = kept;
	qsort(match->pairs, match->count, sizeof(*match->pairs), compare_start);
}
