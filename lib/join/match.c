// SPDX-License-Identifier: MIT
/*
 * Two sorted lists are walked side by side: by connection, then by index. Both form the key; the
 * hash that chose the samples decides nothing here.
 *
 * A key repeats if a source port was used again within the run. If it occurs equally often on both
 * sides, the n-th matches the n-th, as connections of one key follow each other.
 */
#include "match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Samples of one side, sorted by key, then time. */
struct side {
	const struct run_sample **list;
	size_t count;
};

/* Successive samples of a side with the same connection or key. */
struct span {
	const struct run_sample **list;
	size_t count;
};

static uint64_t time_of(const struct run_sample *sample)
{
	return sample->known & RUN_SAMPLE_START ? sample->start_ns : sample->arrival_ns;
}

static int compare(const void *a, const void *b)
{
	const struct run_sample *left = *(const struct run_sample *const *)a;
	const struct run_sample *right = *(const struct run_sample *const *)b;
	int order = run_sample_compare(left, right);

	if (order)
		return order;
	return (time_of(left) > time_of(right)) - (time_of(left) < time_of(right));
}

static bool is_wanted(const struct run_sample *sample, uint64_t threshold, uint32_t needed)
{
	return (sample->known & needed) == needed &&
	       exchange_hash(flow_hash(&sample->flow), sample->index) < threshold;
}

/* Collect @samples below @threshold with the times @needed. A real document always has these. */
static void collect(const struct run_samples *samples, uint64_t threshold, uint32_t needed,
		    struct side *side)
{
	for (size_t i = 0; samples && i < samples->count; i++)
		if (is_wanted(&samples->samples[i], threshold, needed))
			side->list[side->count++] = &samples->samples[i];
}

static int side_open(struct side *side, size_t capacity)
{
	side->list = calloc(capacity + 1, sizeof(*side->list));
	return side->list ? 0 : -ENOMEM;
}

static void sort(struct side *side)
{
	qsort(side->list, side->count, sizeof(*side->list), compare);
}

static bool same_flow(const struct run_sample *a, const struct run_sample *b)
{
	return !memcmp(&a->flow, &b->flow, sizeof(a->flow));
}

static bool same_key(const struct run_sample *a, const struct run_sample *b)
{
	return a->index == b->index && same_flow(a, b);
}

/* Return the samples at the start of @rest that equal its first. */
static struct span leading(struct span rest,
			   bool (*same)(const struct run_sample *, const struct run_sample *))
{
	struct span span = {.list = rest.list};

	while (span.count < rest.count && same(rest.list[0], rest.list[span.count]))
		span.count++;
	return span;
}

static void skip(struct span *rest, struct span done)
{
	rest->list += done.count;
	rest->count -= done.count;
}

static void match_key(struct span sent, struct span seen, struct join_match *match)
{
	if (sent.count != seen.count) {
		match->ambiguous += sent.count;
		return;
	}
	if (sent.count > 1)
		match->repeated += sent.count;
	for (size_t i = 0; i < sent.count; i++)
		match->pairs[match->count++] =
			(struct join_pair){.sent = sent.list[i], .seen = seen.list[i]};
}

/* Match a connection that both sides sampled. */
static void match_connection(struct span sent, struct span seen, struct join_match *match)
{
	uint32_t first = sent.list[0]->index, last = sent.list[sent.count - 1]->index;

	while (sent.count || seen.count) {
		int order = !seen.count	  ? -1
			    : !sent.count ? 1
					  : run_sample_compare(sent.list[0], seen.list[0]);
		struct span ours = {0}, theirs = {0};

		if (order <= 0)
			ours = leading(sent, same_key);
		if (order >= 0)
			theirs = leading(seen, same_key);
		if (!order)
			match_key(ours, theirs, match);
		else if (order < 0)
			match->driver_only += ours.count;
		else if (theirs.list[0]->index < first || theirs.list[0]->index > last)
			match->unmeasured += theirs.count;
		else
			match->observer_only += theirs.count;
		skip(&sent, ours);
		skip(&seen, theirs);
	}
}

static int compare_flows(const struct run_sample *a, const struct run_sample *b)
{
	struct run_sample left = *a, right = *b;

	left.index = right.index = 0;
	return run_sample_compare(&left, &right);
}

static void match_sides(struct span sent, struct span seen, struct join_match *match)
{
	while (sent.count || seen.count) {
		int order = !seen.count	  ? -1
			    : !sent.count ? 1
					  : compare_flows(sent.list[0], seen.list[0]);
		struct span ours = {0}, theirs = {0};

		if (order <= 0)
			ours = leading(sent, same_flow);
		if (order >= 0)
			theirs = leading(seen, same_flow);
		if (!order) {
			match_connection(ours, theirs, match);
		} else if (order < 0) {
			match->driver_only += ours.count;
			match->unknown_flow += ours.count;
		} else {
			match->other_clients += theirs.count;
		}
		skip(&sent, ours);
		skip(&seen, theirs);
	}
}

static size_t count_seen(const struct run *run)
{
	size_t count = 0;

	for (size_t i = 0; i < run->service_count; i++)
		count += run->services[i].samples ? run->services[i].samples->count : 0;
	return count;
}

/* Find the service of each pair, by the array that its sample is in. */
static void find_services(const struct run *run, struct join_match *match)
{
	for (size_t i = 0; i < match->count; i++) {
		struct join_pair *pair = &match->pairs[i];

		for (size_t k = 0; k < run->service_count; k++) {
			const struct run_samples *samples = run->services[k].samples;

			if (samples && pair->seen >= samples->samples &&
			    pair->seen < samples->samples + samples->count)
				pair->service = k;
		}
	}
}

static int match_into(struct side *ours, struct side *theirs, const struct run_samples *sent,
		      const struct run *run, uint64_t threshold, struct join_match *match)
{
	if (side_open(ours, sent->count) || side_open(theirs, count_seen(run)))
		return -ENOMEM;
	collect(sent, threshold, RUN_SAMPLE_START | RUN_SAMPLE_ROUND_TRIP, ours);
	for (size_t i = 0; i < run->service_count; i++)
		collect(run->services[i].samples, threshold, RUN_SAMPLE_ARRIVAL, theirs);
	sort(ours);
	sort(theirs);
	match->pairs = calloc(ours->count + 1, sizeof(*match->pairs));
	if (!match->pairs)
		return -ENOMEM;
	match_sides((struct span){ours->list, ours->count},
		    (struct span){theirs->list, theirs->count}, match);
	find_services(run, match);
	return 0;
}

int join_match(const struct run_samples *sent, const struct run *run, uint64_t threshold,
	       struct join_match *ret_match)
{
	struct side ours = {0}, theirs = {0};
	struct join_match match = {0};
	int err = match_into(&ours, &theirs, sent, run, threshold, &match);

	free(ours.list);
	free(theirs.list);
	if (err) {
		free(match.pairs);
		return err;
	}
	join_check_clocks(run, &match);
	*ret_match = match;
	return 0;
}
