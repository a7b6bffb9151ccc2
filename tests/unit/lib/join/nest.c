// SPDX-License-Identifier: MIT
/*
 * lib/join/nest.c: a call is of the one request that it lies in, and of none if it may be of several.
 *
 * Seen to fail:
 * - a call is always of the request that ends last (a_call_in_two_requests)
 * - calls count before the service, too (only_the_service_counts)
 * - overlapping calls are both added (parallel_calls_count_once)
 * - calls outside are of the request before (calls_in_no_request)
 */
#include "unit.h"

#include <string.h>

#include "sojourn/array.h"
#include "sojourn/join.h"
#include "support/runs.h"

#define FRONT	 (&run->services[0])
#define UPSTREAM (&run->services[1])

/* Return a run with a front at 8080 that calls 9000. Neither has an exchange. */
static struct run *run_of_two(void)
{
	struct run *run = support_observer_run();
	struct run_upstream *row;

	support_add_service(run, 9000, 1);
	UPSTREAM->netns = FRONT->netns;
	row = ARRAY_APPEND(FRONT->upstreams, FRONT->upstream_count);
	assert_non_null(row);
	row->port = 9000;
	for (size_t i = 0; i < 2; i++) {
		struct run_service *service = &run->services[i];

		run_samples_free(service->samples);
		service->samples = run_samples_new();
		service->exchanges = 0;
		service->open = (struct run_open){0};
		memset(service->losses, 0, sizeof(service->losses));
	}
	return run;
}

/* Add an exchange that arrives at @at and is read after @read: then it is received for @receive, and served. */
static void add(struct run_service *service, uint64_t at, uint64_t read, uint64_t receive,
		uint64_t serve)
{
	struct run_sample *sample = run_add_sample(service->samples);

	assert_non_null(sample);
	sample->known = RUN_SAMPLE_ARRIVAL | (RUN_SAMPLE_STAGE(STAGE_SERVICE + 1) - 1);
	sample->arrival_ns = at;
	sample->stage_ns[STAGE_SOCKET_QUEUE] = read;
	sample->stage_ns[STAGE_RECEIVE] = receive;
	sample->stage_ns[STAGE_SERVICE] = serve;
	service->exchanges++;
}

static const struct run_nested *nested(struct run *run)
{
	assert_int_equal(join_run(run, 0), 0);
	assert_non_null(FRONT->upstreams[0].nested);
	return FRONT->upstreams[0].nested;
}

static void assert_sum(const struct run_nested_sum *sum, uint64_t count, uint64_t service_ns,
		       uint64_t least_ns, uint64_t most_ns)
{
	assert_int_equal(sum->count, count);
	assert_int_equal(sum->service_ns, service_ns);
	assert_int_equal(sum->least_ns, least_ns);
	assert_int_equal(sum->most_ns, most_ns);
}

/* The slow one of 200 requests waits for its call, another one has none. */
static void each_call_in_its_request(void **state)
{
	autorun struct run *run = run_of_two();
	const struct run_nested *result;

	for (unsigned int i = 0; i < 200; i++) {
		add(FRONT, 100000 * i + 1, 10, 0, i == 7 || i == 8 ? 90000 : 1000);
		if (i != 9)
			add(UPSTREAM, 100000 * i + 50, 0, 0, i == 7 ? 80000 : 500);
	}
	result = nested(run);
	assert_null(result->reason);
	assert_int_equal(result->paired, 199);
	assert_int_equal(result->ambiguous + result->outside, 0);
	assert_int_equal(result->alone, 1);
	assert_int_equal(result->upstream.count, 199);
	assert_int_equal(result->upstream.sum, 198 * 500 + 80000);
	assert_int_equal(result->rest.sum, 2 * 90000 + 197 * 1000 - 198 * 500 - 80000);
	assert_sum(&result->all, 200, 2 * 90000 + 198 * 1000, 198 * 500 + 80000, 198 * 500 + 80000);
	assert_int_equal(result->slowest.from_ns, 90000);
	assert_sum(&result->slowest, 2, 2 * 90000, 80500, 80500);
}

/* A long request has its own call, and that of a short one within it. */
static void a_call_in_two_requests(void **state)
{
	autorun struct run *run = run_of_two();
	const struct run_nested *result;

	add(FRONT, 1000, 0, 0, 100000);
	add(UPSTREAM, 1100, 0, 0, 20000);
	add(FRONT, 50000, 0, 0, 10000);
	add(UPSTREAM, 51000, 0, 0, 5000);
	result = nested(run);
	assert_int_equal(result->paired, 0);
	assert_int_equal(result->ambiguous, 2);
	assert_int_equal(result->upstream.count, 0);
	assert_sum(&result->all, 2, 110000, 20000, 30000);
	assert_sum(&result->slowest, 1, 100000, 20000, 25000);
}

/* The other's call lies within the long one's own: the wait is the same, whosever it is. */
static void a_call_within_another(void **state)
{
	autorun struct run *run = run_of_two();

	add(FRONT, 1000, 0, 0, 100000);
	add(UPSTREAM, 1100, 0, 0, 99000);
	add(FRONT, 50000, 0, 0, 10000);
	add(UPSTREAM, 51000, 0, 0, 5000);
	assert_int_equal(nested(run)->paired, 1);
	assert_sum(&FRONT->upstreams[0].nested->slowest, 1, 100000, 99000, 99000);
}

static void parallel_calls_count_once(void **state)
{
	autorun struct run *run = run_of_two();

	add(FRONT, 1000, 0, 0, 100000);
	add(UPSTREAM, 2000, 0, 0, 30000);
	add(UPSTREAM, 12000, 5000, 0, 25000);
	add(UPSTREAM, 15000, 0, 0, 1000);
	assert_int_equal(nested(run)->paired, 1);
	assert_sum(&FRONT->upstreams[0].nested->all, 1, 100000, 40000, 40000);
}

/* A front may call while the request still arrives. */
static void only_the_service_counts(void **state)
{
	autorun struct run *run = run_of_two();

	add(FRONT, 1000, 0, 10000, 50000);
	add(UPSTREAM, 5000, 1000, 0, 20000);
	assert_sum(&nested(run)->all, 1, 50000, 15000, 15000);
}

static void calls_in_no_request(void **state)
{
	autorun struct run *run = run_of_two();
	const struct run_nested *result;

	for (unsigned int i = 0; i < 100; i++) {
		add(FRONT, 10000 * i + 1000, 100, 0, 2000);
		add(UPSTREAM, 10000 * i + 1500, 0, 0, 1000);
	}
	UPSTREAM->samples->samples[50].arrival_ns = 500001;
	result = nested(run);
	assert_null(result->reason);
	assert_int_equal(result->outside, 1);
	assert_int_equal(result->alone, 1);
	UPSTREAM->samples->samples[60].arrival_ns = 603000;
	result = nested(run);
	assert_string_equal(result->reason, "2 of 100 calls lie in no request");
	assert_int_equal(result->paired + result->all.count + result->upstream.count, 0);
}

/* It may have waited until it gave up, as it may be the call of a request that is not there. */
static void a_call_that_is_given_up(void **state)
{
	autorun struct run *run = run_of_two();

	for (unsigned int i = 0; i < 200; i++) {
		add(FRONT, 100000 * i + 1, 10, 0, i == 7 ? 50000 : 1000 + i);
		add(UPSTREAM, 100000 * i + 50, 0, 0, i == 7 ? 80000 : 500);
	}
	assert_null(nested(run)->reason);
	assert_int_equal(FRONT->upstreams[0].nested->outside, 1);
	assert_int_equal(FRONT->upstreams[0].nested->ambiguous, 1);
	assert_sum(&FRONT->upstreams[0].nested->slowest, 2, 50000 + 1199, 500, 500 + 49961);
}

/* Without all exchanges of both, a call may be of a request that is not there. */
static void what_makes_it_unknown(void **state)
{
	autorun struct run *run = run_of_two();
	struct run_upstream *row = FRONT->upstreams;

	add(FRONT, 1000, 0, 0, 2000);
	add(UPSTREAM, 1500, 0, 0, 1000);
	assert_null(nested(run)->reason);
	UPSTREAM->exchanges = 2;
	assert_string_equal(nested(run)->reason, "1 exchanges are not sampled, and all are needed");
	UPSTREAM->exchanges = 1;
	FRONT->samples->threshold = RUN_SAMPLE_ALL / 8;
	assert_string_equal(nested(run)->reason,
			    "one of 8 exchanges is sampled, and all are needed");
	FRONT->samples->threshold = RUN_SAMPLE_ALL;
	UPSTREAM->losses[RUN_LOSS_UNANSWERED] = 1;
	assert_string_equal(nested(run)->reason, "1 calls got no answer");
	UPSTREAM->losses[RUN_LOSS_UNANSWERED] = 0;
	UPSTREAM->losses[RUN_LOSS_MULTIPLEXED] = 1;
	assert_string_equal(nested(run)->reason, "requests on 1 connections are not timed");
	UPSTREAM->losses[RUN_LOSS_MULTIPLEXED] = 0;
	FRONT->losses[RUN_LOSS_MPTCP] = 2;
	assert_string_equal(nested(run)->reason, "requests on 2 connections are not timed");
	FRONT->losses[RUN_LOSS_MPTCP] = 0;
	row->others = 2;
	assert_string_equal(nested(run)->reason, "2 of the connections to it are of others");
	row->others = 0;
	row->serves_too = (struct run_number){true, 443};
	assert_non_null(strstr(nested(run)->reason, "may be for port 443"));
	row->serves_too.known = false;
	assert_null(nested(run)->reason);
	/* Without samples the result stays. */
	run_samples_free(TAKE_PTR(FRONT->samples));
	assert_int_equal(nested(run)->paired, 1);
}

/* Of very many calls within a request nothing is computed, and the bound is its whole service. */
static void very_many_calls(void **state)
{
	autorun struct run *run = run_of_two();

	add(FRONT, 1000, 0, 0, 1000000);
	add(FRONT, 1000, 0, 0, 1000000);
	for (unsigned int i = 0; i < 2000; i++)
		add(UPSTREAM, 1100 + 100 * i, 0, 0, 10);
	assert_sum(&nested(run)->all, 2, 2000000, 0, 2000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_in_its_request),
		cmocka_unit_test(a_call_in_two_requests),
		cmocka_unit_test(a_call_within_another),
		cmocka_unit_test(parallel_calls_count_once),
		cmocka_unit_test(only_the_service_counts),
		cmocka_unit_test(calls_in_no_request),
		cmocka_unit_test(a_call_that_is_given_up),
		cmocka_unit_test(what_makes_it_unknown),
		cmocka_unit_test(very_many_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
