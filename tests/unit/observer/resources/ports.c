// SPDX-License-Identifier: MIT
/* Counting ports per destination: range, reserved, held, TIME_WAIT reuse, bounded memory. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/net/ports.h"
#include "unit.h"

static struct resource_socket socket_to(uint32_t destination, uint16_t source_port, uint8_t state)
{
	struct resource_socket s = {.family = AF_INET,
				    .state = state,
				    .source_port = source_port,
				    .destination_port = 80};

	destination = htonl(destination);
	memcpy(s.destination.bytes, &destination, sizeof(destination));
	s.time_wait = state == SOCKET_TIME_WAIT;
	return s;
}

static struct port_rules rules_of(uint16_t low, uint16_t high)
{
	return (struct port_rules){
		.low = low, .high = high, .reuse = 2, .reuse_delay_ms = 1000, .timestamps = true};
}

static void test_reserved_ports_are_parsed(void **state)
{
	uint64_t bits[PORT_COUNT / 64] = {};

	assert_int_equal(ports_parse("8080,9000-9010,65535\n", bits), 0);
	assert_true(port_bit(bits, 8080) && port_bit(bits, 9000) && port_bit(bits, 9010));
	assert_true(port_bit(bits, 65535));
	assert_false(port_bit(bits, 8081) || port_bit(bits, 9011) || port_bit(bits, 8999));
	assert_int_equal(ports_parse("\n", bits), 0);
	assert_int_equal(ports_parse("70000", bits), -EINVAL);
	assert_int_equal(ports_parse("80;90", bits), -EINVAL);
	assert_int_equal(ports_parse("x", bits), -EINVAL);
}

static void test_capacity(void **state)
{
	struct port_rules rules = rules_of(40000, 40499);

	assert_int_equal(ports_capacity(&rules), 500);
	port_set(rules.reserved, 40000);
	port_set(rules.held, 40000); /* reserved and held: counted once */
	port_set(rules.held, 40499);
	port_set(rules.held, 80); /* outside */
	assert_int_equal(ports_capacity(&rules), 498);
	assert_int_equal(ports_reserved(&rules), 1);
	assert_int_equal(ports_held(&rules), 1);
	rules = rules_of(40000, 40500); /* odd: the last one is never tried */
	assert_int_equal(ports_capacity(&rules), 500);
	rules = rules_of(65535, 65535);
	assert_int_equal(ports_capacity(&rules), 1);
	rules = rules_of(1, 65535);
	assert_int_equal(ports_capacity(&rules), 65534);
}

static void check_reusable(struct port_rules rules, const struct resource_socket *s, bool expected)
{
	assert_int_equal(ports_reusable(&rules, s), expected);
}

static void test_time_wait_reuse(void **state)
{
	struct resource_socket local = socket_to(0x7f000001, 40000, SOCKET_TIME_WAIT);
	struct resource_socket remote = socket_to(0x0a000001, 40000, SOCKET_TIME_WAIT);
	struct port_rules rules = rules_of(40000, 40499);

	local.expires_ms = remote.expires_ms = 59000;
	check_reusable(rules, &local, true);
	check_reusable(rules, &remote, false); /* 2: loopback only */
	rules.reuse = 1;
	check_reusable(rules, &remote, true);
	remote.expires_ms = 59001; /* younger than the delay */
	check_reusable(rules, &remote, false);
	rules.reuse = 0;
	check_reusable(rules, &local, false);
	rules.reuse = 1;
	rules.timestamps = false;
	check_reusable(rules, &local, false);
	rules.timestamps = true;
	local.state = SOCKET_FIN_WAIT2; /* a minisocket that waits for the peer's FIN */
	check_reusable(rules, &local, false);
}

static void test_what_is_counted(void **state)
{
	struct port_rules rules = rules_of(40000, 40499);
	struct resource_socket s = socket_to(0x0a000001, 40000, SOCKET_ESTABLISHED);
	struct port_table table = {};

	port_set(rules.held, 40100);
	ports_count(&table, &rules, &s, 1000);
	s.source_port = 39999; /* outside */
	ports_count(&table, &rules, &s, 1000);
	s.source_port = 40100; /* of a listener */
	ports_count(&table, &rules, &s, 1000);
	s = socket_to(0x0a000001, 40001, SOCKET_TIME_WAIT);
	s.expires_ms = 59500; /* half a second old */
	ports_count(&table, &rules, &s, 1000);
	s.state = SOCKET_FIN_WAIT2;
	s.expires_ms = 58999;
	ports_count(&table, &rules, &s, 1000);
	ports_sort(&table);
	assert_int_equal(table.count, 1);
	assert_int_equal(table.slots[0].live, 1);
	assert_int_equal(table.slots[0].time_wait, 1);
	assert_int_equal(table.slots[0].fin_wait2, 1);
	assert_int_equal(table.slots[0].fresh, 1);
	assert_int_equal(ports_used(&table.slots[0]), 3);
	ports_free(&table);
}

/* Count a hundred thousand destinations with a socket each, and one with many among them. */
static void count_many(struct port_table *table, const struct port_rules *rules)
{
	for (uint32_t i = 0; i < 100000; i++) {
		struct resource_socket s = socket_to(0x0b000000 + i, 40000, SOCKET_ESTABLISHED);

		ports_count(table, rules, &s, 0);
		if (i % 20)
			continue;
		s = socket_to(0x0a000001, (uint16_t)(40000 + i % 500), SOCKET_ESTABLISHED);
		ports_count(table, rules, &s, 0);
	}
}

static void test_memory_is_bounded_and_heavy_ones_exact(void **state)
{
	struct port_rules rules = rules_of(40000, 40499);
	struct port_table table = {};

	count_many(&table, &rules);
	assert_true(table.count <= PORT_DESTINATIONS);
	assert_true(table.floor > 0);
	assert_true(ports_freeze(&table));
	assert_int_equal(table.others, 0);
	count_many(&table, &rules);
	ports_sort(&table);
	assert_int_equal(table.count, PORT_EXACT);
	assert_int_equal(table.slots[0].live, 5000);
	assert_int_equal(table.slots[0].error, 0);
	assert_int_equal(table.others + PORT_EXACT - 1, 100000);
	ports_free(&table);
}

static void test_few_need_one_pass(void **state)
{
	struct port_rules rules = rules_of(40000, 40499);
	struct port_table table = {};

	for (uint32_t i = 0; i < PORT_DESTINATIONS; i++) {
		struct resource_socket s = socket_to(0x0b000000 + i, 40000, SOCKET_SYN_SENT);

		ports_count(&table, &rules, &s, 0);
	}
	assert_int_equal(table.count, PORT_DESTINATIONS);
	assert_false(ports_freeze(&table));
	ports_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserved_ports_are_parsed),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_time_wait_reuse),
		cmocka_unit_test(test_what_is_counted),
		cmocka_unit_test(test_memory_is_bounded_and_heavy_ones_exact),
		cmocka_unit_test(test_few_need_one_pass),
	};

	return cmocka_run_group_tests_name("observer_ports", tests, NULL, NULL);
}
