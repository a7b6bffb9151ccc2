// SPDX-License-Identifier: MIT
/* A load shared among workers is the whole load, and their counts add up to all of it. */
#include "driver/test.h"

#include <stdlib.h>

#include "run/crew.h"
#include "load/share.h"
#include "sojourn/cleanup.h"

static void test_shares(void **state)
{
	static const uint32_t loads[][2] = {{1, 1}, {7, 3}, {9, 3}, {1000, 7}, {256, 256}};

	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		uint32_t slots = loads[i][0], count = loads[i][1], before = 0;

		for (uint32_t index = 0; index < count; index++) {
			assert_int_equal(share_before(slots, count, index), before);
			assert_in_range(share_of(slots, count, index), slots / count,
					slots / count + 1);
			before += share_of(slots, count, index);
		}
		assert_int_equal(before, slots);
	}
}

static void offer(struct sampler *sampler, uint32_t begin, uint32_t end)
{
	for (uint32_t index = begin; index < end; index++) {
		struct sample sample = {.flow = {.client_port = 1, .server_port = 80},
					.index = index};

		sample.hash = exchange_hash(flow_hash(&sample.flow), index);
		if (sampler_wants(sampler, sample.hash))
			sampler_add(sampler, &sample);
	}
}

/* The lowest threshold applies, in any @order, and no sample below it is lost for lack of room. */
static void check_added(const int order[2], const struct sampler *whole)
{
	struct crew_result *result = calloc(1, sizeof(*result));
	const struct series series = {.interval_ns = 1};
	struct stats *stats = calloc(1, sizeof(*stats));
	struct sampler parts[2];
	uint64_t lowest;
	uint32_t below = 0;

	assert_non_null(result);
	assert_non_null(stats);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sampler_open(&parts[i], 1000), 0);
	offer(&parts[0], 0, 900);
	offer(&parts[1], 900, 9000);
	lowest = parts[1].threshold;
	assert_true(lowest < parts[0].threshold);
	stats->requests = 5;
	for (int i = 0; i < 2; i++) {
		struct sampler *part = &parts[order[i]];

		assert_int_equal(crew_result_add(result, stats, &series, part), 0);
		assert_null(part->list);
	}
	assert_int_equal(result->stats.requests, 10);
	assert_true(result->samples.threshold == lowest);
	for (uint32_t i = 0; i < whole->count; i++)
		below += whole->list[i].hash < lowest;
	assert_int_equal(result->samples.count, below);
	crew_result_clear(result);
	free(result);
	free(stats);
}

static void test_samples(void **state)
{
	struct sampler whole;

	assert_int_equal(sampler_open(&whole, 10000), 0);
	offer(&whole, 0, 9000);
	check_added((const int[]){0, 1}, &whole);
	check_added((const int[]){1, 0}, &whole);
	sampler_close(&whole);
}

static void test_worker_samples(void **state)
{
	const struct run_settings settings = {.samples = 10, .threads = 4};
	const struct run_settings none = {.threads = 4};

	assert_int_equal(crew_worker_samples(&settings), 3);
	assert_int_equal(crew_worker_samples(&none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_worker_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
