// SPDX-License-Identifier: MIT
/* Sampling by hash: bounded, uniform, and the same for every split of the work into workers. */
#include "driver/test.h"

#include <string.h>

#include "stats/sample.h"

static struct sample sample_of(uint16_t port, uint32_t index)
{
	struct sample sample = {.flow = {.client_port = port, .server_port = 80}, .index = index};

	sample.hash = exchange_hash(flow_hash(&sample.flow), index);
	return sample;
}

/* Record exchange @index of the connection from @port, as a worker does. */
static void offer(struct sampler *sampler, uint16_t port, uint32_t index)
{
	struct sample sample = sample_of(port, index);

	if (sampler_wants(sampler, sample.hash))
		sampler_add(sampler, &sample);
}

static void offer_all(struct sampler *sampler, uint16_t first_port, uint16_t end_port)
{
	for (uint16_t port = first_port; port < end_port; port++)
		for (uint32_t index = 0; index < 500; index++)
			offer(sampler, port, index);
}

static void test_keeps_all_that_fit(void **state)
{
	struct sampler sampler;

	assert_int_equal(sampler_open(&sampler, 500), 0);
	offer_all(&sampler, 1, 2);
	assert_int_equal(sampler.count, 500);
	assert_true(sampler.threshold == RUN_SAMPLE_ALL);
	sampler_close(&sampler);
}

/* 100 connections of 500: about a thirty-second of them fits, namely those of lowest hash. */
static void test_halves_when_full(void **state)
{
	struct sampler sampler;
	uint32_t below = 0;

	assert_int_equal(sampler_open(&sampler, 2000), 0);
	offer_all(&sampler, 1, 101);
	assert_true(sampler.threshold < RUN_SAMPLE_ALL);
	for (uint16_t port = 1; port < 101; port++)
		for (uint32_t index = 0; index < 500; index++)
			below += sample_of(port, index).hash < sampler.threshold;
	assert_int_equal(sampler.count, below);
	assert_in_range(sampler.count, 900, 2000);
	for (uint32_t i = 0; i < sampler.count; i++)
		assert_true(sampler.list[i].hash < sampler.threshold);
	sampler_close(&sampler);
}

static void test_merge_takes_the_lower_threshold(void **state)
{
	struct sampler parts[2], sum, whole;

	assert_int_equal(sampler_open(&parts[0], 1000), 0);
	assert_int_equal(sampler_open(&parts[1], 1000), 0);
	assert_int_equal(sampler_open(&sum, 2000), 0);
	assert_int_equal(sampler_open(&whole, 50000), 0);
	offer_all(&parts[0], 1, 11);   /* some of 5,000 */
	offer_all(&parts[1], 11, 101); /* some of 45,000: fewer of each */
	offer_all(&whole, 1, 101);
	assert_true(parts[1].threshold < parts[0].threshold);
	sampler_merge(&sum, &parts[0]);
	sampler_merge(&sum, &parts[1]);
	assert_true(sum.threshold == parts[1].threshold);

	uint32_t below = 0;

	for (uint32_t i = 0; i < whole.count; i++)
		below += whole.list[i].hash < sum.threshold;
	assert_int_equal(sum.count, below);
	for (int i = 0; i < 2; i++)
		sampler_close(&parts[i]);
	sampler_close(&sum);
	sampler_close(&whole);
}

/* The same key again and again, as when a port is reused: no threshold separates them. */
static void test_one_key_without_end(void **state)
{
	struct sampler sampler;

	assert_int_equal(sampler_open(&sampler, 10), 0);
	for (int i = 0; i < 1000; i++)
		offer(&sampler, 7, 0);
	assert_true(sampler.count <= 10);
	sampler_close(&sampler);
}

static void test_none(void **state)
{
	struct sampler sampler;

	assert_int_equal(sampler_open(&sampler, 0), 0);
	offer_all(&sampler, 1, 3);
	assert_int_equal(sampler.count, 0);
	sampler_close(&sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_all_that_fit),
		cmocka_unit_test(test_halves_when_full),
		cmocka_unit_test(test_merge_takes_the_lower_threshold),
		cmocka_unit_test(test_one_key_without_end),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
