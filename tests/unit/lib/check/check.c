// SPDX-License-Identifier: MIT
/* Rules of lib/check/ and lib/json/derived.c: a valid document, and ways to break every rule. */
#include "sojourn/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/finding.h"
#include "sojourn/join.h"
#include "sojourn/series.h"
#include "sojourn/sweep.h"
#include "support/runs.h"
#include "unit.h"

static void *need(void *pointer)
{
	assert_non_null(pointer);
	return pointer;
}

static void count_samples(struct run_service *service)
{
	for (unsigned int i = STAGE_SOCKET_QUEUE; i < STAGE_RESIDENCE_END; i++) {
		struct histogram *h = &service->stages[i].histogram;

		*h = (struct histogram){0};
		for (size_t j = 0; j < service->samples->count; j++)
			histogram_record(h, service->samples->samples[j].stage_ns[i]);
	}
}

/* Add three points; all that happens is in the second one. */
static void add_series(struct run_service *service, uint64_t duration_ns)
{
	struct run_point point = {.duration_ns = duration_ns / 3};

	service->series = need(run_series_new());
	run_point_between(NULL, service, &point);
	for (uint64_t i = 0; i < 3; i++) {
		struct run_point quiet = {.known = point.known & ~(0xffU << 16)};
		struct run_point *chosen = i == 1 ? &point : &quiet;

		chosen->begin_ns = i * (duration_ns / 3);
		chosen->duration_ns = duration_ns / 3;
		assert_int_equal(run_series_add(service->series, chosen), 0);
	}
}

static void add_driver_lists(struct run_driver *driver)
{
	struct run_row *row;

	driver->intervals = need(calloc(1, sizeof(*driver->intervals)));
	driver->interval_count = 1;
	driver->interval_ns = driver->duration_ns;
	driver->intervals[0] = (struct run_interval){
		.duration_ns = driver->duration_ns,
		.requests = driver->requests,
		.connects = driver->connects,
		.latency = driver->round_trip,
	};
	row = need(calloc(1, sizeof(*row)));
	driver->rows[RUN_ROWS_STATUS] = (struct run_row_list){row, 1};
	row->name = need(strdup("200"));
	row->requests = driver->requests;
	row->status[2] = driver->requests;
	row->round_trip = driver->round_trip;
}

static struct run *sound_run(void)
{
	struct run *run = support_sampled_run();
	struct run_service *service = &run->services[0];

	run->driver->first_byte = run->driver->round_trip;
	assert_int_equal(join_run(run, JOIN_SLOWEST), 0);
	count_samples(service);
	support_split(service, 10);
	service->responses = (struct run_responses){.count = 1000,
						    .status = {3, [2] = 990, [4] = 7},
						    .statuses = {[100] = 990, [304] = 7}};
	service->grpc = (struct run_grpc){
		.count = 6, .status = {[0] = 5, [14] = 1}, .kinds = {5, [RUN_GRPC_UNDECIDED] = 1}};
	histogram_record(&service->grpc.service_failed, 5);
	service->routes.list = need(calloc(1, sizeof(*service->routes.list)));
	service->routes.count = 1;
	service->routes.list[0].route = need(strdup(RUN_ROUTE_OTHER));
	service->routes.list[0].count = service->routes.list[0].status[2] = 990;
	for (int i = 0; i < 990; i++)
		histogram_record(&service->routes.list[0].service, 5);
	service->routes.not_known[RUN_ROUTELESS_TLS] = 10;
	service->open.read = service->open.unread = service->open.unaccepted =
		service->open.closing = (struct run_number){.known = true};
	add_series(service, run->duration_ns);
	add_driver_lists(run->driver);
	return run;
}

/* ---- ways to break it ---- */

#define SERVICE	     (&run->services[0])
#define STAGE(stage) (&SERVICE->stages[STAGE_##stage].histogram)

static void lose_bucket(struct run *run)
{
	STAGE(SERVICE)->buckets[0]++;
}

static void forget_status(struct run *run)
{
	SERVICE->responses.statuses[304]--;
}

static void answer_more(struct run *run)
{
	SERVICE->responses.status[0]++;
	SERVICE->responses.count++;
}

static void fail_more(struct run *run)
{
	histogram_record(&SERVICE->responses.service_5xx, 5);
}

static void forget_grpc(struct run *run)
{
	SERVICE->grpc.status[0]--;
}

static void forget_a_kind(struct run *run)
{
	SERVICE->grpc.kinds[RUN_GRPC_UNDECIDED]--;
}

static void fail_more_of_grpc(struct run *run)
{
	SERVICE->grpc.status[14]--;
	SERVICE->grpc.status[RUN_GRPC_MISSING]++;
}

static void route_more(struct run *run)
{
	SERVICE->routes.list[0].count++;
}

static void route_fewer(struct run *run)
{
	SERVICE->routes.not_known[RUN_ROUTELESS_TLS]--;
}

static void time_more_of_a_route(struct run *run)
{
	histogram_record(&SERVICE->routes.list[0].service, 5);
}

static void raise_mean(struct run *run)
{
	run->driver->connect.sum = run->driver->connect.count * run->driver->connect.max + 1;
}

static void sum_of_nothing(struct run *run)
{
	SERVICE->abandoned.sum = 7;
}

static void shift_sum(struct run *run)
{
	STAGE(ACCEPT_QUEUE)->sum /= 2;
}

static void shift_max(struct run *run)
{
	run->driver->connect.max *= 2;
}

static void count_twice(struct run *run)
{
	SERVICE->exchanges *= 2;
}

static void forget_receive(struct run *run)
{
	STAGE(RECEIVE)->buckets[0]--;
	STAGE(RECEIVE)->count--;
}

static void divide_more(struct run *run)
{
	struct histogram *h = &SERVICE->cpu[RUN_CPU_BLOCKED].histogram;

	h->sum += STAGE(SERVICE)->sum;
}

static void divide_others(struct run *run)
{
	histogram_record(&SERVICE->cpu[RUN_CPU_RUNNABLE].histogram, 1);
}

static void overlap_all(struct run *run)
{
	SERVICE->losses[RUN_LOSS_OVERLAPPED] = SERVICE->exchanges + 1;
}

static void forget_close(struct run *run)
{
	SERVICE->closes[RUN_CLOSE_BY_CLIENT]--;
}

static void accept_more(struct run *run)
{
	SERVICE->losses[RUN_LOSS_ACCEPT_UNSEEN] = 1;
}

static void time_wait_more(struct run *run)
{
	SERVICE->time_wait_created = 65;
}

static void follow_fewer(struct run *run)
{
	support_send_stages(SERVICE, 100);
	SERVICE->transmit_followed = 99;
}

static void acknowledge_fewer(struct run *run)
{
	support_send_stages(SERVICE, 100);
	SERVICE->losses[RUN_LOSS_TRANSMIT_UNSEEN] = 1;
	SERVICE->transmit_followed = 101;
}

static void age_nothing(struct run *run)
{
	SERVICE->open.ages[0] = 1;
}

static void outlast(struct run *run)
{
	SERVICE->losses[RUN_LOSS_UNTIMED] = 0;
	histogram_record(STAGE(SERVICE), 2 * run->duration_ns);
}

static void contradict_sample(struct run *run)
{
	SERVICE->samples->inconsistent = 1;
}

static void sample_above(struct run *run)
{
	SERVICE->samples->threshold = 0;
}

static void leave_gap(struct run *run)
{
	SERVICE->series->points[1].begin_ns++;
}

static void end_late(struct run *run)
{
	SERVICE->series->points[2].duration_ns += 1000;
}

static void lose_point(struct run *run)
{
	SERVICE->series->points[1].exchanges--;
}

static void lose_close(struct run *run)
{
	SERVICE->series->points[1].closes[RUN_CLOSE_BY_CLIENT]--;
}

static void lose_nanosecond(struct run *run)
{
	SERVICE->series->points[1].stages[STAGE_SERVICE].sum_ns--;
}

static void descend(struct run *run)
{
	SERVICE->series->points[1].stages[STAGE_SERVICE].p50_ns =
		SERVICE->series->points[1].stages[STAGE_SERVICE].p99_ns + 1;
}

static void lose_status(struct run *run)
{
	run->driver->status[2]--;
}

static void late_byte(struct run *run)
{
	run->driver->first_byte.sum = run->driver->round_trip.sum + 1;
}

static void outlast_phase(struct run *run)
{
	run->driver->duration_ns = run->driver->round_trip.max - 1;
}

static void hide_failure(struct run *run)
{
	run->driver->errors[RUN_ERROR_TIMEOUT] = 3;
}

static void make_up_connect(struct run *run)
{
	run->driver->intervals[0].connects++;
}

static void lose_row(struct run *run)
{
	run->driver->rows[RUN_ROWS_STATUS].list[0].round_trip.sum--;
}

static void lose_part(struct run *run)
{
	run->driver->parts = need(calloc(1, sizeof(*run->driver->parts)));
	run->driver->part_count = 1;
	run->driver->parts[0].requests = run->driver->requests - 1;
}

static void make_up_member(struct run *run)
{
	run->driver->members = need(calloc(1, sizeof(*run->driver->members)));
	run->driver->member_count = 1;
	run->driver->members[0].requests = run->driver->requests + 1;
}

static void lose_latency(struct run *run)
{
	run->sweep = need(calloc(1, sizeof(*run->sweep)));
	run->sweep->steps = need(calloc(1, sizeof(*run->sweep->steps)));
	run->sweep->step_count = 1;
	run->sweep->steps[0].requests = 7;
}

static void lose_network(struct run *run)
{
	run->joined->slowest[0].parts.network_ns--;
}

static void join_again(struct run *run)
{
	run->joined->joined--;
}

static void outlast_round_trip(struct run *run)
{
	run->joined->stages[STAGE_SERVICE].histogram.max = run->joined->round_trip.max + 1;
}

static void swap_slowest(struct run *run)
{
	struct run_exchange *list = run->joined->slowest, first = list[0];

	list[0] = list[run->joined->slowest_count - 1];
	list[run->joined->slowest_count - 1] = first;
	list[0].parts.round_trip_ns--;
}

static void join_more(struct run *run)
{
	run->driver->requests--;
}

static void lose_byte(struct run *run)
{
	SERVICE->bytes_out--;
}

static void serve_longer(struct run *run)
{
	STAGE(SERVICE)->sum++;
}

/* clang-format off */
static const struct {
	const char *rule;
	void (*damage)(struct run *run);
	const char *says; /* a part of the message */
} damages[] = {
	{"buckets-add-up", lose_bucket, "tcp port 8080.stages.service: the sum of its buckets is 1001, must be count, which is 1000"},
	{"mean-below-max", raise_mean, "driver.connect: mean_ns is"},
	{"mean-below-max", sum_of_nothing, "tcp port 8080.abandoned: sum_ns is 7, must be the sum of no values, which is 0"},
	{"sum-in-buckets", shift_sum, "tcp port 8080.stages.accept_queue: sum_ns is"},
	{"max-in-last-bucket", shift_max, "driver.connect: max_ns is"},
	{"exchanges-timed", count_twice, "stages.service.count + losses.untimed is 1000, must be exchanges, which is 2000"},
	{"stages-agree", forget_receive, "stages.receive.count is 999, must be stages.service.count, which is 1000"},
	{"split-is-service", divide_more, "the sum of the parts is"},
	{"split-is-service", divide_others, "runnable is 991, must be cpu.running.count, which is 990"},
	{"parts-of-exchanges", overlap_all, "overlapped is 1001, must be at most exchanges, which is 1000"},
	{"statuses-add-up", forget_status, "its responses.statuses is 6, must be responses.status.4xx, which is 7"},
	{"statuses-add-up", answer_more, "responses.count is 1001, must be at most exchanges, which is 1000"},
	{"statuses-add-up", forget_grpc, "the sum of grpc.status is 5, must be grpc.count, which is 6"},
	{"statuses-add-up", forget_a_kind, "the sum of grpc.kinds is 5, must be grpc.count, which is 6"},
	{"statuses-add-up", fail_more_of_grpc, "grpc.service_failed.count is 1, must be at most the failed ones of grpc.status, which is 0"},
	{"statuses-add-up", fail_more, "responses.service_5xx.count is 1, must be at most responses.status.5xx, which is 0"},
	{"statuses-add-up", route_more, "the sum of a route's status is 990, must be its count, which is 991"},
	{"statuses-add-up", route_fewer, "responses.count is 1000, must be at most the sum of routes, which is 999"},
	{"statuses-add-up", time_more_of_a_route, "a route's service.count is 991, must be at most its count, which is 990"},
	{"connections-balance", forget_close, "accepted is 64, must be at most closes + connections + open.closing, which is 63"},
	{"connections-balance", accept_more, "which is 64"},
	{"time-wait-of-closes", time_wait_more, "is 65, must be at most the sum of closes, which is 64"},
	{"followed-responses", follow_fewer, "is 100, must be at most transmit_followed + older connections, which is 99"},
	{"followed-responses", acknowledge_fewer, "is 101, must be stages.ack.count + losses.ack_unseen, which is 100"},
	{"open-requests", age_nothing, "the sum of open.ages is 1, must be at most open.read + open.unread, which is 0"},
	{"within-the-period", outlast, "stages.service: those longer than the period is 1, must be at most connections older"},
	{"samples-agree", contradict_sample, "samples.inconsistent is 1"},
	{"samples-agree", sample_above, "not below the threshold is 1000"},
	{"series-tiled", leave_gap, "the begin of a point is 700000001, must be the end of the one before, which is 700000000"},
	{"series-tiled", end_late, "must be at most duration_ns, which is 2100000000"},
	{"series-is-total", lose_point, "the sum of series.exchanges is 999, must be that of the period, which is 1000"},
	{"series-is-total", lose_close, "the sum of series.closed_by_client is 63"},
	{"series-is-total", lose_nanosecond, "the sum of series.stages.service.sum_ns is"},
	{"percentiles-ascend", descend, "series.stages.service[1]: p50_ns is"},
	{"responses-add-up", lose_status, "driver: the sum of status is 999, must be requests, which is 1000"},
	{"latencies-nest", late_byte, "driver.first_byte and driver.round_trip"},
	{"within-the-phase", outlast_phase, "driver: round_trip.max_ns is"},
	{"failures-are-errors", hide_failure, "that in failures is 0, must be errors.timeout, which is 3"},
	{"intervals-are-total", make_up_connect, "the sum of connects is 65, must be at most driver.connects, which is 64"},
	{"rows-are-total", lose_row, "driver.statuses: the sum of round_trip.sum_ns is"},
	{"drivers-add-up", lose_part, "the sum of requests is 999, must be driver.requests, which is 1000"},
	{"members-add-up", make_up_member, "the sum of requests is 1001, must be at most driver.requests, which is 1000"},
	{"sweep-steps", lose_latency, "sweep.steps[0]: latency.count is 0, must be requests, which is 7"},
	{"round-trip-parts", lose_network, "joined.slowest[0].parts: network_ns + stages is"},
	{"joined-sums", join_again, "joined.round_trip: count is 1000, must be the number of joined exchanges, which is 999"},
	{"stage-in-round-trip", outlast_round_trip, "joined.stages.service: max_ns is"},
	{"tail-order", swap_slowest, "joined.slowest: what an exchange took is"},
	{"joined-of-requests", join_more, "joined: joined is 1000, must be at most driver.requests, which is 999"},
	{"both-sides-agree", lose_byte, "tcp port 8080: bytes_out is 348999, must be driver.bytes_in, which is 349000"},
	{"both-sides-agree", serve_longer, "joined.sum.stages.service is"},
};
/* clang-format on */

static bool says(char **broken, const char *rule, const char *words)
{
	for (char **text = broken; text && *text; text++)
		if (!strncmp(*text, rule, strlen(rule)) && (*text)[strlen(rule)] == ':' &&
		    strstr(*text, words))
			return true;
	return false;
}

static void a_sound_document_holds(void **state)
{
	autorun struct run *run = sound_run();
	autofree char *text = run_to_json(run);
	char **broken = NULL;

	assert_int_equal(run_check(run, &broken), 0);
	assert_int_equal(run_check_derived(text, strlen(text), run, &broken), 0);
	if (broken)
		fail_msg("%s", broken[0]);
}

static void what_is_broken_is_named(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		autorun struct run *run = sound_run();
		char **broken = NULL;

		damages[i].damage(run);
		assert_int_equal(run_check(run, &broken), 0);
		if (!says(broken, damages[i].rule, damages[i].says))
			fail_msg("%s, '%s': %s", damages[i].rule, damages[i].says,
				 broken ? broken[0] : "holds");
		run_strings_free(broken);
	}
}

static void every_rule_can_be_broken(void **state)
{
	const char *name;

	for (size_t i = 0; (name = run_check_rule(i)); i++) {
		bool found = false;

		for (size_t j = 0; j < ARRAY_SIZE(damages); j++)
			found |= !strcmp(name, damages[j].rule);
		if (!found)
			fail_msg("nothing breaks %s", name);
	}
}

/* docs/run-document.md, Invariants. */
static void every_rule_is_documented(void **state)
{
	autofclose FILE *file = fopen(DOCS_DIR "/run-document.md", "r");
	autofree char *text = need(calloc(1, 1 << 20));
	const char *section, *name;

	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	section = strstr(text, "\n## Invariants\n");
	assert_non_null(section);
	for (size_t i = 0; (name = run_check_rule(i)); i++) {
		autofree char *quoted = NULL;

		assert_true(asprintf(&quoted, "`%s`", name) > 0);
		if (!strstr(section, quoted))
			fail_msg("%s is not documented", name);
	}
}

/* Half of it passes through the series' last point: the reading may have missed 100 ms there. */
static void a_service_at_work_may_be_read_in_between(void **state)
{
	autorun struct run *run = sound_run();
	char **broken = NULL;

	run->services[0].series->points[1].exchanges -= 700;
	run->services[0].series->points[2].exchanges += 700;
	forget_receive(run);
	SERVICE->series->points[1].stages[STAGE_RECEIVE].count--;
	assert_int_equal(run_check(run, &broken), 0);
	if (broken)
		fail_msg("%s", broken[0]);
	STAGE(RECEIVE)->buckets[0] -= 200;
	STAGE(RECEIVE)->count -= 200;
	SERVICE->series->points[1].stages[STAGE_RECEIVE].count -= 200;
	assert_int_equal(run_check(run, &broken), 0);
	assert_true(says(broken, "stages-agree", "is 799"));
	run_strings_free(broken);
}

/*
 * An exchange in flight when a phase began may have taken longer than the phase: one on each
 * connection.
 */
static void older_connections_may_take_longer(void **state)
{
	autorun struct run *run = sound_run();
	char **broken = NULL;

	SERVICE->connections.value = 1;
	run->joined = (run_joined_free(run->joined), NULL);
	SERVICE->series = (run_series_free(SERVICE->series), NULL);
	for (unsigned int i = STAGE_SOCKET_QUEUE; i < STAGE_RESIDENCE_END; i++)
		histogram_record(&SERVICE->stages[i].histogram, 2 * run->duration_ns);
	SERVICE->exchanges++;
	assert_int_equal(run_check(run, &broken), 0);
	if (broken)
		fail_msg("%s", broken[0]);
}

static void figures_that_do_not_follow_are_named(void **state)
{
	autorun struct run *run = sound_run(), *again = NULL;
	autofree char *text = run_to_json(run), *error = NULL;
	char *at = strstr(text, "\"p99_ns\":"), **broken = NULL;

	/* In the first histogram of the text. */
	assert_non_null(at);
	strchr(at, ',')[-1] ^= 1;
	assert_int_equal(run_from_json(text, strlen(text), &again, &error), 0);
	assert_int_equal(run_check(again, &broken), 0);
	assert_null(broken);
	assert_int_equal(run_check_derived(text, strlen(text), again, &broken), 0);
	assert_true(says(broken, "derived-follows", "services[0].stages.accept_queue: p99_ns is"));
	run_strings_free(broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_document_holds),
		cmocka_unit_test(what_is_broken_is_named),
		cmocka_unit_test(every_rule_can_be_broken),
		cmocka_unit_test(every_rule_is_documented),
		cmocka_unit_test(a_service_at_work_may_be_read_in_between),
		cmocka_unit_test(older_connections_may_take_longer),
		cmocka_unit_test(figures_that_do_not_follow_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
