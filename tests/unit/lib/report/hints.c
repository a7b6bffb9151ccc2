// SPDX-License-Identifier: MIT
/* Hints are given where figures are ambiguous, and claim no more than follows from them. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"
#include "support/report.h"
#include "support/runs.h"

static struct run *run_of_accept(const char *source)
{
	struct run *run = support_observer_run();
	struct run_service *service = &run->services[0];
	struct run_stage *accept = &service->stages[STAGE_ACCEPT_QUEUE];

	free(accept->source);
	free(accept->reason);
	*accept = (struct run_stage){.measured = true, .source = strdup(source)};
	service->accept_queue.listeners = (struct run_number){true, 1};
	return run;
}

static struct report_hint only_hint(const struct run *run)
{
	struct report_hint hints[REPORT_HINTS];

	assert_int_equal(report_hints(run, &run->services[0], hints), 1);
	return hints[0];
}

/* An exactly timed accept needs no hint, however long; nor does a short one. */
static void only_what_is_inferred_and_long(void **state)
{
	static const struct {
		const char *source;
		uint64_t wait_ns;
		size_t hints;
	} cases[] = {
		{"syscall", NSEC_PER_SEC, 0},
		{"accept", NSEC_PER_SEC, 0},
		{"inferred", NSEC_PER_MSEC, 0},
		{"inferred", NSEC_PER_SEC, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = run_of_accept(cases[i].source);
		struct run_service *service = &run->services[0];
		struct report_hint hints[REPORT_HINTS];

		histogram_record(&service->stages[STAGE_ACCEPT_QUEUE].histogram, cases[i].wait_ns);
		assert_int_equal(report_hints(run, service, hints), cases[i].hints);
	}
}

/*
 * 60 waits of 1 s in 2 s, or 3 s with the longest before: 20 at a time. A queue of 3 held at most
 * 15 % of that, two queues of 3 twice as much; a queue of 30 may have held all.
 */
static void the_queue_bounds_the_wait(void **state)
{
	autorun struct run *run = run_of_accept("inferred");
	struct run_accept_queue *queue = &run->services[0].accept_queue;
	struct histogram *waits = &run->services[0].stages[STAGE_ACCEPT_QUEUE].histogram;
	struct report_hint hint;

	run->duration_ns = 2 * NSEC_PER_SEC;
	for (unsigned int i = 0; i < 60; i++)
		histogram_record(waits, NSEC_PER_SEC);
	queue->depth_max = (struct run_number){true, 3};
	hint = only_hint(run);
	assert_non_null(strstr(hint.text, "At least 85 % of it came after accept()"));
	assert_non_null(strstr(hint.text, "held more than 3."));
	queue->listeners.value = 2;
	hint = only_hint(run);
	assert_non_null(strstr(hint.text, "At least 70 % of it"));
	queue->depth_max.value = 30;
	hint = only_hint(run);
	assert_null(strstr(hint.text, "At least"));
	/* The number of queues is unknown. */
	queue->depth_max.value = 3;
	queue->listeners.known = false;
	hint = only_hint(run);
	assert_null(strstr(hint.text, "At least"));
	assert_non_null(strstr(hint.text, "--accept-source syscall"));
}

static size_t hints_of(const struct run *run, struct report_hint ret_hints[static REPORT_HINTS])
{
	return report_hints(run, report_driven_service(run), ret_hints);
}

/* Return a run whose round trips mostly take @ns, far above TCP's best of 0.12 ms. */
static struct run *far_run(uint64_t ns)
{
	autorun struct run *observed = support_observer_run();
	struct run *run = support_driver_run();

	assert_int_equal(run_merge(run, observed, NULL), 0);
	for (unsigned int i = 0; i < 1000; i++)
		histogram_record(&run->driver->round_trip, ns);
	run->services[0].min_rtt_ns = (struct run_number){true, 120000};
	return run;
}

/* The hint names no cause, but the option that looks for one. */
static void far_above_the_path(void **state)
{
	autorun struct run *run = far_run(100 * NSEC_PER_MSEC);
	struct run_service *service = &run->services[0];
	struct report_hint hints[REPORT_HINTS];

	assert_int_equal(hints_of(run, hints), 1);
	assert_non_null(strstr(hints[0].text, "--transmit all shows"));
	/* A path of 30 ms explains the network's time. */
	service->min_rtt_ns.value = 30 * NSEC_PER_MSEC;
	assert_int_equal(hints_of(run, hints), 0);
	/* One in a hundred is the rule, and the cause. */
	service->min_rtt_ns.value = 120000;
	service->nagle_held = service->exchanges / 100;
	assert_int_equal(hints_of(run, hints), 1);
	assert_non_null(strstr(hints[0].text, "Nagle"));
	service->nagle_held--;
	assert_int_equal(hints_of(run, hints), 0);
}

/* Half as many late writes as exchanges are more than farewells. They explain the network's time. */
static void pauses_within_responses(void **state)
{
	autorun struct run *run = far_run(NSEC_PER_SEC);
	struct run_service *service = &run->services[0];
	struct report_hint hints[REPORT_HINTS];

	service->losses[RUN_LOSS_TRAILING] = service->exchanges / 2;
	assert_int_equal(hints_of(run, hints), 1);
	assert_non_null(strstr(hints[0].text, "--quiet-time with a longer one"));
	service->losses[RUN_LOSS_TRAILING] = 1;
	assert_int_equal(hints_of(run, hints), 1);
	assert_non_null(strstr(hints[0].text, "--transmit all shows"));
}

/* From one in a hundred on, the report says that what is counted is fewer than the requests. */
static void requests_in_flight(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_service *service = &run->services[0];
	struct report_hint hints[REPORT_HINTS];

	service->losses[RUN_LOSS_OVERLAPPED] = service->exchanges / 100;
	assert_non_null(strstr(only_hint(run).text, "a lower bound of the requests"));
	service->losses[RUN_LOSS_OVERLAPPED]--;
	assert_int_equal(report_hints(run, service, hints), 0);
}

/* A service with clients of MPTCP alone seems to be idle. */
static void requests_in_mptcp(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_service *service = &run->services[0];

	service->losses[RUN_LOSS_MPTCP] = 4;
	assert_non_null(strstr(only_hint(run).text, "4 connections are of MPTCP"));
}

static void set_service(struct run_service *service, unsigned int exchanges, uint64_t ns)
{
	struct histogram *histogram = &service->stages[STAGE_SERVICE].histogram;

	for (enum stage i = 0; i < STAGE_RESIDENCE_END; i++)
		service->stages[i].histogram = (struct histogram){};
	memset(service->losses, 0, sizeof(service->losses));
	service->accept_delay_ns = 0;
	service->exchanges = exchanges;
	for (unsigned int i = 0; i < exchanges; i++)
		histogram_record(histogram, ns);
}

/* Return a run whose service at 8080 calls that at 9000: @calls of @call_ns for 100 requests of 10 ms. */
static struct run *run_of_calls(unsigned int calls, uint64_t call_ns)
{
	struct run *run = support_observer_run();
	struct run_upstream *row;

	support_add_service(run, 9000, 1);
	run->services[1].netns = run->services[0].netns;
	set_service(&run->services[0], 100, 10 * NSEC_PER_MSEC);
	set_service(&run->services[1], calls, call_ns);
	row = ARRAY_APPEND(run->services[0].upstreams, run->services[0].upstream_count);
	assert_non_null(row);
	*row = (struct run_upstream){.port = 9000, .connections = 99};
	return run;
}

static void assert_said(const struct run *run, const char *said)
{
	struct report_hint hint = only_hint(run);

	if (!strstr(hint.text, said))
		fail_msg("%s: not in: %s", said, hint.text);
}

/* A share is given only where it follows from the figures, and else the reason why not. */
static void waits_for_upstreams(void **state)
{
	autorun struct run *exact = run_of_calls(100, 8 * NSEC_PER_MSEC);
	autorun struct run *several = run_of_calls(200, 4 * NSEC_PER_MSEC);
	autorun struct run *parallel = run_of_calls(400, 8 * NSEC_PER_MSEC);
	struct run_upstream *row = exact->services[0].upstreams;

	assert_said(exact,
		    "(port 9000) for 80 % of its service: 1.00 calls of 8.00 ms per request. "
		    "2.00 ms are its own and the network's");
	assert_said(several, "(port 9000) for at most 80 % of its service: 2.00 calls of 4.00 ms");
	assert_said(parallel, "not known: the calls take longer than the whole service");
	row->nested = calloc(1, sizeof(*row->nested));
	assert_non_null(row->nested);
	row->nested->slowest = (struct run_nested_sum){50 * NSEC_PER_MSEC, 12, NSEC_PER_SEC,
						       830 * NSEC_PER_MSEC, 870 * NSEC_PER_MSEC};
	assert_said(exact, "network's. Of its slowest 1 % (12 from 50.0 ms on) 83 % to 87 % was "
			   "the wait for ");
	row->nested->slowest.least_ns = row->nested->slowest.most_ns;
	assert_said(exact, "(12 from 50.0 ms on) 87 % was the wait for ");
	row->nested->reason = strdup("the two hosts have no common clock");
	assert_said(exact, "is not known: the two hosts have no common clock");
	exact->services[0].calls = strdup("10.0.0.2:9000");
	assert_said(exact, "2.00 ms are its own, the network's, or of calls that are not observed");
	free(TAKE_PTR(exact->services[0].calls));
	row->others = 1;
	assert_said(exact, "for 80 % of its service");
	row->others = 2;
	assert_said(exact, "not known: 2 of 101 connections to it are of others");
	row->others = 0;
	row->serves_too = (struct run_number){true, 443};
	assert_said(exact, "not known: the calls may be for port 443");
	row->serves_too.known = false;
	exact->services[1].losses[RUN_LOSS_UNANSWERED] = 3;
	exact->services[1].open.read = (struct run_number){true, 5};
	exact->services[0].open.read = (struct run_number){true, 7};
	assert_said(exact, "for 80 % of its service");
	exact->services[0].open.read.value = 0;
	assert_said(exact, "not known: 8 of 108 calls got no answer");
	exact->services[1].losses[RUN_LOSS_UNANSWERED] = exact->services[1].open.read.value = 0;
	exact->services[0].losses[RUN_LOSS_TLS_UNKNOWN] = 1;
	assert_said(exact, "not known: not all exchanges of both are timed");
	exact->services[0].losses[RUN_LOSS_TLS_UNKNOWN] = 0;
	exact->services[1].exchanges += 2;
	assert_said(exact, "not known: not all exchanges of both are timed");
	/* An upstream that is called in a way that hides all its requests is one nevertheless. */
	set_service(&exact->services[1], 0, 0);
	exact->services[1].losses[RUN_LOSS_MPTCP] = 1;
	assert_said(exact, "not known: not all exchanges of both are timed");
	set_service(&exact->services[1], 102, 8 * NSEC_PER_MSEC);
	exact->services[0].calls = strdup("unix:/run/app.sock");
	assert_said(exact, "connections to unix:/run/app.sock. These are not observed");
}

/* The upstream's host has a document of its own, of the same seconds. */
static void waits_for_upstreams_on_other_hosts(void **state)
{
	autorun struct run *run = run_of_calls(100, 8 * NSEC_PER_MSEC);
	struct run_service *front = &run->services[0], *far = &run->services[1];
	struct run_upstream *row = front->upstreams;

	front->host = strdup("a");
	far->host = strdup("b");
	far->netns = 77;
	row->host = strdup("b");
	row->netns = 77;
	front->first_message_ns = 5 * NSEC_PER_SEC;
	front->last_message_ns = 7 * NSEC_PER_SEC;
	far->first_message_ns = 90 * NSEC_PER_SEC;
	far->last_message_ns = 92 * NSEC_PER_SEC - NSEC_PER_MSEC;
	far->min_rtt_ns = (struct run_number){true, 85 * NSEC_PER_USEC};
	assert_said(run, " on b (port 9000) for 80 % of its service: 1.00 calls of 8.00 ms per "
			 "request. 2.00 ms are its own and the network's; a round trip of TCP's to "
			 "b takes 85.0 µs at least");
	far->last_message_ns += NSEC_PER_SEC;
	assert_said(run, "not known: the documents of the two hosts are not of one period");
	far->last_message_ns -= NSEC_PER_SEC;
	front->first_message_ns = 0;
	assert_said(run, "not known: the documents of the two hosts are not of one period");
	front->first_message_ns = 5 * NSEC_PER_SEC;
	row->reason = strdup("several hosts have its address");
	assert_said(run, "not known: several hosts have its address");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_inferred_and_long),
		cmocka_unit_test(the_queue_bounds_the_wait),
		cmocka_unit_test(far_above_the_path),
		cmocka_unit_test(pauses_within_responses),
		cmocka_unit_test(requests_in_flight),
		cmocka_unit_test(requests_in_mptcp),
		cmocka_unit_test(waits_for_upstreams),
		cmocka_unit_test(waits_for_upstreams_on_other_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
