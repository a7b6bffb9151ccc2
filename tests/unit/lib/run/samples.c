// SPDX-License-Identifier: MIT
/* lib/run/samples.c and its JSON: kept, thinned, subtracted, refused. */
#include "unit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/run.h"
#include "support/runs.h"

static struct flow flow_from_port(uint16_t port)
{
	struct flow flow = {.client_port = port, .server_port = 8080};

	flow.client[2] = flow.server[2] = htonl(0xffff);
	flow.client[3] = flow.server[3] = htonl(0x7f000001);
	return flow;
}

/* @count exchanges, ten on each connection. */
static struct run_samples *some_samples(unsigned int count)
{
	struct run_samples *samples = run_samples_new();

	assert_non_null(samples);
	for (unsigned int i = 0; i < count; i++) {
		struct run_sample *sample = run_add_sample(samples);

		assert_non_null(sample);
		sample->flow = flow_from_port((uint16_t)(1024 + i / 10));
		sample->index = i % 10;
		sample->known = RUN_SAMPLE_ARRIVAL;
		sample->arrival_ns = i;
	}
	return samples;
}

static uint32_t hash_of(const struct run_sample *sample)
{
	return exchange_hash(flow_hash(&sample->flow), sample->index);
}

/*
 * Halving the threshold keeps those below it, about half of them; it can only be lowered further.
 */
static void lowering_keeps_those_below(void **state)
{
	autosamples struct run_samples *samples = some_samples(10000);
	unsigned int below = 0;

	for (size_t i = 0; i < samples->count; i++)
		below += hash_of(&samples->samples[i]) < RUN_SAMPLE_ALL / 2;
	run_samples_lower(samples, RUN_SAMPLE_ALL);
	assert_int_equal(samples->count, 10000);
	run_samples_lower(samples, RUN_SAMPLE_ALL / 2);
	assert_int_equal(samples->count, below);
	assert_in_range(below, 4700, 5300);
	for (size_t i = 0; i < samples->count; i++)
		assert_true(hash_of(&samples->samples[i]) < RUN_SAMPLE_ALL / 2);
	run_samples_lower(samples, RUN_SAMPLE_ALL);
	assert_int_equal(samples->threshold, RUN_SAMPLE_ALL / 2);
	run_samples_lower(samples, 0);
	assert_int_equal(samples->count, 0);
}

/* Both sides implement this hash separately, in the kernel and in the driver: it is a contract. */
static void hash_knows_who_is_who(void **state)
{
	struct flow flow = flow_from_port(40000), other = flow;

	other.client_port = flow.server_port;
	other.server_port = flow.client_port;
	assert_int_not_equal(flow_hash(&flow), flow_hash(&other));
	assert_int_not_equal(exchange_hash(flow_hash(&flow), 0),
			     exchange_hash(flow_hash(&flow), 1));
}

static void subtracting_removes_what_was_there(void **state)
{
	autosamples struct run_samples *now = some_samples(35);
	autorun struct run *run = support_observer_run(), *earlier = support_observer_run();
	struct run_samples *samples;

	now->lost = 7;
	now->inconsistent = 2;
	run->services[0].samples = samples = TAKE_PTR(now);
	earlier->services[0].samples = some_samples(21);
	earlier->services[0].samples->lost = 3;
	earlier->services[0].samples->inconsistent = 2;
	run_subtract(run, earlier);
	assert_int_equal(samples->count, 14);
	for (size_t i = 0; i < samples->count; i++)
		assert_true(samples->samples[i].arrival_ns >= 21);
	assert_int_equal(samples->lost, 4);
	assert_int_equal(samples->inconsistent, 0);
}

/* The client reused a source port: the same key, and another exchange, on either side. */
static void subtracting_keeps_a_port_used_again(void **state)
{
	autorun struct run *run = support_observer_run(), *earlier = support_observer_run();
	struct run_samples *samples = run->services[0].samples = some_samples(4);

	earlier->services[0].samples = some_samples(4);
	for (size_t i = 0; i < 2; i++) {
		struct run_sample *again = run_add_sample(samples);

		assert_non_null(again);
		*again = samples->samples[i];
		again->arrival_ns += i ? 0 : 1000;
		again->start_ns += i ? 2000 : 0;
	}
	run_subtract(run, earlier);
	assert_int_equal(samples->count, 2);
	assert_int_equal(samples->samples[0].index, 0);
	assert_int_equal(samples->samples[0].arrival_ns, 1000);
	assert_int_equal(samples->samples[1].index, 1);
	assert_int_equal(samples->samples[1].start_ns, 2000);
}

/*
 * Twenty thousand samples and their connections must fit into one HTTP answer. Their known values
 * differ.
 */
static void many_samples_stay_small(void **state)
{
	autorun struct run *run = support_observer_run(), *again = NULL;
	autofree char *error = NULL, *text = NULL;
	size_t empty;

	text = run_to_json(run);
	empty = strlen(text);
	free(text);
	run->services[0].samples = some_samples(20000);
	for (size_t i = 0; i < 20000; i++) {
		struct run_sample *sample = &run->services[0].samples->samples[i];

		sample->known |= RUN_SAMPLE_STAGE(STAGE_COUNT) - 1;
		sample->arrival_ns += 123456789012345;
		if (i % 3) {
			sample->known |= RUN_SAMPLE_PID;
			sample->pid = (uint32_t)i;
		}
		for (unsigned int stage = 0; stage < STAGE_COUNT; stage++)
			sample->stage_ns[stage] = 12345;
	}
	text = run_to_json(run);
	assert_in_range(strlen(text) - empty, 20000, 20000 * 100);
	assert_int_equal(run_from_json(text, strlen(text), &again, &error), 0);
	qsort(run->services[0].samples->samples, 20000, sizeof(struct run_sample),
	      run_sample_compare);
	assert_int_equal(again->services[0].samples->count, 20000);
	assert_memory_equal(again->services[0].samples->samples, run->services[0].samples->samples,
			    20000 * sizeof(struct run_sample));
}

#define FLOWS                                                                                     \
	"\"flows\":{\"client\":[\"::1\"],\"client_port\":[1],\"server\":[\"10.0.0.1\"],\"server_" \
	"port\":[2]}"
#define HEAD "{\"threshold\":4294967296,\"lost\":0,\"inconsistent\":0,"

/* clang-format off */
static const struct {
	const char *samples, *error;
} damages[] = {
	{"[]", ": is an array, must be an object"},
	{"{}", ".threshold: is missing, must be a whole number from 0 to 4294967296"},
	{"{\"threshold\":4294967297}", ".threshold: is 4294967297, must be a whole number from 0 to 4294967296"},
	{HEAD "\"flow\":[]}", ".flows.client: is missing, must be an array of at most 1048576 elements"},
	{HEAD FLOWS "}", ".flow: is missing, must be an array of at most 1048576 elements"},
	{HEAD FLOWS ",\"flow\":[0]}", ".index: is missing, must be an array of 1 elements"},
	{HEAD FLOWS ",\"flow\":[1],\"index\":[0]}", ".flow[0]: is missing, must be one of the 1 flows"},
	{HEAD FLOWS ",\"flow\":[0],\"index\":[4294967296]}", ".index[0]: is 4294967296, must be a whole number from 0 to 4294967295"},
	{HEAD FLOWS ",\"flow\":[0],\"index\":[null]}", ".index[0]: is null, must be a whole number from 0 to 4294967295"},
	{HEAD FLOWS ",\"flow\":[0],\"index\":[0],\"start_ns\":[1,2]}", ".start_ns: is an array, must be an array of 1 elements"},
	{HEAD FLOWS ",\"flow\":[0],\"index\":[0],\"stages\":7}", ".stages: is 7, must be an object"},
	{HEAD FLOWS ",\"flow\":[0],\"index\":[0],\"stages\":{\"service\":[-1]}}",
	 ".stages.service[0]: is -1, must be a whole number from 0 to 9223372036854775807"},
	{HEAD "\"flows\":{\"client\":[\"localhost\"]}}", ".flows.client[0]: is \"localhost\", must be an IPv4 or IPv6 address"},
	{HEAD "\"flows\":{\"client\":[\"::1\"],\"client_port\":[65536]}}",
	 ".flows.client_port[0]: is 65536, must be a whole number from 0 to 65535"},
	{HEAD "\"flows\":{\"client\":[\"::1\"],\"client_port\":[]}}", ".flows.client_port: is an array, must be an array of 1 elements"},
};
/* clang-format on */

static void damage_is_refused_by_name(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
		support_refuse_member("samples", damages[i].samples, damages[i].error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowering_keeps_those_below),
		cmocka_unit_test(hash_knows_who_is_who),
		cmocka_unit_test(subtracting_removes_what_was_there),
		cmocka_unit_test(subtracting_keeps_a_port_used_again),
		cmocka_unit_test(many_samples_stay_small),
		cmocka_unit_test(damage_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
