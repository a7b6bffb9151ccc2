// SPDX-License-Identifier: MIT
/* Addresses as typed, as printed, and as in Host headers. */
#include "fixture.h"

#include <errno.h>
#include <string.h>

#include "sinks/http/address.h"

static const char *const good[][2] = {
	{"9180", "http://127.0.0.1:9180"},
	{"0", "http://127.0.0.1:0"},
	{"65535", "http://127.0.0.1:65535"},
	{"127.0.0.1:9180", "http://127.0.0.1:9180"},
	{"0.0.0.0:9180", "http://0.0.0.0:9180"},
	{"10.1.2.3:1", "http://10.1.2.3:1"},
	{"[::1]:9180", "http://[::1]:9180"},
	{"[::]:0", "http://[::]:0"},
	{"[2001:db8:0::1]:80", "http://[2001:db8::1]:80"},
	{"[::ffff:255.255.255.255]:65535", "http://[::ffff:255.255.255.255]:65535"},
	{"[1111:2222:3333:4444:5555:6666:7777:8888]:65535",
	 "http://[1111:2222:3333:4444:5555:6666:7777:8888]:65535"},
};

static const char *const bad[] = {
	"",
	":",
	":9180",
	"65536",
	"99999999999999999999999",
	"-1",
	"+80",
	" 80",
	"80 ",
	"80x",
	"0x50",
	"127.0.0.1",
	"127.0.0.1:",
	"127.0.0.1:65536",
	"127.0.0.1:-1",
	"127.0.0.1:80x",
	"127.0.0.1: 80",
	"127.0.0.1:80:80",
	"127.0.0.1 :80",
	"127.0.0:80",
	"127.1:80",
	"127.0.0.256:80",
	"1270.0.0.1:80",
	"localhost:80",
	"::1",
	"::1:80",
	"[::1]",
	"[::1]:",
	"[::1]80",
	"[::1]:65536",
	"[::1]:80]",
	"[::1:80",
	"[]:80",
	"[:80",
	"[",
	"[127.0.0.1]:80",
	"[::1%lo]:80",
	"[1111:2222:3333:4444:5555:6666:7777:8888:9999]:80",
	"http://127.0.0.1:80",
};

static void test_parse(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct sockaddr_storage address;
		char url[HTTP_ADDRESS_URL_MAX];

		assert_int_equal(sink_http_parse_address(good[i][0], &address), 0);
		http_address_url(&address, false, url);
		assert_string_equal(url, good[i][1]);
	}
}

static void test_parse_refuses(void **state)
{
	struct sockaddr_storage untouched, address;

	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		address = untouched;
		if (sink_http_parse_address(bad[i], &address) != -EINVAL)
			fail_msg("\"%s\" is taken for an address", bad[i]);
		assert_memory_equal(&address, &untouched, sizeof(address));
	}
}

struct host_case {
	const char *host;
	const char *listened;
	const char *local;
	bool good;
};

/* clang-format off */
static const struct host_case host_cases[] = {
	{"localhost",                 "9180",           "9180",                     true},
	{"LocalHost:9180",            "9180",           "9180",                     true},
	{"127.0.0.1",                 "9180",           "9180",                     true},
	{"127.0.0.1:9180",            "9180",           "9180",                     true},
	{"[::1]",                     "9180",           "9180",                     true},
	{"[0:0::1]:9180",             "9180",           "9180",                     true},
	{"127.0.0.1",                 "10.0.0.1:9180",  "10.0.0.1:9180",            true},
	{"10.0.0.1:9180",             "10.0.0.1:9180",  "10.0.0.1:9180",            true},
	{"0.0.0.0:9180",              "0.0.0.0:9180",   "127.0.0.1:9180",           true},
	{"10.0.0.1:9180",             "0.0.0.0:9180",   "10.0.0.1:9180",            true},
	{"10.0.0.1:9180",             "[::]:9180",      "[::ffff:10.0.0.1]:9180",   true},
	{"[2001:db8::1]:9180",        "[::]:9180",      "[2001:db8::1]:9180",       true},
	{"10.0.0.2:9180",             "0.0.0.0:9180",   "10.0.0.1:9180",            false},
	{"10.0.0.1:9180",             "9180",           "9180",                     false},
	{"0.0.0.0",                   "9180",           "9180",                     false},
	{"127.0.0.2",                 "9180",           "9180",                     false},
	{"localhost:9181",            "9180",           "9180",                     false},
	{"127.0.0.1:1",               "9180",           "9180",                     false},
	{"[::1]:80",                  "9180",           "9180",                     false},
	{"",                          "9180",           "9180",                     false},
	{":9180",                     "9180",           "9180",                     false},
	{"9180",                      "9180",           "9180",                     false},
	{"::1",                       "9180",           "9180",                     false},
	{"[localhost]",               "9180",           "9180",                     false},
	{"localhost.evil.example",    "9180",           "9180",                     false},
	{"evil.example:9180",         "9180",           "9180",                     false},
	{"127.0.0.1.evil.example",    "9180",           "9180",                     false},
	{"user@localhost",            "9180",           "9180",                     false},
	{"localhost, evil.example",   "9180",           "9180",                     false},
	{"localhost:9180x",           "9180",           "9180",                     false},
	{"2130706433",                "9180",           "9180",                     false},
};
/* clang-format on */

static void test_host(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(host_cases); i++) {
		const struct host_case *c = &host_cases[i];
		struct sockaddr_storage listened, local;

		assert_int_equal(sink_http_parse_address(c->listened, &listened), 0);
		assert_int_equal(sink_http_parse_address(c->local, &local), 0);
		if (http_address_is_host(c->host, &listened, &local) != c->good)
			fail_msg("Host \"%s\" at %s: not %s", c->host, c->listened,
				 c->good ? "taken" : "refused");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
