// SPDX-License-Identifier: MIT
/*
 * lib/join*.c: matched by connection and index alone, parts that add up, no wrong match.
 *
 * Seen to fail:
 * - the higher threshold instead of the lower (lower_threshold_rules)
 * - no overhang (early_is_no_negative_network)
 * - repeated keys in reverse (repeated_keys_are_told_apart)
 * - clocks not compared (shifted_index_is_left_out)
 * - ack taken off (transmit_queue_is_taken_off_ack_is_not)
 * - the index not part of the key (three of them)
 */
#include "unit.h"

#include <stdlib.h>
#include <arpa/inet.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/join.h"
#include "support/runs.h"

#define ALL	    ((uint64_t)SUPPORT_SAMPLED)
#define EACH	    SUPPORT_SAMPLED_EACH
#define CONNECTIONS (SUPPORT_SAMPLED / EACH)

static void check_sum(const struct run_parts *parts)
{
	uint64_t sum = parts->network_ns - parts->overhang_ns;

	for (unsigned int i = 0; i < STAGE_ACK; i++)
		sum += parts->stages[i].value;
	assert_int_equal(sum, parts->round_trip_ns);
}

static void join_is_exact(void **state)
{
	autorun struct run *run = support_sampled_run();
	const struct run_joined *joined;

	assert_int_equal(join_run(run, 20), 0);
	joined = run->joined;
	assert_int_equal(joined->joined, ALL);
	assert_null(joined->reason);
	assert_int_equal(joined->driver_only + joined->observer_only + joined->other_clients +
				 joined->unmeasured + joined->ambiguous + joined->implausible +
				 joined->early,
			 0);
	assert_int_equal(joined->sum.network_ns, ALL * 25000);
	check_sum(&joined->sum);
	assert_int_equal(joined->network.count, ALL);
	assert_int_equal(joined->slowest_count, 20);
	for (size_t i = 0; i < joined->slowest_count; i++) {
		check_sum(&joined->slowest[i].parts);
		assert_true(!i || joined->slowest[i].parts.round_trip_ns <=
					  joined->slowest[i - 1].parts.round_trip_ns);
	}
	assert_int_equal(joined->slowest[0].parts.round_trip_ns, 20045000);
	join_drop_samples(run);
	assert_null(run->driver->samples);
	assert_null(run->services[0].samples);
	/* Joined again without samples, the run stays as it is. */
	assert_int_equal(join_run(run, 5), 0);
	assert_int_equal(run->joined->joined, ALL);
	assert_int_equal(run->joined->slowest_count, 5);
}

static void tail_names_the_stage(void **state)
{
	autorun struct run *run = support_sampled_run();
	const struct run_tail *tail;

	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->tail_count, 4);
	for (size_t i = 0; i < 4; i++)
		check_sum(&run->joined->tail[i].sum);
	tail = &run->joined->tail[2];
	assert_int_equal(tail->per_mille, 990);
	assert_int_equal(tail->count, CONNECTIONS);
	assert_int_equal(tail->sum.stages[STAGE_SERVICE].value, CONNECTIONS * 20000000ULL);
	assert_int_equal(tail->sum.network_ns, CONNECTIONS * 25000ULL);
	assert_false(tail->sum.stages[STAGE_TRANSMIT_QUEUE].known);
}

static void transmit_queue_is_taken_off_ack_is_not(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_sample *seen = &run->services[0].samples->samples[0];

	seen->known |= RUN_SAMPLE_STAGE(STAGE_TRANSMIT_QUEUE) | RUN_SAMPLE_STAGE(STAGE_ACK);
	seen->stage_ns[STAGE_TRANSMIT_QUEUE] = 5000;
	seen->stage_ns[STAGE_ACK] = 40000000;
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->joined, ALL);
	assert_int_equal(run->joined->sum.network_ns, ALL * 25000 - 5000);
	check_sum(&run->joined->sum);
}

/* The client has the response while the server's write still returns. */
static void early_is_no_negative_network(void **state)
{
	autorun struct run *run = support_sampled_run();

	run->services[0].samples->samples[3].stage_ns[STAGE_RESPOND] = 26000;
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->joined, ALL);
	assert_int_equal(run->joined->early, 1);
	assert_int_equal(run->joined->sum.overhang_ns, 1000);
	assert_int_equal(run->joined->sum.network_ns, (ALL - 1) * 25000);
	check_sum(&run->joined->sum);
}

static void nat_is_told(void **state)
{
	autorun struct run *run = support_sampled_run();

	for (size_t i = 0; i < run->services[0].samples->count; i++)
		run->services[0].samples->samples[i].flow.client_port ^= 0x5555;
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->joined, 0);
	assert_int_equal(run->joined->unknown_flow, ALL);
	assert_int_equal(run->joined->other_clients, ALL);
	assert_non_null(strstr(run->joined->reason, "NAT"));
	assert_int_equal(run->joined->slowest_count, 0);
}

/* The side that keeps fewer decides; the other's further samples count as no loss. */
static void lower_threshold_rules(void **state)
{
	autorun struct run *run = support_sampled_run();
	size_t kept;

	run_samples_lower(run->services[0].samples, RUN_SAMPLE_ALL / 4);
	run_samples_lower(run->driver->samples, RUN_SAMPLE_ALL / 2);
	kept = run->services[0].samples->count;
	assert_in_range(kept, ALL / 8, ALL / 2);
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->threshold, RUN_SAMPLE_ALL / 4);
	assert_int_equal(run->joined->joined, kept);
	assert_int_equal(run->joined->driver_only, 0);
	assert_int_equal(run->joined->observer_only, 0);
}

static void lost_ones_are_counted(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_samples *sent = run->driver->samples, *seen = run->services[0].samples;

	seen->count -= 3;
	seen->lost = 3;
	sent->samples[15] = sent->samples[--sent->count];
	seen->samples[0].index = EACH + 7; /* of the warm-up's end, or after a failure */
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->joined, ALL - 4 - 1);
	assert_int_equal(run->joined->driver_only, 3 + 1);
	assert_int_equal(run->joined->observer_only, 1);
	assert_int_equal(run->joined->unmeasured, 1);
	assert_non_null(strstr(run->joined->reason, "lost 3 samples"));
}

/* A reused port: the same key twice. */
static void repeated_keys_are_told_apart(void **state)
{
	autorun struct run *run = support_sampled_run();

	support_add_exchange(run, 40000, 0, 5000000000);
	support_add_exchange(run, 40001, 0, 5000001000);
	run->services[0].samples->count--; /* of the second, the observer has only one */
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->repeated, 2);
	assert_int_equal(run->joined->ambiguous, 2);
	assert_int_equal(run->joined->joined, ALL + 1 - 1);
	assert_int_equal(run->joined->implausible, 0);
	assert_int_equal(run->joined->sum.network_ns, ALL * 25000);
}

/* Give connections below port @port to the second service, whose clock is ahead. */
static void move_to_other_host(struct run *run, uint16_t port, uint64_t ahead_ns)
{
	struct run_samples *all = run->services[0].samples, *other = run->services[1].samples;
	size_t kept = 0;

	for (size_t i = 0; i < all->count; i++) {
		struct run_sample *sample = &all->samples[i], *moved;

		if (sample->flow.client_port >= port) {
			all->samples[kept++] = *sample;
			continue;
		}
		moved = run_add_sample(other);
		assert_non_null(moved);
		*moved = *sample;
		moved->arrival_ns += ahead_ns;
	}
	all->count = kept;
}

/* Give connections from port @port on another client, whose clock is far ahead. */
static void move_to_other_client(struct run *run, uint16_t port)
{
	for (size_t i = 0; i < run->driver->samples->count; i++) {
		struct run_sample *sample = &run->driver->samples->samples[i];

		sample->start_ns += sample->flow.client_port >= port ? 3000000000000 : 0;
		sample->flow.client[3] ^= sample->flow.client_port >= port;
	}
	for (size_t i = 0; i < run->service_count; i++)
		for (size_t k = 0; k < run->services[i].samples->count; k++) {
			struct flow *flow = &run->services[i].samples->samples[k].flow;

			flow->client[3] ^= flow->client_port >= port;
		}
}

/* Two observers and two drivers have four clocks; none contradicts the others. */
static void each_host_has_its_clock(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_parts sum = {0};

	assert_non_null(ARRAY_APPEND(run->services, run->service_count));
	run->services[0].host = strdup("a");
	run->services[1].host = strdup("b");
	run->services[1].samples = run_samples_new();
	move_to_other_host(run, 40000 + CONNECTIONS / 4, 7000000000000);
	move_to_other_client(run, 40000 + CONNECTIONS / 2);
	run->driver->part_count = 2;
	run->driver->parts = calloc(2, sizeof(*run->driver->parts));
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->implausible, 0);
	assert_int_equal(run->joined->joined, ALL);
	assert_int_equal(run->joined->host_count, 2);
	assert_string_equal(run->joined->hosts[1].name, "b");
	assert_int_equal(run->joined->hosts[1].count, CONNECTIONS / 4 * EACH);
	for (size_t i = 0; i < 2; i++) {
		check_sum(&run->joined->hosts[i].sum);
		run_parts_add(&sum, &run->joined->hosts[i].sum);
	}
	assert_memory_equal(&sum, &run->joined->sum, sizeof(sum));
}

/* On one host, joined exchanges are told apart by pod, and by container beside pods. */
static void each_pod_has_its_sum(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_parts sum = {0};

	assert_non_null(ARRAY_APPEND(run->services, run->service_count));
	strcpy(run->services[0].place.pod, "web-1");
	strcpy(run->services[0].place.pod_namespace, "shop");
	strcpy(run->services[1].place.container, "web");
	run->services[1].samples = run_samples_new();
	move_to_other_host(run, 40000 + CONNECTIONS / 4, 0);
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->joined, ALL);
	assert_int_equal(run->joined->host_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(run->joined->hosts[i].name, run->host);
		check_sum(&run->joined->hosts[i].sum);
		run_parts_add(&sum, &run->joined->hosts[i].sum);
	}
	assert_string_equal(run->joined->hosts[0].place, "pod shop/web-1");
	assert_string_equal(run->joined->hosts[1].place, "container web");
	assert_int_equal(run->joined->hosts[1].count, CONNECTIONS / 4 * EACH);
	assert_memory_equal(&sum, &run->joined->sum, sizeof(sum));
}

/* Give @run, of the hosts "a" and "b", a front on "a" that calls @towards. */
static struct run_call *call(struct run *run, const char *towards)
{
	struct run_call *row = ARRAY_APPEND(run->services[0].called, run->services[0].called_count);

	assert_non_null(row);
	strcpy(row->towards, towards);
	row->connections = 7;
	return row;
}

/* A service has the address that it is bound to, and those that its clients asked. */
static void upstreams_of_other_hosts_are_found(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_service *front, *upstream;
	struct run_sample *sample;

	assert_non_null(ARRAY_APPEND(run->services, run->service_count));
	front = &run->services[0];
	upstream = &run->services[1];
	front->host = strdup("a");
	upstream->host = strdup("b");
	strcpy(upstream->protocol, "tcp");
	strcpy(upstream->address, "0.0.0.0");
	upstream->port = 9000;
	upstream->netns = 77;
	upstream->accepted = 6;
	upstream->older_connections = (struct run_number){true, 3};
	upstream->samples = run_samples_new();
	sample = run_add_sample(upstream->samples);
	sample->flow.server[2] = htonl(0xffff);
	sample->flow.server[3] = htonl(0x0a000005);
	sample->flow.server_port = 9000;
	call(run, "10.0.0.6:9000");
	call(run, "10.0.0.5:9000")->serves_too = (struct run_number){true, 443};
	call(run, "10.0.0.5:9001");
	front->calls = strdup("unix:/run/x, 10.0.0.5:9000, 10.0.0.5:90001");
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(front->called_count, 2);
	assert_string_equal(front->called[0].towards, "10.0.0.6:9000");
	assert_string_equal(front->called[1].towards, "10.0.0.5:9001");
	assert_string_equal(front->calls, "unix:/run/x, 10.0.0.5:90001");
	assert_int_equal(front->upstream_count, 1);
	assert_string_equal(front->upstreams[0].host, "b");
	assert_int_equal(front->upstreams[0].netns, 77);
	assert_int_equal(front->upstreams[0].connections, 7);
	assert_int_equal(front->upstreams[0].others, 2);
	assert_int_equal(front->upstreams[0].serves_too.value, 443);
	assert_null(front->upstreams[0].reason);
	/* Once more, as if the joined document were read: nothing changes. */
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(front->upstreams[0].connections, 7);
}

static void an_address_of_two_hosts_is_not_known(void **state)
{
	autorun struct run *run = support_observer_run();

	for (size_t i = 1; i < 3; i++) {
		struct run_service *upstream = ARRAY_APPEND(run->services, run->service_count);

		assert_non_null(upstream);
		upstream->host = strdup(i == 1 ? "b" : "c");
		strcpy(upstream->protocol, "tcp");
		strcpy(upstream->address, "192.168.0.2");
		upstream->port = 9000;
	}
	run->services[0].host = strdup("a");
	call(run, "192.168.0.2:9000");
	assert_int_equal(join_run(run, 10), 0);
	assert_string_equal(run->services[0].upstreams[0].reason, "several hosts have its address");
}

/* On one connection the server's count is one ahead, so every match would be wrong. */
static void shifted_index_is_left_out(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_samples *seen = run->services[0].samples;

	for (size_t i = 0; i < seen->count; i++)
		seen->samples[i].index += seen->samples[i].flow.client_port == 40000;
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->implausible, EACH - 1);
	assert_int_equal(run->joined->joined, ALL - EACH);
	assert_int_equal(run->joined->sum.network_ns, (ALL - EACH) * 25000);
	assert_non_null(strstr(run->joined->reason, "contradict"));
}

static void nothing_to_join_is_explained(void **state)
{
	autorun struct run *run = support_sampled_run(), *alone = support_driver_run();

	run_samples_free(run->driver->samples);
	run->driver->samples = NULL;
	run->driver->unsampled = strdup("not this kind of target");
	assert_int_equal(join_run(run, 10), 0);
	assert_string_equal(run->joined->reason, "not this kind of target");
	assert_int_equal(join_run(alone, 10), 0);
	assert_null(alone->joined);
}

/* By the driver's steps; a sample of an unknown step has none. */
static void steps_are_told_apart(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_samples *sent = run->driver->samples;
	struct run_row_list *rows = &run->driver->rows[RUN_ROWS_STEP];
	struct run_parts sum = {0};
	uint64_t foreign = 0;

	rows->count = 2;
	rows->list = calloc(2, sizeof(*rows->list));
	assert_non_null(rows->list);
	rows->list[0].name = strdup("create");
	rows->list[1].name = strdup("read");
	for (size_t i = 0; i < sent->count; i++) {
		sent->samples[i].known |= i % 4 ? RUN_SAMPLE_STEP : 0;
		sent->samples[i].step = sent->samples[i].index % 3;
		foreign += !(i % 4) || sent->samples[i].step == 2;
	}
	assert_int_equal(join_run(run, 10), 0);
	assert_int_equal(run->joined->step_count, 2);
	assert_string_equal(run->joined->steps[1].name, "read");
	assert_int_equal(run->joined->steps[0].count + run->joined->steps[1].count, ALL - foreign);
	for (size_t i = 0; i < 2; i++) {
		check_sum(&run->joined->steps[i].sum);
		run_parts_add(&sum, &run->joined->steps[i].sum);
	}
	assert_int_equal(sum.network_ns, (ALL - foreign) * 25000);
}

static struct run *run_with_steps(const char *first, const char *second)
{
	struct run *run = support_driver_run();
	struct run_row_list *rows = &run->driver->rows[RUN_ROWS_STEP];

	run_row_list_clear(rows);
	rows->count = 2;
	rows->list = calloc(2, sizeof(*rows->list));
	assert_non_null(rows->list);
	rows->list[0].name = strdup(first);
	rows->list[1].name = strdup(second);
	run_samples_free(run->driver->samples);
	run->driver->samples = NULL;
	return run;
}

static void add_step_sample(struct run *run, uint32_t step)
{
	struct run_sample *sample;

	if (!run->driver->samples)
		run->driver->samples = run_samples_new();
	assert_non_null(run->driver->samples);
	sample = run_add_sample(run->driver->samples);
	assert_non_null(sample);
	sample->index = (uint32_t)run->driver->samples->count;
	sample->known = RUN_SAMPLE_STEP;
	sample->step = step;
}

/* Samples name their step by its index, which changes in the merged list. */
static void samples_keep_their_step(void **state)
{
	autorun struct run *run = run_with_steps("create", "read");
	struct run *other = run_with_steps("delete", "create");
	autofree char *error = NULL;
	const struct run_samples *samples;

	add_step_sample(run, 1);
	for (uint32_t step = 0; step < 3; step++)
		add_step_sample(other, step);
	assert_int_equal(run_merge(run, other, &error), 0);
	run_free(other);
	samples = run->driver->samples;
	assert_int_equal(samples->count, 4);
	assert_int_equal(samples->samples[0].step, 1);
	assert_int_equal(samples->samples[1].step, 2); /* delete */
	assert_int_equal(samples->samples[2].step, 0); /* create */
	assert_false(samples->samples[3].known & RUN_SAMPLE_STEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(join_is_exact),
		cmocka_unit_test(tail_names_the_stage),
		cmocka_unit_test(transmit_queue_is_taken_off_ack_is_not),
		cmocka_unit_test(early_is_no_negative_network),
		cmocka_unit_test(nat_is_told),
		cmocka_unit_test(lower_threshold_rules),
		cmocka_unit_test(lost_ones_are_counted),
		cmocka_unit_test(repeated_keys_are_told_apart),
		cmocka_unit_test(shifted_index_is_left_out),
		cmocka_unit_test(nothing_to_join_is_explained),
		cmocka_unit_test(steps_are_told_apart),
		cmocka_unit_test(each_host_has_its_clock),
		cmocka_unit_test(each_pod_has_its_sum),
		cmocka_unit_test(upstreams_of_other_hosts_are_found),
		cmocka_unit_test(an_address_of_two_hosts_is_not_known),
		cmocka_unit_test(samples_keep_their_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
