// SPDX-License-Identifier: MIT
/* Each result is counted once; the duration is that of the phase. */
#include "driver/test.h"

#include "payload/detail.h"
#include "run/result.h"
#include "stats/stats.h"

static const struct engine_result ok = {
	.error = RUN_NO_ERROR, .status = 200, .start_ns = 100, .end_ns = 150, .bytes_in = 7};
static const struct engine_result not_found = {
	.error = RUN_NO_ERROR, .status = 404, .start_ns = 50, .end_ns = 60, .bytes_out = 3};
static const struct engine_result refused = {
	.error = RUN_ERROR_REFUSED, .connect_failed = true, .end_ns = 900};

static void fill(struct stats *stats)
{
	stats_record(stats, &ok);
	stats_record(stats, &not_found);
	stats_record(stats, &refused);
	stats_record_connect(stats, 42);
}

static void test_record(void **state)
{
	struct stats stats = {0};

	fill(&stats);
	assert_int_equal(stats.requests, 2);
	assert_int_equal(stats.status[2], 1);
	assert_int_equal(stats.status[4], 1);
	assert_int_equal(stats.errors[RUN_ERROR_STATUS], 1);
	assert_int_equal(stats.errors[RUN_ERROR_REFUSED], 1);
	assert_int_equal(stats_errors(&stats), 2);
	assert_int_equal(stats.last_ns, 900);
	assert_int_equal(stats.round_trip.count, 2);
	assert_int_equal(stats.round_trip.sum, 60);
	assert_int_equal(stats.connect.sum, 42);
}

static void test_verdicts(void **state)
{
	struct engine_result result = ok;
	struct stats stats = {0};

	result.verdict = VERDICT_UNEXPECTED;
	stats_record(&stats, &result);
	result.verdict = VERDICT_BAD_STATUS; /* the inner protocol's status is bad, HTTP's is 200 */
	stats_record(&stats, &result);
	result.status = 404;
	result.verdict = VERDICT_GOOD;
	stats_record(&stats, &result);
	assert_int_equal(stats.requests, 3);
	assert_int_equal(stats.round_trip.count, 3);
	assert_int_equal(stats.errors[RUN_ERROR_UNEXPECTED], 1);
	assert_int_equal(stats.errors[RUN_ERROR_STATUS], 1);
	assert_int_equal(stats_errors(&stats), 2);
}

static void test_add(void **state)
{
	struct stats sum = {0}, part = {0}, empty = {0};

	fill(&part);
	stats_add(&sum, &empty);
	stats_add(&sum, &part);
	stats_add(&sum, &part);
	assert_int_equal(sum.requests, 4);
	assert_int_equal(sum.connects, 2);
	assert_int_equal(sum.bytes_in, 14);
	assert_int_equal(sum.bytes_out, 6);
	assert_int_equal(sum.last_ns, 900);
	assert_int_equal(sum.round_trip.count, 4);
}

static void test_duration(void **state)
{
	struct result_phase phase = {.begin_ns = 10};
	struct stats stats = {0};

	fill(&stats);
	assert_int_equal(result_duration_ns(&stats, &phase), 890);
	phase.stop_ns = 120; /* a last response after the phase does not extend it */
	assert_int_equal(result_duration_ns(&stats, &phase), 110);
	phase.stop_ns = 1050; /* the server fell silent */
	assert_int_equal(result_duration_ns(&stats, &phase), 1040);
	stats = (struct stats){0};
	assert_int_equal(result_duration_ns(&stats, &phase), 1040);
}

static unsigned int told;

static void tell(const struct engine_result *result, char *text, size_t size)
{
	told++;
	detail_add(text, size, "%s at %u", text, (unsigned int)result->end_ns);
}

/* Words are taken once; of several workers those of the earliest failure remain. */
static void test_first_detail(void **state)
{
	struct engine_result failing = {.error = RUN_ERROR_TIMEOUT, .tell = tell};
	struct stats late = {0}, early = {0}, sum = {0};

	for (failing.end_ns = 500; failing.end_ns < 503; failing.end_ns++)
		stats_record(&late, &failing);
	for (failing.end_ns = 300; failing.end_ns < 303; failing.end_ns++)
		stats_record(&early, &failing);
	assert_int_equal(told, 2);
	stats_add(&sum, &late);
	assert_string_equal(sum.error_detail[RUN_ERROR_TIMEOUT], " at 500");
	stats_add(&sum, &early);
	stats_add(&sum, &late);
	assert_string_equal(sum.error_detail[RUN_ERROR_TIMEOUT], " at 300");
	assert_int_equal(sum.first_error_ns[RUN_ERROR_TIMEOUT], 300);
}

/* Two at a time: the phase of 1000 ends amid two of 400; one of 3000 does not matter. */
static void test_drained(void **state)
{
	struct stats stats = {.requests = 4};

	assert_int_equal(stats_drained(&stats, 1000), 0);
	stats.requests = 6;
	stats_record_late(&stats, 200);
	stats_record_late(&stats, 200);
	assert_int_equal(stats_drained(&stats, 1000), 1); /* 6 in 1200 */
	stats.requests = 7;
	stats_record_late(&stats, 2000);
	assert_int_equal(stats_drained(&stats, 1000), 2);
	assert_int_equal(stats_drained(&stats, 0), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_detail), cmocka_unit_test(test_record),
		cmocka_unit_test(test_verdicts),     cmocka_unit_test(test_add),
		cmocka_unit_test(test_duration),     cmocka_unit_test(test_drained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
