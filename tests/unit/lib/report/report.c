// SPDX-License-Identifier: MIT
/*
 * lib/report: whole reports, compared with the files in golden/. With SOJOURN_UPDATE_GOLDEN=1 in
 * the environment the tests write these files instead: read the difference before committing it.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
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

static void merged(void **state)
{
	autorun struct run *run = merged_run();

	support_check_golden(run, "merged", 100);
	support_check_golden(run, "merged-80", 80);
}

/* Ten of a thousand are slow by service; they are the slowest. */
static void joined(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_samples *seen = run->services[0].samples;

	seen->samples[0].stage_ns[STAGE_RESPOND] = 30000;
	seen->samples[1].known |= RUN_SAMPLE_STAGE(STAGE_TRANSMIT_QUEUE);
	assert_int_equal(join_run(run, 12), 0);
	support_check_golden(run, "joined", 100);
	support_check_golden(run, "joined-80", 80);
}

static void joined_with_losses(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_samples *seen = run->services[0].samples;

	seen->count -= 3;
	seen->lost = 3;
	run_samples_lower(seen, RUN_SAMPLE_ALL / 4);
	assert_int_equal(join_run(run, 2), 0);
	support_check_golden(run, "joined-losses-80", 80);
	for (size_t i = 0; i < seen->count; i++)
		seen->samples[i].flow.client_port ^= 0x5555;
	assert_int_equal(join_run(run, 2), 0);
	support_check_golden(run, "joined-nat-80", 80);
}

static void observer_only(void **state)
{
	autorun struct run *run = support_observer_run();

	support_check_golden(run, "observer-only", 100);
	support_check_golden(run, "observer-only-80", 80);
}

static void driver_only(void **state)
{
	autorun struct run *run = support_driver_run();

	support_check_golden(run, "driver-only", 100);
	run->driver->observer_error = strdup("http://127.0.0.1:9300: connection refused");
	run->driver->new_connections = true;
	run->driver->warmup_ns = 500000000;
	support_check_golden(run, "driver-only-no-observer", 80);
}

static void missing_stage(void **state)
{
	autorun struct run *run = merged_run();

	support_miss_stage(&run->services[0], STAGE_ACCEPT_QUEUE,
			   "this kernel has no tracepoint at the return of accept(), and "
			   "attaching fexit is refused (EPERM)");
	support_check_golden(run, "missing-stage", 100);
}

static void missing_stage_of_observer(void **state)
{
	autorun struct run *run = support_observer_run();

	support_miss_stage(&run->services[0], STAGE_RESPOND, "not attached (EPERM)");
	support_check_golden(run, "missing-stage-observer-only", 100);
}

/*
 * Transmit times are of samples only. The network is the round trip less the residence and their
 * mean transmit queue. ack overlaps the network, so it is no part.
 */
static void transmit(void **state)
{
	autorun struct run *run = merged_run();

	support_send_stages(&run->services[0], 60);
	run->services[0].transmit_followed += 3;
	run->services[0].losses[RUN_LOSS_TRANSMIT_UNSEEN] = 3;
	support_split(&run->services[0], 3);
	support_check_golden(run, "transmit", 100);
}

/* A stage that was measured without a single value is not shown as zero. */
static void transmit_without_samples(void **state)
{
	autorun struct run *run = merged_run();
	autofree char *text = NULL;

	support_send_stages(&run->services[0], 0);
	text = support_render(run, 100, false);
	assert_non_null(strstr(
		text, "\u2514 transmit queue         not measured: no exchange was sampled"));
	assert_non_null(strstr(text, "\nack          not measured: no exchange was sampled"));
}

static void transmit_of_observer(void **state)
{
	autorun struct run *run = support_observer_run();

	support_send_stages(&run->services[0], 60);
	run->services[0].transmit_followed += 1;
	run->services[0].losses[RUN_LOSS_TRANSMIT_UNSEEN] = 1;
	support_split(&run->services[0], 0);
	support_check_golden(run, "transmit-observer-only", 100);
}

/* Thirty unused listeners, and one in use. */
static void idle_services_share_a_line(void **state)
{
	struct report_options options = {.width = 100};
	autorun struct run *run = support_observer_run();
	autofree char *text = NULL, *missed = NULL;
	struct run_service *idle = support_add_service(run, 9000, 0);

	idle->accepted = 0;
	text = support_render_as(run, &options);
	assert_non_null(strstr(text, "\nno exchanges tcp 127.0.0.1:9000 nginx\n-v prints more\n"));
	/* An unobserved service gets a line of its own. */
	idle->losses[RUN_LOSS_TLS_UNKNOWN] = 3;
	missed = support_render_as(run, &options);
	assert_non_null(
		strstr(missed, "\ntcp 127.0.0.1:9000 \u00b7 nginx 812 \u00b7 no exchanges\n"));
	assert_non_null(strstr(missed, "\ncaveats      3 tls unknown\n"));
}

/* The reason for unsent requests is named, and not taken for a slow server. */
static void unsent_says_why(void **state)
{
	static const struct {
		enum run_error error;
		const char *words;
	} cases[] = {
		{RUN_ERROR_TIMEOUT, "never sent, all connections being busy"},
		{RUN_ERROR_ADDRESS_UNAVAILABLE,
		 "never sent, no connection being free for want of source ports"},
		{RUN_ERROR_TOO_MANY_FILES,
		 "never sent, no connection being free for want of file descriptors"},
		{RUN_ERROR_REFUSED, "never sent, connections being refused, or busy"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autorun struct run *run = support_driver_run();
		autofree char *text = NULL;

		run->driver->rate = 100;
		run->driver->scheduled = 200;
		run->driver->unsent = 20;
		run->driver->errors[cases[i].error] = 1;
		text = support_render(run, 200, false);
		assert_non_null(strstr(text, "note: 20 of the 200 requests that were due were"));
		assert_non_null(strstr(text, cases[i].words));
	}
}

/* Without a word, a load of two requests at a time would look like one of twenty. */
static void fewer_streams_than_asked_for(void **state)
{
	autorun struct run *run = support_driver_run();
	autofree char *text = NULL, *enough = NULL;

	run->driver->streams = 10;
	run->driver->streams_allowed = (struct run_number){true, 1};
	text = support_render(run, 200, false);
	assert_non_null(strstr(text, "note: the server allows only 1 of 10 streams at a time on a "
				     "connection: further requests wait\n"));
	run->driver->streams_allowed.value = 10;
	enough = support_render(run, 200, false);
	assert_null(strstr(enough, "allows"));
}

static void zero_requests(void **state)
{
	autorun struct run *run = merged_run();

	run->driver->requests = run->driver->connects = 0;
	memset(&run->driver->round_trip, 0, sizeof(run->driver->round_trip));
	memset(&run->driver->connect, 0, sizeof(run->driver->connect));
	memset(run->driver->status, 0, sizeof(run->driver->status));
	run->driver->errors[RUN_ERROR_REFUSED] = 12345;
	run->services[0].exchanges = run->services[0].accepted = 0;
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		memset(&run->services[0].stages[i].histogram, 0, sizeof(struct histogram));
	run->services[0].first_message_ns = run->services[0].last_message_ns = 0;
	support_check_golden(run, "zero-requests", 100);
}

static void nothing_at_all(void **state)
{
	struct run_driver driver = {0};
	struct run_cost cost = {0};
	struct run run = {.driver = &driver, .cost = &cost};
	autofree char *text = support_render(&run, 100, false);

	support_check_text(text, 100);
	assert_non_null(strstr(text, "no request was completed"));
}

static void count_mismatch(void **state)
{
	autorun struct run *run = merged_run();

	run->services[0].exchanges = 1017;
	support_check_golden(run, "count-mismatch", 100);
}

/* A negative network is unknown, with the reason; stages are then no share of the round trip. */
static void negative_network(void **state)
{
	autorun struct run *run = merged_run();
	autofree char *text = NULL;

	run->services[0].accept_delay_ns = 1000 * 500000ULL;
	text = support_render(run, 100, false);
	support_check_text(text, 100);
	assert_non_null(strstr(text, "network + client not known: the stages hold more than"));
	assert_non_null(strstr(text, "accept queue        500 \u00b5s\n"));
	assert_null(strstr(text, "%   p50"));
}

static void everything_went_wrong(void **state)
{
	autorun struct run *run = merged_run();
	struct run_service *service = &run->services[0];

	for (unsigned int i = 0; i < RUN_LOSS_COUNT; i++)
		service->losses[i] = 1000 * (i + 1);
	service->losses[RUN_LOSS_ONEWAY] = 900; /* fewer than exchanges */
	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		service->closes[i] = 10 * (i + 1);
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		run->driver->errors[i] = 100 * (i + 1);
	service->accept_queue.overflows.value = 77;
	service->accept_delayed = 9;
	service->accept_delay_ns = 40000000;
	run->services_dropped = 2;
	run->cost->program_count = 2;
	run->cost->programs = calloc(2, sizeof(*run->cost->programs));
	strcpy(run->cost->programs[0].name, "exchange_ready");
	strcpy(run->cost->programs[1].name, "exchange_send");
	for (unsigned int i = 0; i < 2; i++) {
		run->cost->programs[i].runs = (struct run_number){true, 2000};
		run->cost->programs[i].run_ns = (struct run_number){true, 2000 * (98 + i)};
		run->cost->programs[i].recursion_misses = 5;
	}
	free(run->driver->host);
	run->driver->host = strdup("client");
	support_check_golden(run, "everything-wrong", 100);
	support_check_golden(run, "everything-wrong-80", 80);
}

/* One of several drivers: four intervals of 0.5 s, 3 of them full. */
static struct run *fleet_member(const char *host, uint64_t begin_ns)
{
	struct run *run = support_driver_run();
	struct run_driver *driver = run->driver;

	free(run->host);
	run->host = strdup(host);
	driver->begin_ns = begin_ns;
	driver->processes = 2;
	driver->interval_ns = 500000000;
	driver->interval_count = 4;
	driver->intervals = calloc(driver->interval_count, sizeof(*driver->intervals));
	assert_non_null(driver->intervals);
	for (size_t i = 0; i < driver->interval_count; i++) {
		driver->intervals[i].begin_ns = i * driver->interval_ns;
		driver->intervals[i].duration_ns = driver->interval_ns;
		driver->intervals[i].requests = 235 + 10 * i;
	}
	return run;
}

/* The first page: fits a screen, at any width, with all that matters. */
static void short_reports(void **state)
{
	autorun struct run *joined = support_sampled_run(), *merged = merged_run();
	autorun struct run *observer = support_observer_run(), *driver = support_driver_run();

	assert_int_equal(join_run(joined, 12), 0);
	support_check_short(joined, "short-joined", 100);
	support_check_short(joined, "short-joined-60", 60);
	support_check_short(merged, "short-merged", 100);
	support_check_short(observer, "short-observer", 100);
	support_check_short(observer, "short-observer-60", 60);
	support_check_short(driver, "short-driver", 100);
}

static unsigned int lines_of(const char *text)
{
	unsigned int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* The histogram of all values gives way to messages. */
static void a_short_report_fits_on_a_screen(void **state)
{
	struct report_options options = {.width = 80};
	autorun struct run *run = support_sampled_run();
	autofree char *text = NULL, *crowded = NULL;

	assert_int_equal(join_run(run, 12), 0);
	text = support_render_as(run, &options);
	assert_true(lines_of(text) <= 25);
	assert_non_null(strstr(text, "\ndistribution "));
	run->services[0].losses[RUN_LOSS_OVERLAPPED] = 17;
	run->services[0].losses[RUN_LOSS_TLS_UNKNOWN] = 4;
	run->driver->errors[RUN_ERROR_TIMEOUT] = 20;
	run->driver->errors[RUN_ERROR_RESET] = 3;
	crowded = support_render_as(run, &options);
	assert_true(lines_of(crowded) <= 25);
	assert_non_null(strstr(crowded, "\n2.2 % failed: timeout (20), reset (3)\n"));
	assert_non_null(strstr(crowded, "\ncaveats      17 overlapped \u00b7 4 tls unknown\n"));
}

/* A narrow page loses columns; each remaining time has its unit. */
static void narrow_pages_keep_units(void **state)
{
	autorun struct run *joined = support_sampled_run(), *merged = merged_run();
	autorun struct run *driver = fleet_member("client-1", 1795248000000000000);
	struct run *const runs[] = {joined, merged, driver};

	assert_int_equal(join_run(joined, 12), 0);
	support_send_stages(&merged->services[0], 60);
	support_split(&merged->services[0], 3);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct report_options options = {.width = 60};
		autofree char *text = support_render_as(runs[i], &options), *all = NULL;

		support_check_text(text, 60);
		options.verbose = true;
		all = support_render_as(runs[i], &options);
		support_check_text(all, 60);
	}
}

/* Columns stay, and no byte of UTF-8 is left, not even in a name. */
static void ascii_is_ascii(void **state)
{
	struct report_options options = {.width = 100, .ascii = true};
	autorun struct run *run = merged_run();
	autofree char *text = NULL, *all = NULL;

	strcpy(run->services[0].processes[0].comm, "n\u00e4me");
	text = support_render_as(run, &options);
	options.verbose = true;
	all = support_render_as(run, &options);
	for (const char *c = all; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	assert_non_null(strstr(text, "| n?me 812\n"));
	assert_non_null(strstr(text, "\n| socket queue        124 us"));
	support_check_text(text, 100);
}

static void the_locale_decides(void **state)
{
	static const struct {
		const char *all, *ctype, *lang;
		bool ascii;
	} cases[] = {
		{"C", "C.UTF-8", "C.UTF-8", true},
		{"", "", "", false},
		{"", "POSIX", "de_DE.UTF-8", true},
		{"C.utf8", "C", "C", false},
		{"", "", "de_DE", true},
		{"", "", "de_DE.UTF-8", false},
	};
	struct report_options options;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv("LC_ALL", cases[i].all, 1);
		setenv("LC_CTYPE", cases[i].ctype, 1);
		setenv("LANG", cases[i].lang, 1);
		report_options_for(stderr, &options);
		assert_int_equal(options.ascii, cases[i].ascii);
	}
}

/*
 * Ports are the host's: printed once, for all services that share them. UDP has no connections that
 * use them.
 */
static void source_ports_are_told_once(void **state)
{
	autorun struct run *run = merged_run();
	struct report_options options = {.width = 100};
	autofree char *text = NULL, *few = NULL, *many = NULL;
	const char *told;

	strcpy(support_add_service(run, 53, 10)->protocol, "udp");
	for (size_t i = 0; i < run->service_count; i++) {
		run->services[i].ports.used = (struct run_number){true, 1234};
		run->services[i].ports.capacity = (struct run_number){true, 28232};
		strcpy(run->services[i].ports.towards, "10.0.0.1:80");
	}
	text = support_render(run, 100, false);
	told = strstr(text, "\nhost ports   1,234 of 28,232 towards 10.0.0.1:80\n");
	assert_non_null(told);
	assert_null(strstr(strchr(told + 1, '\n'), "10.0.0.1:80"));
	told = strstr(text, "\nudp 127.0.0.1:53");
	assert_non_null(told);
	assert_null(strstr(told, "\nconnections"));
	assert_null(strstr(told, "TIME_WAIT"));
	few = support_render_as(run, &options);
	assert_null(strstr(few, "host ports"));
	run->services[0].ports.used.value = 2824;
	many = support_render_as(run, &options);
	assert_non_null(strstr(many, "\nhost ports   2,824 of 28,232 towards 10.0.0.1:80\n"));
}

/* Printed where a response takes time to arrive. */
static void first_byte_only_where_it_differs(void **state)
{
	autorun struct run *run = support_driver_run();
	autofree char *same = NULL, *apart = NULL;

	run->driver->first_byte = run->driver->round_trip;
	same = support_render(run, 100, false);
	assert_null(strstr(same, "first byte"));
	memset(&run->driver->first_byte, 0, sizeof(run->driver->first_byte));
	for (unsigned int i = 0; i < 1000; i++)
		histogram_record(&run->driver->first_byte, 100000);
	apart = support_render(run, 100, false);
	assert_non_null(strstr(apart, "\nfirst byte   1,000"));
}

static void several_services(void **state)
{
	autorun struct run *run = merged_run();

	support_add_service(run, 8443, 2000);
	support_add_service(run, 9000, 0)->accepted = 0;
	support_check_golden(run, "several-services", 100);
}

/*
 * Each service has a row, first those whose requests took the most time in all, and the report fits a screen. Losses,
 * hanging requests and unknown times are shown, too.
 */
static void many_services(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_service *hung, *multiplexed;

	support_add_service(run, 8081, 20)->stages[STAGE_SERVICE].histogram.sum += NSEC_PER_SEC;
	support_add_service(run, 8082, 2000)->losses[RUN_LOSS_STORAGE_FAILED] = 3;
	support_add_service(run, 8083, 0)->accepted = 0;
	strcpy(support_add_service(run, 53, 300)->protocol, "udp");
	hung = support_add_service(run, 8084, 0);
	hung->open.read = hung->open.unread = (struct run_number){true, 4};
	hung->open.oldest_ns = (struct run_number){true, 12300000000};
	multiplexed = support_add_service(run, 8085, 10);
	multiplexed->losses[RUN_LOSS_MULTIPLEXED] = multiplexed->accepted;
	support_check_short(run, "many-services", 100);
	support_check_short(run, "many-services-60", 60);
}

/* Each row of several services ends with what failed and what was pushed. One with nothing else is not idle. */
static void outcomes_of_many_services(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_service *service;
	const struct report_options options = {.width = 200};
	autofree char *text = NULL;

	service = support_add_service(run, 8081, 1000);
	service->responses.count = 1000;
	service->responses.status[4] = 20;
	service->responses.status[5] = 3;
	service->responses.status[0] = 9; /* too few */
	service = support_add_service(run, 8082, 0);
	service->accepted = 0;
	service->websocket.messages_out = 4000000;
	service->websocket.messages_in = 1;
	service = support_add_service(run, 8083, 0);
	service->accepted = 0;
	service->websocket = (struct run_websocket){.older = 3, .picked_up = 1, .connections = 1};
	service->events.count = 7;
	text = support_render_as(run, &options);
	assert_non_null(strstr(text, " \u00b7 5xx 3 (0.3 %) \u00b7 4xx 20 (2.0 %)\n"));
	assert_non_null(strstr(
		text, "no exchanges \u00b7 accepted 0 \u00b7 messages in 1, out 4,000,000\n"));
	assert_non_null(
		strstr(text, "events 7 \u00b7 messages of 2 older connections not known\n"));
}

static void several_drivers(void **state)
{
	autorun struct run *run = fleet_member("client-1", 1795248000000000000);
	autorun struct run *second = fleet_member("client-2", 1795248000500000000);
	autorun struct run *observer = support_observer_run(), *other = support_observer_run();

	assert_int_equal(run_merge(run, second, NULL), 0);
	assert_int_equal(run_merge(run, observer, NULL), 0);
	support_check_golden(run, "several-drivers", 100);
	/* Two hosts served the port: the round trip cannot be split. */
	free(other->host);
	other->host = strdup("server-2");
	assert_int_equal(run_merge(run, other, NULL), 0);
	support_check_golden(run, "several-hosts", 100);
}

/* The tree's service: at the target's port, else the busiest. */
static void driven_service_is_found(void **state)
{
	static const struct {
		const char *target, *identity;
		bool note;
	} cases[] = {
		{"http://127.0.0.1:8080/", "\ntcp 127.0.0.1:8080", false},
		{"http://localhost/a:8443/b", "\ntcp 127.0.0.1:80 ", false},
		{"https://localhost?x", "\ntcp 127.0.0.1:443 ", false},
		{"http://[::1]:8080", "\ntcp 127.0.0.1:8080", false},
		{"http://[::1]/", "\ntcp 127.0.0.1:80 ", false},
		{"http://user:1@h:8080/", "\ntcp 127.0.0.1:8080", false},
		{"http://h:8081/", "\ntcp 127.0.0.1:443 ", true},
		{"http://h:99999/", "\ntcp 127.0.0.1:443 ", false},
		{"rubbish", "\ntcp 127.0.0.1:443 ", false},
	};
	autorun struct run *run = merged_run();

	support_add_service(run, 80, 10);
	support_add_service(run, 443, 3000);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = NULL;
		const char *tree;

		free(run->driver->target);
		run->driver->target = strdup(cases[i].target);
		text = support_render(run, 100, false);
		tree = strstr(text, "\nround trip");
		assert_non_null(tree);
		assert_true(strstr(text, cases[i].identity) &&
			    strstr(text, cases[i].identity) < tree);
		assert_int_equal(strstr(text, "note: no exchanges were seen at port") != NULL,
				 cases[i].note);
	}
}

/* Three significant digits, and the right unit. */
static void units_follow_the_round_trip(void **state)
{
	static const struct {
		uint64_t round_trip_ns;
		const char *row;
	} cases[] = {
		{500000, "network + client    370 \u00b5s"},
		{9000000, "network + client   8.87 ms"},
		{90000000, "network + client   89.9 ms"},
		{90000000000, "network + client    90.0 s"},
	};
	autorun struct run *run = merged_run();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *text = NULL;

		run->driver->round_trip = (struct histogram){0};
		histogram_record(&run->driver->round_trip, cases[i].round_trip_ns);
		text = support_render(run, 100, false);
		if (!strstr(text, cases[i].row))
			fail_msg("no \"%s\" in\n%s", cases[i].row, text);
	}
}

static void colour_only_adds_escapes(void **state)
{
	autorun struct run *run = merged_run();
	autofree char *plain = support_render(run, 100, false),
		      *coloured = support_render(run, 100, true);
	char *out = coloured;

	assert_non_null(strstr(coloured, "\033[0;1;33mnetwork + client"));
	assert_null(strchr(plain, '\033'));
	for (const char *in = coloured; *in; in++) {
		if (*in == '\033')
			in = strchr(in, 'm');
		else
			*out++ = *in;
	}
	*out = '\0';
	assert_string_equal(plain, coloured);
}

/* A document may come from anywhere: its strings must not steer the terminal. */
static void escapes_in_names_are_not_printed(void **state)
{
	autorun struct run *run = merged_run();
	autofree char *text = NULL;

	strcpy(run->services[0].processes[0].comm, "a\033[2J\nb");
	free(run->host);
	run->host = strdup("\033]0;x\007");
	support_miss_stage(&run->services[0], STAGE_SERVICE, "a\nb\tc\033[31m");
	text = support_render(run, 100, false);
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\007'));
	assert_non_null(strstr(text, "a?[2J?b"));
	assert_non_null(strstr(text, "not measured: a?b?c?[31m"));
}

static void options_without_a_terminal(void **state)
{
	struct report_options options = {.colour = true, .width = 7};
	autofclose FILE *file = tmpfile();

	report_options_for(file, &options);
	assert_false(options.colour);
	assert_int_equal(options.width, 0);
}

static void write_errors_are_reported(void **state)
{
	struct report_options options = {0};
	autorun struct run *run = merged_run();
	FILE *file = fopen("/dev/full", "w");

	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	assert_true(report_text(run, &options, file) < 0);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merged),
		cmocka_unit_test(joined),
		cmocka_unit_test(joined_with_losses),
		cmocka_unit_test(observer_only),
		cmocka_unit_test(driver_only),
		cmocka_unit_test(missing_stage),
		cmocka_unit_test(missing_stage_of_observer),
		cmocka_unit_test(transmit),
		cmocka_unit_test(transmit_of_observer),
		cmocka_unit_test(transmit_without_samples),
		cmocka_unit_test(unsent_says_why),
		cmocka_unit_test(fewer_streams_than_asked_for),
		cmocka_unit_test(zero_requests),
		cmocka_unit_test(nothing_at_all),
		cmocka_unit_test(count_mismatch),
		cmocka_unit_test(negative_network),
		cmocka_unit_test(everything_went_wrong),
		cmocka_unit_test(short_reports),
		cmocka_unit_test(idle_services_share_a_line),
		cmocka_unit_test(a_short_report_fits_on_a_screen),
		cmocka_unit_test(narrow_pages_keep_units),
		cmocka_unit_test(ascii_is_ascii),
		cmocka_unit_test(the_locale_decides),
		cmocka_unit_test(source_ports_are_told_once),
		cmocka_unit_test(first_byte_only_where_it_differs),
		cmocka_unit_test(several_services),
		cmocka_unit_test(many_services),
		cmocka_unit_test(outcomes_of_many_services),
		cmocka_unit_test(several_drivers),
		cmocka_unit_test(driven_service_is_found),
		cmocka_unit_test(units_follow_the_round_trip),
		cmocka_unit_test(colour_only_adds_escapes),
		cmocka_unit_test(escapes_in_names_are_not_printed),
		cmocka_unit_test(options_without_a_terminal),
		cmocka_unit_test(write_errors_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
