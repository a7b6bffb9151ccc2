// SPDX-License-Identifier: MIT
/* --source: lists and ranges of both families, refusals, and the flow of a connection. */
#include "driver/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sojourn/cleanup.h"
#include "transport/source.h"

static void expect(const struct source_set *set, size_t index, const char *address)
{
	const struct sockaddr_storage *entry = &set->addresses[index];
	const void *bytes = entry->ss_family == AF_INET
				    ? (const void *)&((const struct sockaddr_in *)entry)->sin_addr
				    : &((const struct sockaddr_in6 *)entry)->sin6_addr;
	char text[INET6_ADDRSTRLEN];

	assert_string_equal(inet_ntop(entry->ss_family, bytes, text, sizeof(text)), address);
}

static void test_lists(void **state)
{
	struct source_set set = {0};
	char *error = NULL;

	assert_int_equal(source_parse("127.0.0.9,127.0.0.254-127.0.1.1", &set, &error), 0);
	assert_int_equal(source_parse("fd00::ffff-fd00::1:1", &set, &error), 0); /* adds */
	assert_int_equal(set.count, 8);
	expect(&set, 0, "127.0.0.9");
	expect(&set, 2, "127.0.0.255");
	expect(&set, 4, "127.0.1.1");
	expect(&set, 5, "fd00::ffff");
	expect(&set, 7, "fd00::1:1");
	source_clear(&set);
}

/* Neighbours are a range, as they were given; the last address of a network is followed by none. */
static void test_names(void **state)
{
	static const char *const names[] = {"127.0.0.9-127.0.0.11", "255.255.255.255", "fd00::1",
					    "fd00::3-fd00::4"};
	struct source_set set = {0};
	char *error = NULL, text[SOURCE_TEXT];
	size_t index = 0;

	assert_int_equal(source_parse("127.0.0.9,127.0.0.10-127.0.0.11,255.255.255.255,fd00::1,"
				      "fd00::3-fd00::4",
				      &set, &error),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		index = source_print(&set, index, text);
		assert_string_equal(text, names[i]);
	}
	assert_int_equal(index, set.count);
	source_clear(&set);
}

/* Each address is in one share, and shares keep the order of the list. */
static void test_shares(void **state)
{
	static const char *const of[3][2] = {
		{"127.0.0.2"}, {"127.0.0.3", "127.0.0.4"}, {"127.0.0.5", "127.0.0.6"}};
	char *error = NULL;

	for (uint32_t index = 0; index < ARRAY_SIZE(of); index++) {
		struct source_set set = {0};

		assert_int_equal(source_parse("127.0.0.2-127.0.0.6", &set, &error), 0);
		source_keep_share(&set, index, ARRAY_SIZE(of));
		assert_int_equal(set.count, index ? 2 : 1);
		for (size_t i = 0; i < set.count; i++)
			expect(&set, i, of[index][i]);
		source_clear(&set);
		source_keep_share(&set, index, ARRAY_SIZE(of));
		assert_int_equal(set.count, 0);
	}
}

static void test_refusals(void **state)
{
	static const char *const words[] = {
		"",
		"localhost",
		"127.0.0.1,",
		"127.0.0.2-127.0.0.1",
		"127.0.0.1-x",
		"127.0.0.1-::1",
		"fd00::1-fd00:1::1",
		"10.0.0.0-10.255.255.255",
		"127.0.0.1:80",
		"127.0.0.2,127.0.0.2",
		"fd00::1-fd00::9,fd00::5",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		autofree char *error = NULL;
		struct source_set set = {0};

		assert_int_equal(source_parse(words[i], &set, &error), -EINVAL);
		assert_non_null(strstr(error, "--source"));
		source_clear(&set);
	}
}

/* Each part has its own ports, and none is left over; if they are too few, all parts share them. */
static void test_divided(void **state)
{
	const uint32_t range = 40000 | 40009U << 16;

	assert_int_equal(source_divide(range, 0, 1, 3), 40000 | 40002U << 16);
	assert_int_equal(source_divide(range, 1, 1, 3), 40003 | 40005U << 16);
	assert_int_equal(source_divide(range, 2, 1, 3), 40006 | 40009U << 16);
	assert_int_equal(source_divide(range, 0, 3, 3), range);
	assert_int_equal(source_divide(range, 4, 1, 11), range);
	assert_int_equal(source_divide(0, 0, 1, 2), 0);
}

/*
 * Only ports of both parities prove an even search; after any error the driver chooses ports
 * itself.
 */
static void test_judged(void **state)
{
	static const uint16_t one[] = {40000, 40002, 40008, 40000}, both[] = {40000, 40002, 40009};

	assert_int_equal(source_probe_judge(0, both, ARRAY_SIZE(both)), SOURCE_RANGE);
	assert_int_equal(source_probe_judge(0, both, 2), SOURCE_OWN);
	assert_int_equal(source_probe_judge(0, one, ARRAY_SIZE(one)), SOURCE_OWN);
	assert_int_equal(source_probe_judge(-ENOPROTOOPT, both, ARRAY_SIZE(both)), SOURCE_OWN);
	assert_int_equal(source_probe_judge(0, one, 0), SOURCE_OWN);
}

/*
 * The kernel gives the probe ports of the range; if all have one parity, it gets as many as it asks
 * for.
 */
static void test_probed(void **state)
{
	uint16_t ports[SOURCE_PROBE_PORTS];
	size_t count = 0;
	int err = source_probe(40000 | 49999U << 16, ports, &count);

	if (err)
		skip(); /* no loopback, no Fast Open, or a kernel before 6.3 */
	assert_in_range(count, 2, SOURCE_PROBE_PORTS);
	for (size_t i = 0; i < count; i++)
		assert_in_range(ports[i], 40000, 49999);
	if (count < SOURCE_PROBE_PORTS)
		assert_int_equal(source_probe_judge(0, ports, count), SOURCE_RANGE);
	assert_int_equal(source_probe_judge(0, ports, count - 1), SOURCE_OWN);
}

static void test_settled(void **state)
{
	struct source_set set = {0};

	source_settle(&set, 0);
	assert_int_equal(set.choice, SOURCE_RANGE);
	source_settle(&set, 40000 | 40000U << 16); /* no two ports differ */
	assert_int_equal(set.choice, SOURCE_OWN);
}

/* Connect over loopback to @server; *ret_fds: client, server's, listener. */
static void connect_pair(struct sockaddr_storage *server, const struct sockaddr *address,
			 socklen_t length, int ret_fds[static 3])
{
	socklen_t known = sizeof(*server);

	ret_fds[2] = socket(address->sa_family, SOCK_STREAM, 0);
	assert_int_equal(bind(ret_fds[2], address, length), 0);
	assert_int_equal(listen(ret_fds[2], 1), 0);
	assert_int_equal(getsockname(ret_fds[2], (struct sockaddr *)server, &known), 0);
	ret_fds[0] = socket(address->sa_family, SOCK_STREAM, 0);
	assert_int_equal(connect(ret_fds[0], (struct sockaddr *)server, length), 0);
	ret_fds[1] = accept(ret_fds[2], NULL, NULL);
	assert_true(ret_fds[1] >= 0);
}

static void close_pair(const int fds[static 3])
{
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

/* The server's own socket has the same ends, reversed. */
static void test_flow_is_the_server_s(void **state)
{
	struct sockaddr_in local = {.sin_family = AF_INET}; /* 0.0.0.0: this host */
	struct sockaddr_storage server;
	struct sockaddr_in peer;
	socklen_t length = sizeof(peer);
	struct flow flow;
	int fds[3];

	connect_pair(&server, (struct sockaddr *)&local, sizeof(local), fds);
	assert_int_equal(source_flow(fds[0], &server, &flow), 0);
	assert_int_equal(getpeername(fds[1], (struct sockaddr *)&peer, &length), 0);
	assert_int_equal(flow.client_port, ntohs(peer.sin_port));
	assert_int_equal(flow.client[3], peer.sin_addr.s_addr);
	assert_int_equal(flow.client[2], htonl(0xffff));
	assert_int_equal(flow.server[3], htonl(INADDR_LOOPBACK));
	assert_int_equal(flow.server_port, ntohs(((struct sockaddr_in *)&server)->sin_port));
	close_pair(fds);
}

static void test_flow_of_ipv6(void **state)
{
	struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_storage server;
	struct flow flow;
	int fds[3];

	connect_pair(&server, (struct sockaddr *)&local, sizeof(local), fds);
	assert_int_equal(source_flow(fds[0], &server, &flow), 0);
	assert_memory_equal(flow.client, &local.sin6_addr, sizeof(flow.client));
	assert_memory_equal(flow.server, &local.sin6_addr, sizeof(flow.server));
	close_pair(fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_divided),
		cmocka_unit_test(test_judged),
		cmocka_unit_test(test_probed),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_flow_is_the_server_s),
		cmocka_unit_test(test_flow_of_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
