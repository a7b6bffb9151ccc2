// SPDX-License-Identifier: MIT
/* The live view without a terminal: order, filter, selection, the past, numbers, findings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sinks/live/notes.h"
#include "sinks/live/view.h"
#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "support/runs.h"
#include "unit.h"

/* Make a reading of services at 1001, 1002, 1003 with this many answered requests so far. */
static struct run *reading(uint64_t seconds, unsigned int first, unsigned int second,
			   unsigned int third)
{
	struct run *run = run_new("test", NULL);

	assert_non_null(run);
	run->duration_ns = seconds * 1000000000;
	support_add_service(run, 1001, first);
	support_add_service(run, 1002, second);
	support_add_service(run, 1003, third);
	return run;
}

static void assert_order(const struct live_view *view, uint16_t a, uint16_t b, uint16_t c)
{
	assert_int_equal(view->row_count, 3);
	assert_int_equal(view->rows[0].service->port, a);
	assert_int_equal(view->rows[1].service->port, b);
	assert_int_equal(view->rows[2].service->port, c);
}

static void test_rates_are_of_the_interval(void **state)
{
	struct live_view view;

	live_view_init(&view);
	assert_int_equal(live_view_update(&view, reading(1, 1000, 1000, 1000)), 0);
	assert_null(live_view_period(&view));
	assert_null(live_view_selected(&view));
	assert_int_equal(live_view_update(&view, reading(3, 1100, 1500, 1010)), 0);
	assert_order(&view, 1002, 1001, 1003);
	assert_true(live_series_value(&view.rows[0], LIVE_REQUESTS) == 250);
	assert_true(live_series_value(&view.rows[1], LIVE_REQUESTS) == 50);
	view.show_total = true;
	assert_int_equal(live_view_arrange(&view), 0);
	assert_true(live_series_value(&view.rows[0], LIVE_REQUESTS) == 500);
	live_view_done(&view);
}

static void test_order_and_selection(void **state)
{
	struct live_view view;

	live_view_init(&view);
	live_view_update(&view, reading(1, 0, 0, 0));
	live_view_update(&view, reading(2, 5, 0, 9));
	assert_order(&view, 1003, 1001, 1002);
	view.selected = 1;
	view.reversed = true;
	assert_int_equal(live_view_arrange(&view), 0);
	assert_order(&view, 1002, 1001, 1003);
	assert_int_equal(live_view_selected(&view)->service->port, 1001);
	/* The service stays selected when its place changes. */
	view.reversed = false;
	live_view_update(&view, reading(3, 99, 0, 9));
	assert_order(&view, 1001, 1002, 1003);
	assert_int_equal(live_view_selected(&view)->service->port, 1001);
	live_view_done(&view);
}

static void add_call(struct run_service *service, const char *towards, unsigned int count,
		     unsigned int failed)
{
	struct run_timed_call *call = ARRAY_APPEND(service->timed_calls, service->timed_call_count);

	assert_non_null(call);
	strcpy(call->towards, towards);
	for (unsigned int i = 0; i < count; i++)
		histogram_record(&call->wait, 1000000);
	call->calls = count;
	call->failed = failed;
	call->open = 2;
	call->connects = 10;
	call->uncut[RUN_UNCUT_TUNNELS] = 1;
}

/* Places are in the order of their waits, which differs between readings. Open calls and uncut connections are of now. */
static void test_calls_are_of_the_interval(void **state)
{
	struct run *first = reading(1, 0, 0, 0), *second = reading(2, 1, 1, 1);
	const struct run_timed_call *found;
	struct live_view view;

	add_call(&first->services[0], "a:1", 5, 1);
	add_call(&second->services[0], "b:1", 9, 0);
	add_call(&second->services[0], "a:1", 8, 3);
	live_view_init(&view);
	assert_int_equal(live_view_update(&view, first), 0);
	assert_int_equal(live_view_update(&view, second), 0);
	found = run_find_call(&view.interval->services[0], "a:1");
	assert_int_equal(found->calls, 3);
	assert_int_equal(found->wait.count, 3);
	assert_int_equal(found->failed, 2);
	assert_int_equal(found->connects, 0);
	assert_int_equal(found->open, 2);
	assert_int_equal(found->uncut[RUN_UNCUT_TUNNELS], 1);
	assert_int_equal(run_find_call(&view.interval->services[0], "b:1")->calls, 9);
	assert_null(run_find_call(&view.interval->services[0], "c:1"));
	assert_int_equal(run_find_call(&view.total->services[0], "a:1")->calls, 8);
	live_view_done(&view);
}

static size_t column(const char *group, const char *title)
{
	const char *current = NULL;

	for (size_t i = 0; i < live_column_count; i++) {
		current = live_columns[i].group ? live_columns[i].group : current;
		if (!strcmp(live_columns[i].title, title) &&
		    (!group || (current && !strcmp(current, group))))
			return i;
	}
	fail_msg("no column %s", title);
	return 0;
}

/* An idle service has no percentile: it is last in both directions. */
static void test_unknown_is_last(void **state)
{
	struct live_view view;
	char text[16];

	live_view_init(&view);
	live_view_update(&view, reading(1, 0, 0, 0));
	live_view_update(&view, reading(2, 0, 10, 20));
	view.sort = column("SERVICE", "p99");
	for (int i = 0; i < 2; i++, view.reversed = !view.reversed) {
		assert_int_equal(live_view_arrange(&view), 0);
		assert_int_equal(view.rows[2].service->port, 1001);
	}
	live_column_format(&live_columns[view.sort], &view.rows[2], text, sizeof(text));
	assert_string_equal(text, "-");
	live_view_done(&view);
}

static void test_filter(void **state)
{
	static const struct {
		const char *filter;
		size_t rows;
	} cases[] = {{"", 3}, {"100", 3}, {"1002", 1}, {"nothing", 0}, {"10011", 0}};
	struct live_view view;

	live_view_init(&view);
	live_view_update(&view, reading(1, 0, 0, 0));
	live_view_update(&view, reading(2, 1, 2, 3));
	view.selected = 2;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(view.filter, sizeof(view.filter), "%s", cases[i].filter);
		assert_int_equal(live_view_arrange(&view), 0);
		assert_int_equal(view.row_count, cases[i].rows);
		assert_true(!view.row_count || view.selected < view.row_count);
	}
	live_view_done(&view);
}

static void test_filter_by_process(void **state)
{
	struct live_view view;
	struct run *run = reading(2, 1, 2, 3);

	for (size_t i = 0; i < 3; i++) {
		struct run_process *process =
			ARRAY_APPEND(run->services[i].processes, run->services[i].process_count);

		assert_non_null(process);
		snprintf(process->comm, sizeof(process->comm), "Server-%zu", i);
	}
	live_view_init(&view);
	live_view_update(&view, reading(1, 0, 0, 0));
	live_view_update(&view, run);
	snprintf(view.filter, sizeof(view.filter), "server-1");
	assert_int_equal(live_view_arrange(&view), 0);
	assert_int_equal(view.row_count, 1);
	assert_int_equal(view.rows[0].service->port, 1002);
	live_view_done(&view);
}

/* Without room the oldest point goes; unknown is not zero. */
static void test_past(void **state)
{
	const struct live_history *history;
	struct live_view view;

	live_view_init(&view);
	for (unsigned int i = 0; i <= LIVE_HISTORY + 5; i++)
		assert_int_equal(live_view_update(&view, reading(i + 1, i * (i + 1) / 2, 0, 0)), 0);
	history = view.rows[0].history;
	assert_int_equal(view.rows[0].service->port, 1001);
	assert_int_equal(history->count, LIVE_HISTORY);
	assert_true(history->points[LIVE_REQUESTS][0] == 6);
	assert_true(history->points[LIVE_REQUESTS][LIVE_HISTORY - 1] == LIVE_HISTORY + 5);
	assert_true(isnan(view.rows[1].history->points[LIVE_SERVICE_P99][0]));
	live_view_done(&view);
}

static void test_numbers(void **state)
{
	static const struct {
		double value;
		const char *count, *time;
	} cases[] = {
		{NAN, "-", "-"},
		{0, "0", "0 ns"},
		{0.25, "0.2", "0 ns"},
		{9.94, "9.9", "10 ns"},
		{9.96, "10", "10 ns"},
		{99999, "99999", "100 µs"},
		{116785, "117k", "117 µs"},
		{1234567, "1.2M", "1.23 ms"},
		{2e9, "2000M", "2.00 s"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[32];

		assert_string_equal(live_format_count(cases[i].value, text, sizeof(text)),
				    cases[i].count);
		assert_string_equal(live_format_time(cases[i].value, text, sizeof(text)),
				    cases[i].time);
	}
}

static void test_process_names_are_harmless(void **state)
{
	struct run_process processes[2] = {{.pid = 1}, {.pid = 2}};
	struct run_service service = {.processes = processes, .process_count = 1};
	char text[64];

	memcpy(processes[0].comm, "\x1b[2J\xc3\xa4 abcdefgh", sizeof(processes[0].comm));
	assert_string_equal(live_format_process(&service, text, sizeof(text)), "?[2J?? abcdefgh");
	service.process_count = 2;
	assert_string_equal(live_format_process(&service, text, sizeof(text)), "?[2J??+1");
	service.process_count = 0;
	assert_string_equal(live_format_process(&service, text, sizeof(text)), "-");
}

static void assert_note(const struct run *run, bool critical, const char *text)
{
	struct live_note notes[16];
	size_t count = live_notes(run, NULL, NULL, notes, ARRAY_SIZE(notes));

	for (size_t i = 0; i < count; i++) {
		if (strstr(notes[i].text, text) && notes[i].critical == critical)
			return;
	}
	fail_msg("no finding says '%s'", text);
}

static void test_findings(void **state)
{
	CLEANUP(cleanup_run_free) struct run *run = reading(1, 10, 0, 0);
	struct run_service *service = &run->services[0];
	struct live_note notes[16];

	for (unsigned int i = 0; i < RUN_LOSS_COUNT; i++)
		service->losses[i] = 0;
	service->accept_queue = (struct run_accept_queue){
		.depth = {true, 79}, .limit = {true, 100}, .overflows = {true, 0}};
	assert_int_equal(live_notes(run, NULL, service, notes, ARRAY_SIZE(notes)), 0);
	service->accept_queue.depth.value = 80;
	assert_note(run, true, "1001: accept queue 80 of 100");
	service->accept_queue.overflows.value = 7;
	assert_note(run, true, "1001: accept queue overflowed: 7 connections");
	service->losses[RUN_LOSS_CUT_OFF] = 3;
	service->losses[RUN_LOSS_OVERLAPPED] = 2;
	assert_note(run, false, "1001: caveats: overlapped 2, cut off 3");
	run->services_dropped = 4;
	run->connections_dropped = 9;
	assert_note(run, true, "4 services found no slot: 9 connections");
	/*
	 * Twenty times the service, but short: no warning until it is 6 ms and more than the
	 * service.
	 */
	assert_false(live_waits(service));
	histogram_record(&service->stages[STAGE_SOCKET_QUEUE].histogram, 6000000);
	assert_note(run, false, "1001: requests wait longer (p99 6.00 ms)");
	histogram_record(&service->stages[STAGE_SERVICE].histogram, 7000000);
	assert_false(live_waits(service));
	support_miss_stage(service, STAGE_SOCKET_QUEUE, "because");
	assert_note(run, false, "1001: socket queue is not measured: because");
	/* Room for one: the worst. */
	assert_int_equal(live_notes(run, NULL, NULL, notes, 1), 1);
	assert_non_null(strstr(notes[0].text, "no slot"));
}

static struct run *found_by_doctor(void)
{
	struct run *run = reading(1, 10, 0, 0);
	static const struct {
		const char *severity, *object, *what;
		uint16_t port;
	} rows[] = {{"critical", "0.0.0.0:1002", "the queue overflows", 1002},
		    {"warning", "\x1b[2Jevil (pid 7)", "few descriptors are left", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct run_finding *finding = ARRAY_APPEND(run->findings, run->finding_count);

		assert_non_null(finding);
		snprintf(finding->severity, sizeof(finding->severity), "%s", rows[i].severity);
		snprintf(finding->object, sizeof(finding->object), "%s", rows[i].object);
		finding->what = strdup(rows[i].what);
		finding->port = rows[i].port;
	}
	assert_int_equal(run_add_text(&run->not_seen, "something"), 0);
	return run;
}

/* Findings stay until the doctor's next reading, for a service or for all; names are escaped. */
static void test_doctors_findings(void **state)
{
	CLEANUP(cleanup_run_free) struct run *healthy = reading(3, 12, 0, 0);
	struct live_note notes[16];
	struct live_view view;

	live_view_init(&view);
	assert_int_equal(live_view_update(&view, found_by_doctor()), 0);
	assert_int_equal(live_view_update(&view, reading(2, 11, 0, 0)), 0);
	assert_true(live_notes(view.interval, view.found, NULL, notes, ARRAY_SIZE(notes)) >= 2);
	assert_true(notes[0].critical);
	assert_string_equal(notes[0].text, "0.0.0.0:1002: the queue overflows");
	assert_false(notes[1].critical);
	assert_string_equal(notes[1].text, "?[2Jevil (pid 7): few descriptors are left");
	assert_true(live_notes(view.interval, view.found, &view.interval->services[1], notes,
			       ARRAY_SIZE(notes)) >= 1);
	assert_string_equal(notes[0].text, "0.0.0.0:1002: the queue overflows");
	assert_int_equal(live_notes(view.interval, view.found, &view.interval->services[0], notes,
				    ARRAY_SIZE(notes)),
			 0);
	/* The doctor looked, and found nothing. */
	healthy->not_seen = calloc(1, sizeof(*healthy->not_seen));
	assert_non_null(healthy->not_seen);
	assert_int_equal(live_view_update(&view, TAKE_PTR(healthy)), 0);
	assert_int_equal(view.found->finding_count, 0);
	live_view_done(&view);
}

static struct run *waiting_reading(uint64_t seconds, unsigned int answered, uint64_t oldest_seconds)
{
	struct run *run = reading(seconds, answered, 0, 0);
	struct run_open *open = &run->services[0].open;

	open->read = (struct run_number){true, 2};
	open->unread = (struct run_number){true, 1};
	open->oldest_ns = (struct run_number){true, oldest_seconds * 1000000000};
	return run;
}

/* Return the open requests of the first service, after a reading at @seconds. */
static struct live_open open_at(struct live_view *view, uint64_t seconds, unsigned int answered,
				uint64_t oldest_seconds)
{
	assert_int_equal(live_view_update(view, waiting_reading(seconds, answered, oldest_seconds)),
			 0);
	return live_view_open(view, &view->total->services[0]);
}

/* A service hangs if it answers nothing for three seconds while a request waits for as long. */
static void test_what_hangs(void **state)
{
	struct run *arriving = waiting_reading(20, 21, 10);
	struct live_open open;
	struct live_view view;

	live_view_init(&view);
	open_at(&view, 1, 10, 0);
	open = open_at(&view, 2, 20, 5);
	assert_int_equal(open.count, 3);
	assert_int_equal(open.urgency, LIVE_OLD); /* others are answered */
	assert_int_equal(open_at(&view, 4, 20, 7).urgency, LIVE_OLD);
	open = open_at(&view, 5, 20, 8);
	assert_int_equal(open.urgency, LIVE_HANGS);
	assert_int_equal(open.silent_ns, 3000000000);
	open = open_at(&view, 9, 20, 2); /* idle before: no request has waited longer */
	assert_int_equal(open.urgency, LIVE_OLD);
	assert_int_equal(open.silent_ns, 2000000000);
	assert_int_equal(open_at(&view, 10, 20, 0).urgency, LIVE_CALM);
	assert_int_equal(open_at(&view, 14, 20, 4).urgency, LIVE_HANGS);
	assert_int_equal(open_at(&view, 15, 21, 5).urgency, LIVE_OLD);
	/* A replay that goes back measures no silence. */
	assert_int_equal(live_view_back(&view, waiting_reading(12, 20, 4), NULL), 0);
	assert_int_equal(live_view_open(&view, &view.total->services[0]).urgency, LIVE_OLD);
	assert_false(live_view_open(&view, &view.total->services[1]).known);
	/* A request that has arrived for long, and still does, waits for nothing. */
	arriving->services[0].open.waiting_ns = (struct run_number){true, 20000000};
	assert_int_equal(live_view_update(&view, arriving), 0);
	assert_int_equal(live_view_open(&view, &view.total->services[0]).urgency, LIVE_CALM);
	live_view_done(&view);
}

/* Return the urgency where so many messages, which nobody has answered, and as many requests were read. */
static unsigned int told_urgency(uint64_t oneway, unsigned int answered, uint64_t unread)
{
	struct run *later = waiting_reading(9, answered, 8);
	struct run_service *service = &later->services[0];
	unsigned int urgency;
	struct live_view view;

	live_view_init(&view);
	open_at(&view, 1, answered, 0);
	service->losses[RUN_LOSS_ONEWAY] = oneway;
	service->open.unread.value = unread;
	assert_int_equal(live_view_update(&view, later), 0);
	urgency = live_view_open(&view, &view.total->services[0]).urgency;
	live_view_done(&view);
	return urgency;
}

/* Clients of a server of logs do not wait, but they do for one that reads nothing more. */
static void test_who_is_told_does_not_hang(void **state)
{
	assert_int_equal(told_urgency(11, 10, 0), LIVE_CALM);
	assert_int_equal(told_urgency(10, 10, 0), LIVE_HANGS);
	assert_int_equal(told_urgency(11, 10, 1), LIVE_HANGS);
}

static struct run *ambiguous_reading(uint64_t seconds, unsigned int answered, uint64_t ambiguous)
{
	struct run *run = reading(seconds, answered, 0, 0);

	run->services[0].losses[RUN_LOSS_AMBIGUOUS_REPLIES] = ambiguous;
	return run;
}

static void assert_service(const struct live_view *view, bool known)
{
	char text[16];
	size_t p99 = column("SERVICE", "p99");

	for (size_t i = 0; i < view->row_count; i++) {
		const struct live_row *row = &view->rows[i];

		live_column_format(&live_columns[p99], row, text, sizeof(text));
		if (row->service->port == 1001)
			assert_int_equal(strcmp(text, "unknown") != 0, known);
		else
			assert_string_equal(text, "-");
	}
}

/* Each period is judged alone, and does not affect the other's known values. */
static void test_doubtful_is_unknown(void **state)
{
	struct live_view view;

	live_view_init(&view);
	live_view_update(&view, ambiguous_reading(1, 100, 100));
	live_view_update(&view, ambiguous_reading(2, 200, 110));
	assert_service(&view, true);
	assert_int_equal(view.interval->services[0].stages[STAGE_SERVICE].histogram.count, 100);
	view.show_total = true;
	live_view_arrange(&view);
	assert_service(&view, false);
	live_view_update(&view, ambiguous_reading(3, 2000, 121));
	assert_service(&view, true);
	view.show_total = false;
	live_view_update(&view, ambiguous_reading(4, 2100, 132));
	assert_service(&view, false);
	live_view_done(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_of_the_interval),
		cmocka_unit_test(test_order_and_selection),
		cmocka_unit_test(test_calls_are_of_the_interval),
		cmocka_unit_test(test_unknown_is_last),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_by_process),
		cmocka_unit_test(test_past),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_process_names_are_harmless),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_doctors_findings),
		cmocka_unit_test(test_what_hangs),
		cmocka_unit_test(test_who_is_told_does_not_hang),
		cmocka_unit_test(test_doubtful_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
