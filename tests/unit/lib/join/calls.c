// SPDX-License-Identifier: MIT
/*
 * lib/join/calls.c and nest.c: the calls of a front are paired with the exchanges of an upstream on another host. They divide
 * the service of the front's requests, whatever the two clocks are.
 *
 * Seen to fail:
 * - the upstream's time includes what it waits for the rest of the request (a_request_divides)
 * - a call without an exchange counts as own time (a_call_without_exchange)
 * - calls to other places are not left out (calls_of_other_places)
 * - some pairs are kept although most contradict each other (numbers_that_differ)
 * - numbers that may differ are believed (numbers_that_differ_evenly)
 */
#include "unit.h"

#include <string.h>

#include "sojourn/array.h"
#include "sojourn/join.h"
#include "support/runs.h"

#define FRONT	 (&run->services[0])
#define UPSTREAM (&run->services[1])
#define ROW	 (&FRONT->upstreams[0])

/* The upstream's clock is so much behind the front's. */
#define BEHIND_NS 500000000

static const struct flow flow = {.client = {0, 0, 0xffff0000, 1},
				 .server = {0, 0, 0xffff0000, 2},
				 .client_port = 40000,
				 .server_port = 9000};

static void clear(struct run_service *service, const char *host)
{
	free(service->host);
	service->host = strdup(host);
	run_samples_free(service->samples);
	service->samples = run_samples_new();
	service->exchanges = 0;
	service->open = (struct run_open){0};
	memset(service->losses, 0, sizeof(service->losses));
	assert_non_null(service->host);
	assert_non_null(service->samples);
}

/* Return a run with a front that has called 2.0.0.0:9000 of another host. */
static struct run *run_of_two(void)
{
	struct run *run = support_observer_run();
	struct run_call *called;
	struct run_timed_call *timed;

	support_add_service(run, 9000, 1);
	clear(FRONT, "front");
	clear(UPSTREAM, "behind");
	strcpy(UPSTREAM->address, "2.0.0.0");
	UPSTREAM->older_connections = (struct run_number){true, 0};
	called = ARRAY_APPEND(FRONT->called, FRONT->called_count);
	timed = ARRAY_APPEND(FRONT->timed_calls, FRONT->timed_call_count);
	assert_true(called && timed);
	strcpy(called->towards, "2.0.0.0:9000");
	strcpy(timed->towards, called->towards);
	FRONT->call_samples = run_samples_new();
	assert_non_null(FRONT->call_samples);
	return run;
}

static struct run_sample *add(struct run_samples *samples, const struct flow *of, uint32_t index)
{
	struct run_sample *sample = run_add_sample(samples);

	assert_non_null(sample);
	sample->flow = *of;
	sample->index = index;
	return sample;
}

static void add_call(struct run *run, const struct flow *of, uint32_t index, uint64_t at,
		     uint64_t length)
{
	struct run_sample *sample = add(FRONT->call_samples, of, index);

	sample->known = RUN_SAMPLE_START | RUN_SAMPLE_ROUND_TRIP;
	sample->start_ns = at;
	sample->round_trip_ns = length;
	FRONT->timed_calls[0].calls += of == &flow;
}

static void add_exchange(struct run_service *service, uint32_t index, uint64_t at, uint64_t queue,
			 uint64_t receive, uint64_t serve)
{
	struct run_sample *sample = add(service->samples, &flow, index);

	sample->known = RUN_SAMPLE_ARRIVAL | (RUN_SAMPLE_STAGE(STAGE_SERVICE + 1) - 1);
	sample->arrival_ns = at;
	sample->stage_ns[STAGE_SOCKET_QUEUE] = queue;
	sample->stage_ns[STAGE_RECEIVE] = receive;
	sample->stage_ns[STAGE_SERVICE] = serve;
	service->exchanges++;
}

/* Add a request of the front at @at: 1000 of own time, then a call that takes 10000 there, and @between in all. */
static void add_whole(struct run *run, uint32_t index, uint64_t at, uint64_t between)
{
	add_exchange(FRONT, index, at, 10, 0, 11000 + between);
	add_call(run, &flow, index, at + 510, 10000 + between);
	add_exchange(UPSTREAM, index, at + 510 + between / 2 - BEHIND_NS, 2000, between / 4, 8000);
}

static void assert_joins(struct run *run)
{
	assert_int_equal(join_run(run, 0), 0);
	assert_int_equal(FRONT->upstream_count, 1);
	assert_non_null(ROW->pairs);
	assert_non_null(ROW->nested);
}

static void a_request_divides(void **state)
{
	autorun struct run *run = run_of_two();

	for (uint32_t i = 0; i < 200; i++)
		add_whole(run, i, 1000000000 + 1000000 * i + 7000 * (i * i % 31),
			  i == 7 ? 40000 : 400);
	assert_joins(run);
	assert_null(ROW->pairs->reason);
	assert_null(ROW->nested->reason);
	assert_int_equal(ROW->pairs->paired, 200);
	assert_int_equal(ROW->pairs->there.sum, 200 * 10000);
	assert_int_equal(ROW->pairs->between.sum, 199 * 400 + 40000);
	assert_int_equal(ROW->nested->paired, 200);
	assert_int_equal(ROW->nested->divided->own.sum, 200 * 1000);
	assert_int_equal(ROW->nested->divided->there.sum, 200 * 10000);
	assert_int_equal(ROW->nested->divided->between.sum, 199 * 400 + 40000);
	assert_int_equal(ROW->nested->divided->slowest, ROW->nested->slowest.count);
	assert_int_equal(ROW->nested->divided->slowest_between_ns,
			 40000 + 400 * (ROW->nested->slowest.count - 1));
}

/* The wait is known by the front's host alone; the parts of it are not. */
static void a_call_without_exchange(void **state)
{
	autorun struct run *run = run_of_two();

	for (uint32_t i = 0; i < 4; i++)
		add_whole(run, i, 1000000000 + 1000000 * i, 400);
	UPSTREAM->samples->count--;
	UPSTREAM->samples->lost = 1;
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 3);
	assert_int_equal(ROW->pairs->unmatched, 1);
	assert_non_null(strstr(ROW->pairs->reason,
			       "of 1 calls its host has no sample; the observer lost 1 samples"));
	assert_int_equal(ROW->nested->paired, 4);
	assert_int_equal(ROW->nested->upstream.sum, 4 * 10400);
	assert_int_equal(ROW->nested->divided->own.count, 3);
}

static void calls_of_other_places(void **state)
{
	autorun struct run *run = run_of_two();
	struct flow other = flow;

	other.server[3] = 3;
	add_whole(run, 0, 1000000000, 400);
	add_call(run, &other, 0, 1000000020, 100);
	assert_joins(run);
	assert_int_equal(ROW->pairs->calls, 1);
	assert_int_equal(ROW->nested->upstream.sum, 10400);
}

static void translated_ports(void **state)
{
	autorun struct run *run = run_of_two();

	add_whole(run, 0, 1000000000, 400);
	UPSTREAM->samples->samples[0].flow.client_port++;
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 0);
	assert_int_equal(ROW->pairs->unknown_flow, 1);
	assert_non_null(strstr(ROW->pairs->reason, "translated in between"));
	assert_int_equal(ROW->nested->paired, 1);
	assert_int_equal(ROW->nested->divided->own.count, 0);
}

/*
 * An exchange that the front does not count, at the beginning, makes all numbers differ. As most calls come at equal
 * distances, most pairs agree.
 */
static void numbers_that_differ(void **state)
{
	autorun struct run *run = run_of_two();

	for (uint32_t i = 0; i < 100; i++)
		add_whole(run, i, 1000000000 + 1000000 * i + (i % 5 == 4 ? 100000 : 0), 400);
	for (size_t i = 0; i < 100; i++)
		UPSTREAM->samples->samples[i].index++;
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 0);
	assert_int_equal(ROW->pairs->implausible + ROW->pairs->unmatched, 100);
	assert_non_null(strstr(ROW->pairs->reason, "count them in different ways"));
	assert_int_equal(ROW->nested->divided->own.count, 0);
}

/*
 * The upstream's observer counts a command more on each connection. Calls come at equal distances, and one is slow: its time
 * there would be that of the one before.
 */
static void numbers_that_differ_evenly(void **state)
{
	autorun struct run *run = run_of_two();

	for (uint32_t i = 0; i < 200; i++)
		add_whole(run, i, 1000000000 + 20000 * i, 400);
	UPSTREAM->samples->samples[100].stage_ns[STAGE_SERVICE] += 5000;
	FRONT->call_samples->samples[100].round_trip_ns += 5000;
	for (size_t i = 0; i < 200; i++)
		UPSTREAM->samples->samples[i].index++;
	UPSTREAM->losses[RUN_LOSS_ONEWAY] = 1;
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 0);
	assert_int_equal(ROW->pairs->unmatched, 1);
	assert_int_equal(ROW->pairs->implausible, 199);
	assert_non_null(strstr(ROW->pairs->reason, "may count calls in different ways"));
	for (size_t i = 0; i < 200; i++)
		UPSTREAM->samples->samples[i].index--;
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 200);
	FRONT->call_samples->threshold = RUN_SAMPLE_ALL - 1;
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 0);
}

/* A write's time may be taken when its bytes have arrived. */
static void longer_there_than_here(void **state)
{
	autorun struct run *run = run_of_two();

	add_whole(run, 0, 1000000000, 400);
	UPSTREAM->samples->samples[0].stage_ns[STAGE_SOCKET_QUEUE] += 401;
	assert_joins(run);
	assert_int_equal(ROW->pairs->early, 1);
	assert_int_equal(ROW->pairs->between.sum, 0);
	assert_int_equal(ROW->nested->divided->there.sum, 10400);
}

static void overlapping_calls_are_not_divided(void **state)
{
	autorun struct run *run = run_of_two();

	add_whole(run, 0, 1000000000, 400);
	add_call(run, &flow, 1, 1000000600, 500);
	add_exchange(UPSTREAM, 1, 1000000700 - BEHIND_NS, 0, 0, 300);
	assert_joins(run);
	assert_int_equal(ROW->pairs->paired, 2);
	assert_int_equal(ROW->nested->paired, 1);
	assert_int_equal(ROW->nested->divided->own.count, 0);
}

static void what_makes_it_unknown(void **state)
{
	autorun struct run *run = run_of_two();
	struct run_timed_call *call = FRONT->timed_calls;

	add_whole(run, 0, 1000000000, 400);
	call->handshakes = 2;
	call->older = 3;
	assert_joins(run);
	assert_non_null(strstr(ROW->nested->reason, "2 of 3 calls are not sampled"));
	assert_null(ROW->nested->divided);
	assert_int_equal(ROW->pairs->paired, 1);
	call->handshakes = 0;
	call->failed = 1;
	assert_joins(run);
	assert_string_equal(ROW->nested->reason, "1 calls got no answer");
	call->failed = 0;
	call->uncut[RUN_UNCUT_HTTP2] = 4;
	assert_joins(run);
	assert_string_equal(ROW->nested->reason, "4 connections to it are not cut into calls");
	call->uncut[RUN_UNCUT_HTTP2] = 0;
	FRONT->exchanges = 2;
	assert_joins(run);
	assert_string_equal(ROW->nested->reason, "1 requests are not sampled, and all are needed");
	FRONT->exchanges = 1;
	FRONT->call_samples->threshold = RUN_SAMPLE_ALL / 4;
	assert_joins(run);
	assert_string_equal(ROW->nested->reason,
			    "one of 4 exchanges is sampled, and all are needed");
	FRONT->call_samples->threshold = RUN_SAMPLE_ALL;
	run_samples_free(TAKE_PTR(UPSTREAM->samples));
	assert_joins(run);
	assert_string_equal(ROW->pairs->reason, "the upstream's observer took no samples");
	assert_null(ROW->nested->reason);
	run_samples_free(TAKE_PTR(FRONT->call_samples));
	UPSTREAM->samples = run_samples_new();
	assert_non_null(UPSTREAM->samples);
	add_exchange(UPSTREAM, 0, 5, 0, 0, 5);
	assert_int_equal(join_run(run, 0), 0);
	assert_null(ROW->pairs);
	assert_non_null(strstr(ROW->nested->reason, "no common clock"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_divides),
		cmocka_unit_test(a_call_without_exchange),
		cmocka_unit_test(calls_of_other_places),
		cmocka_unit_test(translated_ports),
		cmocka_unit_test(numbers_that_differ),
		cmocka_unit_test(numbers_that_differ_evenly),
		cmocka_unit_test(longer_there_than_here),
		cmocka_unit_test(overlapping_calls_are_not_divided),
		cmocka_unit_test(what_makes_it_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
