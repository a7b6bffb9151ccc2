// SPDX-License-Identifier: MIT
/* lib/report: the first lines of a report: the verdict, or why there is none, and the failures. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/join.h"
#include "sojourn/report.h"
#include "support/report.h"
#include "support/runs.h"

static struct run *merged_run(void)
{
	autorun struct run *observer = support_observer_run();
	struct run *run = support_driver_run();

	assert_int_equal(run_merge(run, observer, NULL), 0);
	return run;
}

static void set_status(struct run_driver *driver, const char *name, uint64_t requests)
{
	struct run_row_list *rows = &driver->rows[RUN_ROWS_STATUS];

	if (!rows->list)
		rows->list = calloc(4, sizeof(*rows->list));
	assert_non_null(rows->list);
	rows->list[rows->count].name = strdup(name);
	rows->list[rows->count++].requests = requests;
}

/* A quick failure is no throughput. */
static void failure_is_the_headline(void **state)
{
	struct report_options options = {.width = 100};
	autorun struct run *run = merged_run();
	autofree char *text = NULL, *few = NULL;

	set_status(run->driver, "404", 1000);
	run->driver->errors[RUN_ERROR_STATUS] = 1000;
	text = support_render_as(run, &options);
	assert_ptr_equal(strstr(strchr(text, '\n'), "\n100 % failed: 404\n"), strchr(text, '\n'));
	assert_non_null(strstr(text, " 0 of 1,000 good\n"));
	assert_null(strstr(text, "1,000 requests"));
	/* With only a few failures the verdict comes first. */
	run->driver->rows[RUN_ROWS_STATUS].list[0].requests = 30;
	run->driver->errors[RUN_ERROR_STATUS] = 30;
	run->driver->errors[RUN_ERROR_REFUSED] = 5;
	few = support_render_as(run, &options);
	assert_non_null(strstr(few, "\n68 % of the mean round trip"));
	assert_non_null(strstr(few, "\n3.5 % failed: 404 (30), refused (5)\nerrors "));
	assert_non_null(strstr(few, " 970 of 1,005 good \u00b7 485/s good\n"));
}

static void redirects_are_named(void **state)
{
	struct report_options options = {.width = 100};
	autorun struct run *run = merged_run();
	autofree char *text = NULL;

	set_status(run->driver, "302", 999);
	set_status(run->driver, "304", 1);
	text = support_render_as(run, &options);
	assert_non_null(strstr(text, "\n99.9 % redirected, not followed: 302\n"));
}

static void broken_assertions_stand_behind_the_verdict(void **state)
{
	char *broken[] = {(char *)"broken: p99<5ms is 7.3 ms", NULL};
	struct report_options options = {.width = 100, .broken = broken};
	autorun struct run *run = merged_run();
	autofree char *text = support_render_as(run, &options);

	assert_non_null(strstr(text, " the client\nbroken: p99<5ms is 7.3 ms\n\ntcp "));
}

/*
 * 5 % more may be in flight; beyond that they are other requests, whose times are no part of the
 * driver's.
 */
static void different_sets_are_not_divided(void **state)
{
	static const struct {
		uint64_t exchanges, multiplexed;
		const char *said;
	} cases[] = {
		{1052, 0, NULL},
		{1053, 0, "the observer saw 1,053 exchanges at port 8080, the driver completed "},
		{948, 0, "the observer saw 948 exchanges at port 8080, the driver completed "},
		{1000, 4, "the service speaks HTTP/2, whose requests overlap"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report_options options = {.width = 300};
		autorun struct run *run = merged_run();
		autofree char *text = NULL;

		run->services[0].exchanges = cases[i].exchanges;
		run->services[0].losses[RUN_LOSS_MULTIPLEXED] = cases[i].multiplexed;
		text = support_render_as(run, &options);
		assert_int_equal(strstr(text, "\u251c service") != NULL, !cases[i].said);
		assert_int_equal(strstr(text, "\nnot known where the time goes: ") != NULL,
				 cases[i].said != NULL);
		if (cases[i].said)
			assert_non_null(
				strstr(strstr(text, "\u2514 not divided: "), cases[i].said));
	}
}

static void assert_says(const struct run *run, const char *said)
{
	struct report_options options = {.width = 300};
	autofree char *text = support_render_as(run, &options);

	if (!strstr(text, said))
		fail_msg("no \"%s\" in\n%s", said, text);
}

/* The report of a run's joined exchanges has these words. */
static void assert_joined_says(struct run *run, const char *said)
{
	assert_int_equal(join_run(run, 0), 0);
	assert_says(run, said);
}

/* Return a run whose sampled exchanges take no time in service: what is left is the network's. */
static struct run *unserved_run(void)
{
	struct run *run = support_sampled_run();
	struct run_samples *seen = run->services[0].samples;

	for (size_t k = 0; k < seen->count; k++)
		seen->samples[k].stage_ns[STAGE_SERVICE] = 0;
	return run;
}

/* Return a run whose sampled exchanges spend most of their time in this stage. */
static struct run *run_mostly_in(enum stage stage)
{
	struct run *run = unserved_run();
	struct run_samples *seen = run->services[0].samples;

	for (size_t k = 0; k < seen->count; k++)
		seen->samples[k].stage_ns[stage] =
			run->driver->samples->samples[k].round_trip_ns * 3 / 4;
	return run;
}

/* Each part that may hold most of the time has its sentence. */
static void the_verdict_names_who_can_help(void **state)
{
	static const struct {
		enum stage stage;
		const char *said;
	} cases[] = {
		{STAGE_ACCEPT_QUEUE, "waiting for accept(): nginx needs more workers"},
		{STAGE_SOCKET_QUEUE, "unread in the socket: nginx needs more workers, or fewer"},
		{STAGE_RECEIVE,
		 "the client or the network sends it slowly, or the server reads it"},
		{STAGE_SERVICE, "in service: nginx takes this long; --cpu shows"},
		{STAGE_RESPOND, "being written: it is long or streamed"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = run_mostly_in(cases[i].stage);

		assert_joined_says(run, cases[i].said);
	}
}

/* With --cpu the verdict is the thread's state, if one predominates. */
static void the_verdict_divides_service(void **state)
{
	static const struct {
		unsigned int running, runnable; /* percent; the rest is blocked */
		const char *said;
	} cases[] = {
		{70, 10, "in service, on a CPU: nginx computes for so long"},
		{10, 70,
		 "in service, waiting for a CPU: the host has too few CPUs for what runs on it, or "
		 "a "
		 "CPU quota holds the server back (nr_throttled in cpu.stat)"},
		{10, 10, "in service, blocked: nginx waits for a disk"},
		{35, 30, "in service: nginx takes this long: by turns it computes"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = support_sampled_run();
		struct run_samples *seen = run->services[0].samples;

		for (size_t k = 0; k < seen->count; k++) {
			struct run_sample *sample = &seen->samples[k];

			sample->known |= RUN_SAMPLE_RUNNING | RUN_SAMPLE_RUNNABLE;
			sample->running_ns =
				sample->stage_ns[STAGE_SERVICE] * cases[i].running / 100;
			sample->runnable_ns =
				sample->stage_ns[STAGE_SERVICE] * cases[i].runnable / 100;
		}
		assert_joined_says(run, cases[i].said);
	}
}

/* Means, without a driver: exchanges that --cpu did not divide leave the parts of all others true. */
static void the_verdict_divides_a_mean(void **state)
{
	static const struct {
		unsigned int undivided;		/* of ten */
		unsigned int running, runnable; /* percent; the rest is blocked */
		const char *said;
	} cases[] = {
		{0, 10, 80, "in service, waiting for a CPU: the host has too few"},
		{1, 10, 80, "in service, waiting for a CPU: the host has too few"},
		{1, 35, 30, "in service: nginx takes this long: by turns it computes"},
		{9, 10, 80, "in service: nginx takes this long; --cpu divides 1 of 10 requests"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = support_observer_run();
		struct run_service *service = &run->services[0];
		const uint64_t service_ns = 10 * NSEC_PER_MSEC;

		service->exchanges = 10;
		service->stages[STAGE_SERVICE].histogram = (struct histogram){0};
		for (unsigned int k = 0; k < RUN_CPU_COUNT; k++)
			service->cpu[k] = (struct run_stage){.measured = true};
		for (unsigned int k = 0; k < 10; k++) {
			histogram_record(&service->stages[STAGE_SERVICE].histogram, service_ns);
			if (k < cases[i].undivided)
				continue;
			histogram_record(&service->cpu[RUN_CPU_RUNNING].histogram,
					 service_ns / 100 * cases[i].running);
			histogram_record(&service->cpu[RUN_CPU_RUNNABLE].histogram,
					 service_ns / 100 * cases[i].runnable);
			histogram_record(&service->cpu[RUN_CPU_BLOCKED].histogram,
					 service_ns / 100 *
						 (100 - cases[i].running - cases[i].runnable));
		}
		assert_says(run, cases[i].said);
	}
}

/* Most of the time is in service. That is so also if --cpu divides it into parts that are less than what else is left. */
static void a_hidden_stage_is_judged_before_service_is_divided(void **state)
{
	for (int divided = 0; divided < 2; divided++) {
		autorun struct run *run = merged_run();
		struct run_service *service = &run->services[0];
		uint64_t mean_ns = (uint64_t)histogram_mean(&run->driver->round_trip);

		support_miss_stage(service, STAGE_ACCEPT_QUEUE, "not attached (EPERM)");
		service->stages[STAGE_SERVICE].histogram = (struct histogram){0};
		for (uint64_t k = 0; k < service->exchanges; k++)
			histogram_record(&service->stages[STAGE_SERVICE].histogram,
					 mean_ns / 10 * 6);
		for (enum stage i = STAGE_SOCKET_QUEUE; i < STAGE_RESIDENCE_END; i++)
			if (i != STAGE_SERVICE)
				service->stages[i].histogram = (struct histogram){0};
		if (divided)
			support_split(service, 0);
		assert_says(run, "\n60 % of the mean round trip (406 µs) passed in service\n");
	}
}

/* Nagle's algorithm explains slow requests only if at least as many responses waited because of it. */
static void nagle_is_named_where_it_explains(void **state)
{
	static const struct {
		uint64_t held, exchanges;
		const char *said;
	} cases[] = {
		{0, 1000, "in the network and the client: nginx is not what is slow"},
		{1, 1000, "in the network and the client: nginx is not what is slow"},
		{500, 1000, "held back the end of 500 of 1,000 responses until the client's ACK"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = unserved_run();

		run->services[0].exchanges = cases[i].exchanges;
		run->services[0].nagle_held = cases[i].held;
		assert_joined_says(run, cases[i].said);
	}
}

/* Writes after a pause may be the ends of responses: their time is not the network's then. */
static void late_writes_do_not_blame_the_network(void **state)
{
	static const struct {
		uint64_t late, quiet_ns;
		const char *said;
	} cases[] = {
		{0, 1, "in the network and the client: nginx is not what is slow"},
		{9, 1, "in the network and the client: nginx is not what is slow"},
		{1000, NSEC_PER_SEC, "in the network and the client: nginx is not what is slow"},
		{1000, 1000, "not known where the time goes: 1,000 writes came after a pause of "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = unserved_run();

		run->services[0].exchanges = 1000;
		run->services[0].losses[RUN_LOSS_TRAILING] = cases[i].late;
		run->services[0].quiet_ns = (struct run_number){true, cases[i].quiet_ns};
		assert_joined_says(run, cases[i].said);
	}
}

/* Time in service was seen: late writes do not hide it. */
static void late_writes_leave_the_rest_known(void **state)
{
	autorun struct run *run = run_mostly_in(STAGE_SERVICE);

	run->services[0].exchanges = 1000;
	run->services[0].losses[RUN_LOSS_TRAILING] = 1000;
	run->services[0].quiet_ns = (struct run_number){true, 1000};
	assert_joined_says(run, "in service: nginx takes this long; --cpu shows");
}

/* Requests that came one after the other and were read at once waited for one event, not for a free worker. */
static void a_pause_is_no_lack_of_workers(void **state)
{
	static const struct {
		uint64_t came_apart_ns, read_apart_ns, first_wait_ns;
		const char *said;
	} cases[] = {
		{3 * NSEC_PER_MSEC, 30000, NSEC_PER_SEC,
		 ": nginx read the 10 slowest within 270 µs, after up to "},
		{3 * NSEC_PER_MSEC, 3 * NSEC_PER_MSEC, NSEC_PER_SEC,
		 ": nginx needs more workers, or fewer"},
		{30000, 30000, NSEC_PER_SEC, ": nginx needs more workers, or fewer"},
		/* The last one waited 1.27 ms: not much longer than reading took. */
		{3 * NSEC_PER_MSEC, 30000, 28 * NSEC_PER_MSEC,
		 ": nginx needs more workers, or fewer"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = run_mostly_in(STAGE_SOCKET_QUEUE);

		assert_int_equal(join_run(run, 10), 0);
		assert_int_equal(run->joined->slowest_count, 10);
		for (size_t k = 0; k < 10; k++) {
			struct run_exchange *one = &run->joined->slowest[k];

			one->arrival_ns = NSEC_PER_SEC + k * cases[i].came_apart_ns;
			one->parts.stages[STAGE_ACCEPT_QUEUE].value = 0;
			one->parts.stages[STAGE_SOCKET_QUEUE].value =
				NSEC_PER_SEC + cases[i].first_wait_ns + k * cases[i].read_apart_ns -
				one->arrival_ns;
		}
		assert_says(run, cases[i].said);
	}
}

/* A full accept queue makes TCP send requests again: that is no network's fault. */
static void overflows_do_not_blame_the_network(void **state)
{
	static const struct {
		uint64_t overflows, exchanges;
		const char *said;
	} cases[] = {
		{0, 1000, "in the network and the client: nginx is not what is slow"},
		{1, 1000000, "in the network and the client: nginx is not what is slow"},
		{200, 1000,
		 "in the network and the client: the accept queue was full (overflows: 200), and "
		 "TCP "
		 "sends again only after a second or more; nginx needs more workers, or a larger "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = unserved_run();

		run->services[0].exchanges = cases[i].exchanges;
		run->services[0].accept_queue.overflows =
			(struct run_number){true, cases[i].overflows};
		assert_joined_says(run, cases[i].said);
	}
}

/* Some requests wait in the full queue, others until TCP sends again what it dropped: together they are the answer. */
static void a_full_accept_queue_is_one_cause(void **state)
{
	static const struct {
		uint64_t overflows, exchanges;
		const char *said;
	} cases[] = {
		{0, 1000, "no part holds half of the slow requests' time"},
		{200, 1000,
		 "in the accept queue or, dropped by it, until TCP sent again: the accept "
		 "queue was "
		 "full (overflows: 200), and TCP "},
		/* Enough for those that it dropped, not for those that waited in it. */
		{1, 20000,
		 "until TCP sent again: the accept queue was full (overflows: 1), and TCP "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = unserved_run();
		struct run_samples *seen = run->services[0].samples;

		for (size_t k = 0; k < seen->count; k++) {
			uint64_t whole_ns = run->driver->samples->samples[k].round_trip_ns;

			seen->samples[k].stage_ns[STAGE_ACCEPT_QUEUE] = whole_ns * 4 / 10;
			seen->samples[k].stage_ns[STAGE_SERVICE] = whole_ns * 2 / 10;
		}
		run->services[0].exchanges = cases[i].exchanges;
		run->services[0].accept_queue.overflows =
			(struct run_number){true, cases[i].overflows};
		assert_joined_says(run, cases[i].said);
	}
}

static void limit(struct run_driver *driver, const char *by)
{
	driver->limited = calloc(1, sizeof(*driver->limited));
	driver->limited->by = strdup(by);
	driver->limited->why = strdup("it was busy");
}

/* A late loop lengthens what is outside the server: half of the time inside it is a finding all the same. */
static void a_late_driver_leaves_the_servers_half_known(void **state)
{
	static const struct {
		const char *by;
		enum stage stage;
		const char *said;
	} cases[] = {
		{"schedule", STAGE_SERVICE, "in service: nginx takes this long"},
		{"schedule", STAGE_SOCKET_QUEUE, "unread in the socket: nginx needs more workers"},
		{"schedule", STAGE_RESPOND, "\nnot known where the time goes: the driver itself"},
		{"cpu", STAGE_SERVICE, "\nnot known where the time goes: the driver itself"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = run_mostly_in(cases[i].stage);

		limit(run->driver, cases[i].by);
		assert_joined_says(run, cases[i].said);
	}
}

/* Without joined exchanges: requests that were not sent in time are a part of the response time. */
static void a_mean_under_a_rate_contains_the_unsent(void **state)
{
	autorun struct run *run = merged_run();

	run->driver->rate = 500;
	run->driver->response_time = (struct histogram){0};
	for (int i = 0; i < 1000; i++)
		histogram_record(&run->driver->response_time, 500 * NSEC_PER_MSEC);
	assert_says(run, " % of the mean response time (500 ms) passed before they were sent, all "
			 "connections being busy: the server cannot");
}

/* Connecting is in no round trip. Where it takes longer, the round trip is not what clients wait for. */
static void handshakes_are_named_where_they_take_longest(void **state)
{
	static const struct {
		bool new_connections;
		uint64_t connect_ns, tls_ns;
		const char *said;
	} cases[] = {
		{true, 100 * NSEC_PER_MSEC, 1000,
		 " passed in TCP handshakes: the path is long, or packets are lost"},
		{true, 1000, 100 * NSEC_PER_MSEC,
		 " passed in TLS handshakes: clients should keep their connections, or resume "
		 "sessions; else nginx needs more CPU"},
		{true, 1000, 1000, "\n68 % of the mean round trip"},
		{false, 1000, 100 * NSEC_PER_MSEC, "\n68 % of the mean round trip"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = merged_run();

		run->driver->new_connections = cases[i].new_connections;
		histogram_record(&run->driver->connect, cases[i].connect_ns);
		histogram_record(&run->driver->tls, cases[i].tls_ns);
		assert_says(run, cases[i].said);
	}
}

/* A call that was timed, and is short, is not what the service waits for. */
static void a_short_call_is_not_blamed(void **state)
{
	static const struct {
		unsigned int calls, timed;
		const char *said;
	} cases[] = {
		{0, 0,
		 "in service: nginx takes this long, or waits for 10.0.0.1:5432 (not observed; "
		 "--calls "
		 "times it)"},
		{1, 0,
		 "in service: nginx takes this long, or waits for 10.0.0.1:5432 (not observed)"},
		{1, 1,
		 "in service: nginx takes this long; --cpu shows whether it computes or waits; its "
		 "calls to 10.0.0.1:5432 are 1.0 % of all its service"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = run_mostly_in(STAGE_SERVICE);
		struct run_service *service = &run->services[0];
		struct histogram *times = &service->stages[STAGE_SERVICE].histogram;
		struct run_timed_call *call = calloc(1, sizeof(*call));

		assert_non_null(call);
		service->calls = strdup("10.0.0.1:5432");
		service->timed_calls = call;
		service->timed_call_count = cases[i].calls;
		snprintf(call->towards, sizeof(call->towards), "10.0.0.1:5432");
		service->exchanges = times->count;
		call->calls = cases[i].timed ? times->count : 0;
		call->wait.count = call->calls;
		call->wait.sum = times->sum / 100;
		if (!cases[i].timed)
			call->handshakes = 1;
		assert_joined_says(run, cases[i].said);
	}
}

static void another_port_is_named(void **state)
{
	autorun struct run *run = merged_run();

	free(run->driver->target);
	run->driver->target = strdup("http://127.0.0.1:9999/");
	run->services[0].exchanges = 0;
	assert_says(run,
		    "\nnot known where the time goes: the driver asked port 9999, and the observer "
		    "watched others, such as 8080");
}

/* Answered requests were quick: that the server hangs comes first. */
static void a_hanging_server_comes_first(void **state)
{
	autorun struct run *run = merged_run();
	struct run_finding *finding = calloc(1, sizeof(*finding));

	assert_non_null(finding);
	free(run->findings);
	run->findings = finding;
	run->finding_count = 1;
	snprintf(finding->id, sizeof(finding->id), "requests-hang");
	snprintf(finding->severity, sizeof(finding->severity), "critical");
	snprintf(finding->object, sizeof(finding->object), "nginx (pid 7), port 8080");
	finding->port = run->services[0].port;
	finding->netns = run->services[0].netns;
	finding->used = (struct run_number){true, 24};
	run->services[0].open.oldest_ns = (struct run_number){true, 6 * NSEC_PER_SEC};
	assert_says(
		run,
		"\nat the end nginx (pid 7), port 8080 answered nothing: 24 requests waited, the "
		"oldest for 6.00 s\n");
	finding->port++;
	{
		struct report_options options = {.width = 300};
		autofree char *text = support_render_as(run, &options);

		assert_null(strstr(text, "answered nothing"));
	}
}

static void the_driver_as_the_limit_is_no_verdict(void **state)
{
	struct report_options options = {.width = 100};
	autorun struct run *run = merged_run();
	autofree char *text = NULL;

	run->driver->limited = calloc(1, sizeof(*run->driver->limited));
	run->driver->limited->by = strdup("cpu");
	run->driver->limited->why = strdup("its CPU was full");
	text = support_render_as(run, &options);
	assert_non_null(
		strstr(text, "\nnot known where the time goes: the driver itself was the limit"));
}

/* The few requests that begin such connections say nothing of what the server does. */
static void messages_have_no_verdict(void **state)
{
	struct report_options options = {.width = 100};
	autorun struct run *run = support_observer_run();
	autofree char *text = NULL, *few = NULL;

	run->services[0].websocket.connections = 1;
	run->services[0].websocket.messages_in = run->services[0].exchanges / 2;
	few = support_render_as(run, &options);
	assert_null(strstr(few, "it talks by WebSocket"));
	run->services[0].websocket.messages_out = run->services[0].exchanges;
	text = support_render_as(run, &options);
	assert_non_null(strstr(text, "\nnot known where the time goes: it talks by WebSocket"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failure_is_the_headline),
		cmocka_unit_test(redirects_are_named),
		cmocka_unit_test(broken_assertions_stand_behind_the_verdict),
		cmocka_unit_test(messages_have_no_verdict),
		cmocka_unit_test(different_sets_are_not_divided),
		cmocka_unit_test(the_verdict_names_who_can_help),
		cmocka_unit_test(the_verdict_divides_service),
		cmocka_unit_test(the_verdict_divides_a_mean),
		cmocka_unit_test(a_hidden_stage_is_judged_before_service_is_divided),
		cmocka_unit_test(nagle_is_named_where_it_explains),
		cmocka_unit_test(late_writes_do_not_blame_the_network),
		cmocka_unit_test(late_writes_leave_the_rest_known),
		cmocka_unit_test(a_pause_is_no_lack_of_workers),
		cmocka_unit_test(overflows_do_not_blame_the_network),
		cmocka_unit_test(a_full_accept_queue_is_one_cause),
		cmocka_unit_test(a_late_driver_leaves_the_servers_half_known),
		cmocka_unit_test(a_mean_under_a_rate_contains_the_unsent),
		cmocka_unit_test(handshakes_are_named_where_they_take_longest),
		cmocka_unit_test(a_short_call_is_not_blamed),
		cmocka_unit_test(another_port_is_named),
		cmocka_unit_test(a_hanging_server_comes_first),
		cmocka_unit_test(the_driver_as_the_limit_is_no_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
