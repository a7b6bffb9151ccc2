// SPDX-License-Identifier: MIT
/*
 * The wait of single requests for an upstream in the same network namespace, whose exchanges have times by the same
 * clock. Of an upstream on another host these are the calls that the front's own host has sampled (calls.c). A call
 * begins after its front has read the request, and is answered before the front responds. So it is of a request that it
 * lies in. If that is one only, it is that one's. All calls that lie in a request are its upper bound.
 *
 * Nothing is assumed of how many calls a request makes, nor of their order. It needs all exchanges of both: without a
 * request, its call would seem to be of another one.
 */
#include "calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

/* Parts of less than this do not matter. */
#define NEGLIGIBLE 0.01
/* Of a request with more calls in it, all of the service may be theirs. Bounds the work on a hostile document. */
#define CALLS_LOOKED_AT 1000U

#define PERCENTILE 99

/* An exchange from its first read to its response; of a call, from its arrival. */
struct lying {
	uint64_t begin_ns, end_ns;
	bool outside; /* a call that lies in no request */
	/* Of a call, or JOIN_NOT_PAIRED; of a request, the sum of its calls'. */
	uint64_t there_ns;
	/* Only of a request. */
	uint64_t service_ns;
	uint64_t least_ns, most_ns;
	uint64_t counted_ns; /* least_ns has the calls until then */
	uint64_t between_ns;
	bool undivided; /* one of its calls is not paired, or overlaps with another one or the time before its service */
	bool calls;
};

struct lying_list {
	struct lying *list;
	size_t count;
};

/* ---- samples become intervals ---- */

static int compare_begins(const void *a, const void *b)
{
	const struct lying *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool lying_from(const struct run_sample *sample, bool call, struct lying *ret_lying)
{
	const uint32_t needed = RUN_SAMPLE_ARRIVAL | RUN_SAMPLE_STAGE(STAGE_ACCEPT_QUEUE) |
				RUN_SAMPLE_STAGE(STAGE_SOCKET_QUEUE) |
				RUN_SAMPLE_STAGE(STAGE_RECEIVE) | RUN_SAMPLE_STAGE(STAGE_SERVICE);
	const uint64_t *stages = sample->stage_ns;
	uint64_t read_ns =
		sample->arrival_ns + stages[STAGE_ACCEPT_QUEUE] + stages[STAGE_SOCKET_QUEUE];

	*ret_lying = (struct lying){
		.begin_ns = call ? sample->arrival_ns : read_ns,
		.end_ns = read_ns + stages[STAGE_RECEIVE] + stages[STAGE_SERVICE],
		.service_ns = stages[STAGE_SERVICE],
		.there_ns = call ? JOIN_NOT_PAIRED : 0,
	};
	return (sample->known & needed) == needed;
}

static int list_of(const struct run_samples *samples, bool call, struct lying_list *ret_list)
{
	ret_list->list = calloc(samples->count + 1, sizeof(*ret_list->list));
	if (!ret_list->list)
		return -ENOMEM;
	for (size_t i = 0; i < samples->count; i++)
		if (lying_from(&samples->samples[i], call, &ret_list->list[ret_list->count]))
			ret_list->count++;
	qsort(ret_list->list, ret_list->count, sizeof(*ret_list->list), compare_begins);
	return 0;
}

/* The calls that the front's host has sampled. */
static int list_of_calls(const struct join_calls *calls, struct lying_list *ret_list)
{
	ret_list->list = calloc(calls->sent->count + 1, sizeof(*ret_list->list));
	if (!ret_list->list)
		return -ENOMEM;
	for (; ret_list->count < calls->sent->count; ret_list->count++) {
		const struct run_sample *sample = &calls->sent->samples[ret_list->count];

		ret_list->list[ret_list->count] = (struct lying){
			.begin_ns = sample->start_ns,
			.end_ns = sample->start_ns + sample->round_trip_ns,
			.there_ns = calls->there_ns[ret_list->count],
		};
	}
	qsort(ret_list->list, ret_list->count, sizeof(*ret_list->list), compare_begins);
	return 0;
}

/* ---- calls in requests ---- */

/* Return how much of the call is in the request's service, and after @counted_ns, which moves to its end. */
static uint64_t wait_for(const struct lying *request, const struct lying *call,
			 uint64_t *counted_ns)
{
	uint64_t from_ns = request->end_ns - request->service_ns;
	uint64_t to_ns = call->end_ns < request->end_ns ? call->end_ns : request->end_ns;

	if (from_ns < call->begin_ns)
		from_ns = call->begin_ns;
	if (from_ns < *counted_ns)
		from_ns = *counted_ns;
	if (to_ns <= from_ns)
		return 0;
	*counted_ns = to_ns;
	return to_ns - from_ns;
}

/* Add a call that can only be the request's. */
static void add_own(struct lying *request, const struct lying *call)
{
	uint64_t waited_ns = wait_for(request, call, &request->counted_ns);

	request->least_ns += waited_ns;
	if (call->there_ns == JOIN_NOT_PAIRED || waited_ns != call->end_ns - call->begin_ns) {
		request->undivided = true;
		return;
	}
	request->there_ns += call->there_ns;
	request->between_ns += waited_ns - call->there_ns;
}

/*
 * Add each call to the one request that it lies in. Return the number of calls that are in none. Of the requests that
 * began before the call, the two that end last decide whether it is in none, one or more.
 */
static uint64_t add_certain(struct lying_list *requests, struct lying_list *calls)
{
	struct lying *last = NULL;
	uint64_t second_ns = 0, outside = 0;
	size_t begun = 0;

	for (size_t i = 0; i < calls->count; i++) {
		struct lying *call = &calls->list[i];

		for (; begun < requests->count && requests->list[begun].begin_ns <= call->begin_ns;
		     begun++) {
			struct lying *request = &requests->list[begun];
			bool later = !last || request->end_ns > last->end_ns;
			uint64_t other_ns = later ? last ? last->end_ns : 0 : request->end_ns;

			second_ns = other_ns > second_ns ? other_ns : second_ns;
			last = later ? request : last;
		}
		call->outside = !last || last->end_ns < call->end_ns;
		outside += call->outside;
		if (!call->outside && second_ns < call->end_ns)
			add_own(last, call);
	}
	return outside;
}

/*
 * Set what the request may have waited at most: for all calls from @first on that lie in it. Those that only begin there
 * and lie in no request may be its own, too: it did not wait for their answer to the end.
 */
static void add_possible(struct lying *request, const struct lying_list *calls, size_t first)
{
	uint64_t counted_ns = 0;

	for (size_t i = first; i < calls->count && calls->list[i].begin_ns <= request->end_ns;
	     i++) {
		if (i - first >= CALLS_LOOKED_AT) {
			request->most_ns = request->service_ns;
			request->calls = true;
			return;
		}
		if (calls->list[i].end_ns > request->end_ns && !calls->list[i].outside)
			continue;
		request->calls = true;
		request->most_ns += wait_for(request, &calls->list[i], &counted_ns);
	}
}

/* ---- sums ---- */

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int find_slowest(const struct lying_list *requests, uint64_t *ret_from_ns)
{
	autofree uint64_t *services = calloc(requests->count + 1, sizeof(*services));
	size_t most = requests->count * (100 - PERCENTILE) / 100;

	if (!services)
		return -ENOMEM;
	for (size_t i = 0; i < requests->count; i++)
		services[i] = requests->list[i].service_ns;
	qsort(services, requests->count, sizeof(*services), compare_numbers);
	if (requests->count)
		*ret_from_ns = services[requests->count - (most ? most : 1)];
	return 0;
}

static void add_to(const struct lying *request, struct run_nested_sum *sum)
{
	if (request->service_ns < sum->from_ns)
		return;
	sum->count++;
	sum->service_ns += request->service_ns;
	sum->least_ns += request->least_ns;
	sum->most_ns += request->most_ns;
}

/* Add the parts of a request whose wait is known, if all its calls are paired. */
static void divide(const struct lying *request, uint64_t slow_ns, struct run_divided *divided)
{
	uint64_t own_ns = request->service_ns - request->there_ns - request->between_ns;

	if (!divided || request->undivided || !request->least_ns)
		return;
	histogram_record(&divided->own, own_ns);
	histogram_record(&divided->there, request->there_ns);
	histogram_record(&divided->between, request->between_ns);
	if (request->service_ns < slow_ns)
		return;
	divided->slowest++;
	divided->slowest_own_ns += own_ns;
	divided->slowest_there_ns += request->there_ns;
	divided->slowest_between_ns += request->between_ns;
}

static void count_request(const struct lying *request, struct run_nested *nested)
{
	double doubt_ns = (double)(request->most_ns - request->least_ns);

	add_to(request, &nested->all);
	add_to(request, &nested->slowest);
	if (!request->calls) {
		nested->alone++;
	} else if (doubt_ns > NEGLIGIBLE * (double)request->service_ns) {
		nested->ambiguous++;
	} else {
		nested->paired++;
		histogram_record(&nested->upstream, request->most_ns);
		histogram_record(&nested->rest, request->service_ns - request->most_ns);
		divide(request, nested->slowest.from_ns, nested->divided);
	}
}

/* @far: the calls of an upstream on another host; NULL: it is on the front's. */
static int nest(const struct run_service *front, const struct run_service *upstream,
		const struct join_calls *far, struct run_nested *nested)
{
	struct lying_list requests = {0}, calls = {0};
	int err = list_of(front->samples, false, &requests);
	size_t first = 0;

	if (!err)
		err = far ? list_of_calls(far, &calls) : list_of(upstream->samples, true, &calls);
	if (!err)
		err = find_slowest(&requests, &nested->slowest.from_ns);
	if (!err)
		nested->outside = add_certain(&requests, &calls);
	for (size_t i = 0; !err && i < requests.count; i++) {
		while (first < calls.count &&
		       calls.list[first].begin_ns < requests.list[i].begin_ns)
			first++;
		add_possible(&requests.list[i], &calls, first);
		count_request(&requests.list[i], nested);
	}
	free(requests.list);
	free(calls.list);
	return err;
}

/* ---- what makes the result unknown ---- */

static uint64_t not_sampled(const struct run_service *service)
{
	return service->exchanges > service->samples->count
		       ? service->exchanges - service->samples->count
		       : 0;
}

static void write_hidden(const struct run_service *service, size_t size, char *ret_text)
{
	snprintf(ret_text, size, "requests on %" PRIu64 " connections are not timed",
		 run_hidden_connections(service));
}

/* Write why requests or calls are missing, as @threshold is lower or by what else both ways share. */
static void write_not_all(const struct run_service *front, const struct run_upstream *row,
			  uint64_t threshold, size_t size, char *ret_text)
{
	if (row->serves_too.known)
		snprintf(ret_text, size,
			 "the calls may be for port %" PRIu64 ", which its processes serve, too",
			 row->serves_too.value);
	else if (threshold < RUN_SAMPLE_ALL)
		snprintf(ret_text, size,
			 "one of %" PRIu64 " exchanges is sampled, and all are needed",
			 (uint64_t)RUN_SAMPLE_ALL / (threshold ? threshold : 1));
	else if (run_hidden_connections(front))
		write_hidden(front, size, ret_text);
}

/* Write why it is not known of which requests the calls are; "": it is. */
static void write_reason(const struct run_service *front, const struct run_service *upstream,
			 const struct run_upstream *row, size_t size, char *ret_text)
{
	uint64_t threshold = front->samples->threshold < upstream->samples->threshold
				     ? front->samples->threshold
				     : upstream->samples->threshold;
	uint64_t requests = not_sampled(front), calls = not_sampled(upstream);
	uint64_t missing = requests + calls + front->samples->lost + upstream->samples->lost;
	uint64_t given_up = run_upstream_given_up(front, upstream);

	if (row->others)
		snprintf(ret_text, size, "%" PRIu64 " of the connections to it are of others",
			 row->others);
	else
		write_not_all(front, row, threshold, size, ret_text);
	if (*ret_text)
		return;
	if (run_hidden_connections(upstream))
		write_hidden(upstream, size, ret_text);
	/* Requests from before the period are no samples, nor are their calls. */
	else if (calls > requests ||
		 (double)missing > NEGLIGIBLE * (double)(front->exchanges + upstream->exchanges))
		snprintf(ret_text, size,
			 "%" PRIu64 " exchanges are not sampled, and all are needed", missing);
	else if (given_up)
		snprintf(ret_text, size, "%" PRIu64 " calls got no answer", given_up);
}

/* Likewise, of an upstream on another host. Its front's own host has all that is needed. */
static void write_far_reason(const struct run_service *front, const struct run_upstream *row,
			     const struct join_calls *calls, size_t size, char *ret_text)
{
	uint64_t threshold = front->samples->threshold < calls->sent->threshold
				     ? front->samples->threshold
				     : calls->sent->threshold;
	uint64_t all = calls->answered + calls->hidden,
		 missing = all > calls->sent->count ? all - calls->sent->count : 0;
	uint64_t requests = not_sampled(front);

	write_not_all(front, row, threshold, size, ret_text);
	if (*ret_text)
		return;
	if (calls->uncut)
		snprintf(ret_text, size, "%" PRIu64 " connections to it are not cut into calls",
			 calls->uncut);
	else if ((double)missing > NEGLIGIBLE * (double)all)
		snprintf(ret_text, size,
			 "%" PRIu64 " of %" PRIu64 " calls are not sampled, and all are needed: "
			 "those in TLS are not, nor those "
			 "of %" PRIu64 " connections that are older than the observation",
			 missing, all, calls->older);
	else if ((double)(requests + front->samples->lost) > NEGLIGIBLE * (double)front->exchanges)
		snprintf(ret_text, size, "%" PRIu64 " requests are not sampled, and all are needed",
			 requests + front->samples->lost);
	else if (calls->failed)
		snprintf(ret_text, size, "%" PRIu64 " calls got no answer", calls->failed);
}

static void write_outside(const struct run_nested *nested, uint64_t calls, size_t size,
			  char *ret_text)
{
	if ((double)nested->outside > NEGLIGIBLE * (double)calls)
		snprintf(ret_text, size, "%" PRIu64 " of %" PRIu64 " calls lie in no request",
			 nested->outside, calls);
}

static void nested_clear(struct run_nested *nested)
{
	free(nested->reason);
	free(nested->divided);
	*nested = (struct run_nested){0};
}

/* @far: as for nest(). @reason: why the calls are not known; "": they are. */
static int judge(const struct run_service *front, const struct run_service *upstream,
		 const struct join_calls *far, char *reason, size_t size, struct run_nested *nested)
{
	uint64_t calls = far ? far->sent->count : upstream->samples->count;
	int err = 0;

	if (!*reason) {
		err = nest(front, upstream, far, nested);
		write_outside(nested, calls, size, reason);
	}
	if (err || !*reason)
		return err;
	nested_clear(nested);
	nested->reason = strdup(reason);
	return nested->reason ? 0 : -ENOMEM;
}

/* Of an upstream on another host there are the calls of the front's own host, if it has sampled them. */
static int judge_far(const struct run_service *front, const struct run_service *upstream,
		     struct run_upstream *row)
{
	struct join_calls calls = {0};
	char reason[192] = "";
	int err;

	row->pairs = calloc(1, sizeof(*row->pairs));
	row->nested->divided = calloc(1, sizeof(*row->nested->divided));
	if (!row->pairs || !row->nested->divided)
		return -ENOMEM;
	err = join_calls_open(front, upstream, row->pairs, &calls);
	if (!err) {
		write_far_reason(front, row, &calls, sizeof(reason), reason);
		err = judge(front, upstream, &calls, reason, sizeof(reason), row->nested);
	}
	join_calls_close(&calls);
	return err;
}

static int judge_row(const struct run_service *front, const struct run_service *upstream,
		     struct run_upstream *row)
{
	char reason[192] = "";

	if (row->nested)
		nested_clear(row->nested);
	else
		row->nested = calloc(1, sizeof(*row->nested));
	free(row->pairs ? row->pairs->reason : NULL);
	free(TAKE_PTR(row->pairs));
	if (!row->nested)
		return -ENOMEM;
	if (row->host && front->call_samples)
		return judge_far(front, upstream, row);
	if (row->host)
		snprintf(reason, sizeof(reason),
			 "the two hosts have no common clock (--calls on the front's host needs "
			 "none)");
	else
		write_reason(front, upstream, row, sizeof(reason), reason);
	return judge(front, upstream, NULL, reason, sizeof(reason), row->nested);
}

/* Return whether there is something to lay into the front's requests. */
static bool has_calls(const struct run_service *front, const struct run_service *upstream,
		      const struct run_upstream *row)
{
	if (!upstream || !front->samples->count)
		return false;
	return (row->host && front->call_samples) ||
	       (upstream->samples && upstream->samples->count);
}

int join_nest(struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *front = &run->services[i];

		for (size_t k = 0; front->samples && k < front->upstream_count && !err; k++) {
			struct run_upstream *row = &front->upstreams[k];
			const struct run_service *upstream = run_upstream_service(run, front, row);

			if (has_calls(front, upstream, row))
				err = judge_row(front, upstream, row);
		}
	}
	return err;
}
