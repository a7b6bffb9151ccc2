// SPDX-License-Identifier: MIT
/* --source: lists and ranges of both families, and what is refused. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "source.h"

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

	(void)state;
	assert_int_equal(source_parse("127.0.0.9,127.0.0.254-127.0.1.1", &set, &error), 0);
	assert_int_equal(source_parse("fd00::ffff-fd00::1:1", &set, &error), 0); /* it adds */
	assert_int_equal(set.count, 8);
	expect(&set, 0, "127.0.0.9");
	expect(&set, 2, "127.0.0.255");
	expect(&set, 4, "127.0.1.1");
	expect(&set, 5, "fd00::ffff");
	expect(&set, 7, "fd00::1:1");
	source_clear(&set);
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
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		autofree char *error = NULL;
		struct source_set set = {0};

		assert_int_equal(source_parse(words[i], &set, &error), -EINVAL);
		assert_non_null(strstr(error, "--source"));
		source_clear(&set);
	}
}

/* Nobody's port is another's, and none is left over; too few to divide are everybody's. */
static void test_divided(void **state)
{
	const uint32_t range = 40000 | 40009U << 16;

	(void)state;
	assert_int_equal(source_divide(range, 0, 1, 3), 40000 | 40002U << 16);
	assert_int_equal(source_divide(range, 1, 1, 3), 40003 | 40005U << 16);
	assert_int_equal(source_divide(range, 2, 1, 3), 40006 | 40009U << 16);
	assert_int_equal(source_divide(range, 0, 3, 3), range);
	assert_int_equal(source_divide(range, 4, 1, 11), range);
	assert_int_equal(source_divide(0, 0, 1, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_divided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
