// SPDX-License-Identifier: MIT
/*
 * Calls of a front, as its own host has sampled them, and the exchanges of an upstream on another host. Both hosts
 * choose by the same hash of connection and number. So a call and its exchange are matched as an exchange of the driver
 * is (match.c). The upstream's part is its wait in the sockets there, and its service. The rest of the call passed between
 * both. Only durations are subtracted, each by its own host's clock.
 *
 * Where addresses or ports are translated between both, no connection is the same.
 */
#include "calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/cleanup.h"
#include "sojourn/units.h"

/* Pairs whose times contradict the others' may be this part of all, and no more. */
#define NEGLIGIBLE 0.01

/* ---- which calls are to the upstream ---- */

static void add_place(const struct run_timed_call *call, struct join_calls *calls)
{
	calls->answered += call->calls;
	calls->hidden += call->handshakes + call->untimed;
	calls->failed += call->failed;
	calls->uncut += run_call_uncut(call);
	calls->older += call->older;
}

static int add_samples(const struct run_samples *all, const char *towards, uint16_t port,
		       struct run_samples *sent)
{
	char own[sizeof(((struct run_timed_call *)NULL)->towards)];

	for (size_t i = 0; i < all->count; i++) {
		const struct run_sample *sample = &all->samples[i];
		struct run_sample *copy;

		if (sample->flow.server_port != port)
			continue;
		units_format_endpoint(sample->flow.server, port, own, sizeof(own));
		if (strcmp(own, towards) != 0)
			continue;
		copy = run_add_sample(sent);
		if (!copy)
			return -ENOMEM;
		*copy = *sample;
	}
	return 0;
}

static int collect(const struct run_service *front, const struct run_service *upstream,
		   struct join_calls *calls)
{
	int err = 0;

	calls->sent = run_samples_new();
	if (!calls->sent)
		return -ENOMEM;
	calls->sent->threshold = front->call_samples->threshold;
	for (size_t i = 0; i < front->timed_call_count && !err; i++) {
		const struct run_timed_call *call = &front->timed_calls[i];

		if (run_towards_port(call->towards) != upstream->port ||
		    !join_has_address(upstream, call->towards))
			continue;
		add_place(call, calls);
		err = add_samples(front->call_samples, call->towards, upstream->port, calls->sent);
	}
	calls->there_ns = calloc(calls->sent->count + 1, sizeof(*calls->there_ns));
	for (size_t i = 0; calls->there_ns && i < calls->sent->count; i++)
		calls->there_ns[i] = JOIN_NOT_PAIRED;
	return err || !calls->there_ns ? -ENOMEM : 0;
}

/* ---- pairs ---- */

/*
 * Return how long the upstream had the call until its response began. While it receives the request, that is on its way.
 */
static uint64_t time_there(const struct run_sample *seen)
{
	return seen->stage_ns[STAGE_ACCEPT_QUEUE] + seen->stage_ns[STAGE_SOCKET_QUEUE] +
	       seen->stage_ns[STAGE_SERVICE];
}

static void count_pair(const struct join_pair *pair, struct run_call_pairs *pairs,
		       struct join_calls *calls)
{
	uint64_t whole_ns = pair->sent->round_trip_ns, there_ns = time_there(pair->seen);

	/* The time of a write may be taken after its bytes have arrived. */
	if (there_ns > whole_ns) {
		pairs->early++;
		there_ns = whole_ns;
	}
	calls->there_ns[pair->sent - calls->sent->samples] = there_ns;
	histogram_record(&pairs->whole, whole_ns);
	histogram_record(&pairs->there, there_ns);
	histogram_record(&pairs->between, whole_ns - there_ns);
}

static void copy_counts(const struct join_match *match, struct run_call_pairs *pairs)
{
	pairs->paired = match->count;
	pairs->unknown_flow = match->unknown_flow;
	pairs->unmatched = match->driver_only - match->unknown_flow;
	pairs->ambiguous = match->ambiguous;
	pairs->implausible = match->implausible;
	pairs->calls = match->count + match->driver_only + match->ambiguous + match->implausible;
}

/*
 * Return whether many pairs contradict each other. Then the two hosts count the calls in different ways, and those that
 * do not may be wrong, too.
 */
static bool are_contradictory(const struct join_match *match)
{
	uint64_t all = match->count + match->implausible;

	return (double)match->implausible > NEGLIGIBLE * (double)all;
}

/*
 * Return whether the upstream's observer may count more or fewer exchanges than the front has calls. It does so of
 * commands, of requests that got no response, and of those that were read together.
 */
static bool numbers_may_differ(const struct run_service *upstream)
{
	return upstream->routes.protocol || upstream->losses[RUN_LOSS_ONEWAY] ||
	       upstream->pipelined.value;
}

/*
 * Return whether both hosts have sampled all calls, and equally many on each connection. If calls come at equal distances,
 * a constant difference of their numbers looks like one of the clocks.
 */
static bool are_all_known(uint64_t threshold, const struct join_match *match)
{
	return threshold == RUN_SAMPLE_ALL && match->driver_only == match->unknown_flow &&
	       !match->unmeasured && !match->observer_only;
}

/* Leave out all pairs if any of them may be wrong. */
static void leave_out(const struct run_service *upstream, uint64_t threshold,
		      struct join_match *match)
{
	if (!are_contradictory(match) &&
	    (!numbers_may_differ(upstream) || are_all_known(threshold, match)))
		return;
	match->implausible += match->count;
	match->count = 0;
}

/* ---- why calls are not paired ---- */

static void write_reason(FILE *text, const struct run *there, const struct run_call_pairs *pairs)
{
	const struct run_samples *samples = there->services[0].samples;

	if (!samples || !samples->threshold) {
		fputs("the upstream's observer took no samples", text);
	} else if (!pairs->calls) {
		fputs("no call is sampled", text);
	} else if (pairs->unknown_flow == pairs->calls) {
		fputs("none of the connections to it is known on its host: addresses or ports are "
		      "translated"
		      " in between, or it has no sample of them",
		      text);
		join_write_causes(text, there);
	} else if (pairs->implausible && !pairs->paired &&
		   numbers_may_differ(&there->services[0])) {
		fputs("the two hosts may count calls in different ways: the upstream's observer "
		      "counts commands, or some requests got no response or were read together",
		      text);
	} else if (pairs->implausible && !pairs->paired) {
		fputs("the times of calls contradict those of the exchanges: the two hosts count "
		      "them in"
		      " different ways",
		      text);
	} else if (pairs->unknown_flow + pairs->unmatched) {
		fprintf(text, "of %" PRIu64 " calls its host has no sample",
			pairs->unknown_flow + pairs->unmatched);
		join_write_causes(text, there);
	} else if (pairs->ambiguous) {
		fprintf(text,
			"%" PRIu64 " calls were left out: their source port was used again, and "
			"the two hosts know a"
			" different number of them",
			pairs->ambiguous);
	} else if (pairs->implausible) {
		fprintf(text,
			"%" PRIu64
			" calls were left out: their times contradict those of the others",
			pairs->implausible);
	}
}

static int explain(const struct run *there, struct run_call_pairs *pairs)
{
	autofree char *reason = NULL;
	size_t length = 0;
	FILE *text = open_memstream(&reason, &length);

	if (!text)
		return -ENOMEM;
	write_reason(text, there, pairs);
	if (fclose(text))
		return -ENOMEM;
	if (length)
		pairs->reason = TAKE_PTR(reason);
	return 0;
}

/* ---- all ---- */

int join_calls_open(const struct run_service *front, const struct run_service *upstream,
		    struct run_call_pairs *ret_pairs, struct join_calls *ret_calls)
{
	/* The upstream alone: its exchanges are all that the calls may be. */
	const struct run there = {.services = (struct run_service *)upstream, .service_count = 1};
	struct join_match match = {0};
	int err = collect(front, upstream, ret_calls);

	ret_pairs->threshold = front->call_samples->threshold;
	if (!upstream->samples)
		ret_pairs->threshold = 0;
	else if (upstream->samples->threshold < ret_pairs->threshold)
		ret_pairs->threshold = upstream->samples->threshold;
	if (!err)
		err = join_match(ret_calls->sent, &there, ret_pairs->threshold, &match);
	if (!err) {
		leave_out(upstream, ret_pairs->threshold, &match);
		copy_counts(&match, ret_pairs);
		for (size_t i = 0; i < match.count; i++)
			count_pair(&match.pairs[i], ret_pairs, ret_calls);
		err = explain(&there, ret_pairs);
	}
	free(match.pairs);
	return err;
}

void join_calls_close(struct join_calls *calls)
{
	run_samples_free(calls->sent);
	free(calls->there_ns);
}
