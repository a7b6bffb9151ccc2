// SPDX-License-Identifier: MIT
/* lib/run/series.c and its JSON: points between readings, joined, written, refused. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "sojourn/series.h"
#include "support/runs.h"
#include "support/series.h"

/* Ten thousand seconds: no more points than allowed, in order, without gaps or losses. */
static void joining_keeps_the_sums(void **state)
{
	CLEANUP(cleanup_run_series_free) struct run_series *series = run_series_new();
	uint64_t exchanges = 0, sum_ns = 0, end_ns = 0, dropped = 0, running_ns = 0, closed = 0;

	assert_non_null(series);
	for (uint64_t i = 0; i < 10000; i++) {
		struct run_point point = {
			.begin_ns = i * 10, .duration_ns = 10, .exchanges = i, .time_wait = i};

		point.known = RUN_POINT_TIME_WAIT | RUN_POINT_STAGE(STAGE_SERVICE) | RUN_POINT_CPU;
		point.losses[RUN_LOSS_DROPPED] = 5 * i;
		point.closes[RUN_TIMED_OUT] = i;
		point.cpu.sum_ns[RUN_CPU_RUNNING] = 7 * i;
		point.stages[STAGE_SERVICE].sum_ns = 3 * i;
		assert_int_equal(run_series_add(series, &point), 0);
		assert_in_range(series->count, 1, RUN_SERIES_MAX);
	}
	for (size_t i = 0; i < series->count; i++) {
		const struct run_point *point = &series->points[i];

		assert_int_equal(point->begin_ns, end_ns);
		end_ns += point->duration_ns;
		exchanges += point->exchanges;
		sum_ns += point->stages[STAGE_SERVICE].sum_ns;
		dropped += point->losses[RUN_LOSS_DROPPED];
		closed += point->closes[RUN_TIMED_OUT];
		running_ns += point->cpu.sum_ns[RUN_CPU_RUNNING];
		assert_true(point->known & RUN_POINT_CPU);
		assert_int_equal(point->time_wait, end_ns / 10 - 1); /* at the point's end */
	}
	assert_int_equal(end_ns, 100000);
	assert_int_equal(exchanges, 10000 * 9999 / 2);
	assert_int_equal(sum_ns, 3 * exchanges);
	assert_int_equal(dropped, 5 * exchanges);
	assert_int_equal(closed, exchanges);
	assert_int_equal(running_ns, 7 * exchanges);
}

/* If one of two points did not count overflows, their sum is unknown. */
static void joined_overflows_need_both(void **state)
{
	for (unsigned int known = 0; known < 4; known++) {
		CLEANUP(cleanup_run_series_free) struct run_series *series = run_series_new();
		struct run_point points[2] = {{.overflows = 3}, {.overflows = 4}};

		for (unsigned int i = 0; i < 2; i++)
			points[i].known = known & 1U << i ? RUN_POINT_OVERFLOWS : 0;
		for (unsigned int n = 0; n <= RUN_SERIES_MAX; n++)
			assert_int_equal(run_series_add(series, &points[n % 2]), 0);
		assert_int_equal(series->points[0].known, known == 3 ? RUN_POINT_OVERFLOWS : 0);
		assert_int_equal(series->points[0].overflows, known == 3 ? 7 : 0);
	}
}

static struct run_point with_service(uint64_t count, uint64_t p50_ns)
{
	struct run_point point = {.known = RUN_POINT_STAGE(STAGE_SERVICE)};

	point.known |= count ? RUN_POINT_QUANTILE(STAGE_SERVICE) : 0;
	point.stages[STAGE_SERVICE] = (struct run_point_stage){.count = count, .p50_ns = p50_ns};
	return point;
}

/* A percentile covers all exchanges of a point or none: two of them do not make a third. */
static void joined_percentiles_are_not_known(void **state)
{
	const struct {
		uint64_t first, second;
		bool known;
		uint64_t p50_ns;
	} rows[] = {{5, 5, false, 0}, {5, 0, true, 100}, {0, 5, true, 200}, {0, 0, false, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(cleanup_run_series_free) struct run_series *series = run_series_new();
		struct run_point a = with_service(rows[i].first, rows[i].first ? 100 : 0);
		struct run_point b = with_service(rows[i].second, rows[i].second ? 200 : 0);
		const struct run_point *joined = series->points;

		for (unsigned int n = 0; n <= RUN_SERIES_MAX; n++)
			assert_int_equal(run_series_add(series, n % 2 ? &b : &a), 0);
		joined = &series->points[0];
		assert_int_equal(!!(joined->known & RUN_POINT_QUANTILE(STAGE_SERVICE)),
				 rows[i].known);
		assert_int_equal(joined->stages[STAGE_SERVICE].p50_ns, rows[i].p50_ns);
		assert_int_equal(joined->stages[STAGE_SERVICE].count,
				 rows[i].first + rows[i].second);
	}
}

static void point_is_what_came_since(void **state)
{
	autorun struct run *run = support_observer_run(), *earlier = support_observer_run();
	struct run_service *now = &run->services[0], *before = &earlier->services[0];
	struct run_point point;

	now->exchanges += 7;
	now->closes[RUN_RESET_BY_CLIENT] += 2;
	now->closes[RUN_RESET_BY_SERVER] += 1;
	before->losses[RUN_LOSS_UNMATCHED] = 10;
	now->losses[RUN_LOSS_UNMATCHED] = 14;
	before->accept_queue.overflows.value = 2;
	now->accept_queue.overflows.value = 11;
	for (unsigned int i = 0; i < 3; i++)
		histogram_record(&now->stages[STAGE_SERVICE].histogram, 40);
	run_point_between(before, now, &point);
	assert_int_equal(point.exchanges, 7);
	assert_int_equal(point.resets, 3);
	assert_int_equal(point.accepted, 0);
	assert_int_equal(point.closes[RUN_RESET_BY_CLIENT], 2);
	assert_int_equal(point.closes[RUN_CLOSE_BY_CLIENT], 0);
	assert_int_equal(point.losses[RUN_LOSS_UNMATCHED], 4);
	assert_true(point.known & RUN_POINT_OVERFLOWS);
	assert_int_equal(point.overflows, 9);
	assert_int_equal(point.depth_max, 3);
	assert_false(point.known & (RUN_POINT_CPU | RUN_POINT_MIN_RTT));
	assert_int_equal(point.stages[STAGE_SERVICE].count, 3);
	assert_int_equal(point.stages[STAGE_SERVICE].sum_ns, 120);
	assert_int_equal(point.stages[STAGE_SERVICE].p99_ns, 40);
	assert_false(point.known & RUN_POINT_STAGE(STAGE_ACK));
	assert_false(point.known & RUN_POINT_QUANTILE(STAGE_SOCKET_QUEUE));
	assert_int_equal(point.time_wait, 34);
	assert_int_equal(point.fds, now->processes[0].open_fds.value);
	run_point_between(NULL, now, &point);
	assert_int_equal(point.exchanges, now->exchanges);
}

static void what_is_not_known_is_written_as_such(void **state)
{
	autorun struct run *run = support_observer_run(), *again = NULL;
	struct run_series *series = run->services[0].series = run_series_new();
	struct run_point known = with_service(5, 100), unknown = {.exchanges = 1};
	autofree char *text = NULL, *error = NULL;

	assert_int_equal(run_series_add(series, &known), 0);
	assert_int_equal(run_series_add(series, &unknown), 0);
	text = run_to_json(run);
	assert_non_null(strstr(text, "\"p50_ns\":[100,null]"));
	assert_int_equal(run_from_json(text, strlen(text), &again, &error), 0);
	assert_int_equal(again->services[0].series->count, 2);
	assert_memory_equal(again->services[0].series->points, series->points,
			    2 * sizeof(struct run_point));
}

/* clang-format off */
static const struct {
	const char *series, *error;
} damages[] = {
	{"[]", ": is an array, must be an object"},
	{"{}", ".started_ns: is missing, must be a whole number from 0 to 9223372036854775807"},
	{"{\"started_ns\":1}", ".begin_ns: is missing, must be an array of at most 9600 elements"},
	{"{\"started_ns\":1,\"begin_ns\":[1]}", ".duration_ns: is missing, must be an array of 1 elements"},
	{"{\"started_ns\":1,\"begin_ns\":[],\"duration_ns\":[],\"accepted\":[],\"exchanges\":[],\"bytes_in\":[],\"bytes_out\":[],\"retransmits\":[],\"resets\":[],\"time_wait_created\":[],\"losses\":{\"dropped\":[1]}}", ".losses.dropped: is an array, must be an array of 0 elements"},
	{"{\"started_ns\":1,\"begin_ns\":[-1]}", ".begin_ns[0]: is -1, must be a whole number from 0 to 9223372036854775807"},
};
/* clang-format on */

static void damage_is_refused_by_name(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
		support_refuse_member("series", damages[i].series, damages[i].error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joining_keeps_the_sums),
		cmocka_unit_test(joined_overflows_need_both),
		cmocka_unit_test(joined_percentiles_are_not_known),
		cmocka_unit_test(point_is_what_came_since),
		cmocka_unit_test(what_is_not_known_is_written_as_such),
		cmocka_unit_test(damage_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
