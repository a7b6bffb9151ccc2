// SPDX-License-Identifier: MIT
/* Packed readings subtract like the readings themselves, and take little memory. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "model/kept/packed.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"

static void test_numbers(void **state)
{
	const uint64_t words[] = {0, 0, 1, 127, 128, 0, UINT64_MAX, 1ULL << 63, 0, 0, 0};
	uint8_t bytes[PACKED_MOST(ARRAY_SIZE(words))];
	uint64_t read[ARRAY_SIZE(words)];
	size_t length = packed_encode(words, ARRAY_SIZE(words), bytes);

	assert_ptr_equal(packed_decode(bytes, read, ARRAY_SIZE(words)), bytes + length);
	assert_memory_equal(read, words, sizeof(words));
	assert_in_range(length, 1, 34);
}

/* A reading with every kind of text and list that a service may have. */
static struct run *reading(size_t services, uint64_t exchanges)
{
	struct run *run = run_new("test", NULL);

	assert_non_null(run);
	run->duration_ns = exchanges * NSEC_PER_SEC;
	assert_int_equal(run_make_services(run, services), 0);
	for (size_t i = 0; i < services; i++) {
		struct run_service *service = &run->services[i];

		memcpy(service->protocol, "tcp", sizeof("tcp"));
		service->port = (uint16_t)(1000 + i);
		service->exchanges = service->accepted = exchanges;
		service->last_message_ns = exchanges;
		service->calls = strdup("elsewhere");
		service->http2.reason = strdup("not asked for");
		service->routes.protocol = strdup("redis");
		service->routes.list = calloc(2, sizeof(*service->routes.list));
		service->routes.count = 2;
		service->processes = calloc(1, sizeof(*service->processes));
		service->process_count = 1;
		service->listeners = calloc(3, sizeof(*service->listeners));
		service->listener_count = 3;
		for (unsigned int stage = 0; stage < STAGE_COUNT; stage++)
			service->stages[stage].source = strdup("inferred");
		service->stages[STAGE_SERVICE].measured = true;
		service->stages[STAGE_ACK].reason = strdup("not asked for");
		for (size_t j = 0; j < 2; j++) {
			service->routes.list[j].route = strdup("/a");
			service->routes.list[j].count = (j + 1) * exchanges;
		}
		for (uint64_t n = 0; n < exchanges; n++) {
			histogram_record(&service->stages[STAGE_SERVICE].histogram, 1000 * n);
			histogram_record(&service->routes.list[1].service, 1000 * n);
		}
	}
	return run;
}

static void test_subtracts_like_itself(void **state)
{
	autorun struct run *plain = reading(3, 40), *base = reading(3, 40);
	autorun struct run *one = reading(3, 100), *other = reading(3, 100);
	CLEANUP(cleanup_packed_free) struct packed_run *packed = packed_new(base);
	autofree char *expected = NULL, *text = NULL;

	assert_non_null(packed);
	assert_int_equal(base->service_count, 0);
	/* Opened twice: a period is read more than once. */
	assert_int_equal(packed_open(packed), 0);
	packed_close(packed);
	assert_int_equal(packed_open(packed), 0);
	assert_int_equal(base->service_count, 3);
	run_subtract(one, plain);
	run_subtract(other, base);
	packed_close(packed);
	base = NULL; /* the pack's */
	free(one->started_at);
	free(other->started_at);
	one->started_at = strdup("2026-01-01T00:00:00Z");
	other->started_at = strdup("2026-01-01T00:00:00Z");
	expected = run_to_json(one);
	text = run_to_json(other);
	assert_string_equal(text, expected);
	assert_int_equal(one->services[2].exchanges, 60);
	assert_int_equal(other->services[2].routes.list[1].service.count, 60);
}

/* Of 330 KB for a service hardly anything is counts. */
static void test_takes_little(void **state)
{
	struct run *base = reading(50, 200);
	CLEANUP(cleanup_packed_free) struct packed_run *packed = packed_new(base);

	assert_non_null(packed);
	assert_in_range(packed_bytes(packed), 1, 50 * 4096);
}

static void test_without_services(void **state)
{
	struct run *base = reading(0, 1);
	CLEANUP(cleanup_packed_free) struct packed_run *packed = packed_new(base);

	assert_non_null(packed);
	assert_int_equal(packed_open(packed), 0);
	packed_close(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_subtracts_like_itself),
		cmocka_unit_test(test_takes_little),
		cmocka_unit_test(test_without_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
