// SPDX-License-Identifier: MIT
/* URLs, parsed and refused. */
#include "driver/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "engine/target.h"
#include "engines.h"

struct parts {
	const char *url, *host, *authority, *path;
	uint16_t port;
};

/* clang-format off */
static const struct parts urls[] = {
	{"http://127.0.0.1", "127.0.0.1", "127.0.0.1", "/", 80},
	{"http://127.0.0.1:8080/a/b?c=d&e", "127.0.0.1", "127.0.0.1:8080", "/a/b?c=d&e", 8080},
	{"HTTP://Example.com:81?q#part", "Example.com", "Example.com:81", "/?q", 81},
	{"http://[::1]:8080/x", "::1", "[::1]:8080", "/x", 8080},
	{"http://[::1]", "::1", "[::1]", "/", 80},
	{"http://h/a/../b//c", "h", "h", "/a/../b//c", 80},
	{"http://h/%20?%0a", "h", "h", "/%20?%0a", 80},
	{"http://h:80", "h", "h", "/", 80},
	{"http://h:00081/", "h", "h:81", "/", 81},
	{"http://h:", "h", "h", "/", 80},
	{"http://h?", "h", "h", "/?", 80},
	{"http://h/?a?b#c?d", "h", "h", "/?a?b", 80},
	{"http://h#/x", "h", "h", "/", 80},
	{"http://[fe80::1%25eth0]:81", "fe80::1%eth0", "[fe80::1]:81", "/", 81},
	{"http://[::ffff:1.2.3.4]", "::ffff:1.2.3.4", "[::ffff:1.2.3.4]", "/", 80},
};

static const struct {
	const char *url, *expected;
} refused[] = {
	{"tcp://127.0.0.1", "tcp://HOST:PORT"},
	{"tcp://127.0.0.1:1/x", "has no path"},
	{"unix:", "unix:PATH"},
	{"unix:/"
	 "0123456789012345678901234567890123456789012345678901234567890123456789"
	 "0123456789012345678901234567890123456789",
	 "1 to 107 bytes"},
	{"ftp://127.0.0.1/", "ftp:// is not supported; allowed: http://"},
	{"http://unix:/run/a.sock", "http: over a unix socket is not supported; unix:PATH takes"},
	{"127.0.0.1:8080", "http://"},
	{"", "http://HOST"},
	{"http://", "http://HOST"},
	{"http://h:0/", "65535"},
	{"http://h:65536/", "http://HOST"},
	{"http://h:x/", "http://HOST"},
	{"http://user:secret@h/", "Authorization"},
	{"http://h/a b", "%20"},
	{"http://[::1/", "bracket"},
	{"http://[::1]x/", "bracket"},
	{"http://[]/", "not an IPv6 address"},
	{"http://[h]/", "not an IPv6 address"},
	{"http://::1/", "no number"},
	{"http://a%20b/", "no host has"},
	{"http://a,b/", "no host has"},
	{"http:/h/", "scheme"},
	{"1http://h/", "scheme"},
	{"http://h:99999999999/", "65535"},
	{"averyveryverylongscheme://h/", "scheme"},
	{"http://h/a\r\nX: y", "http://HOST"},
	{"http://h/\303\244", "printable ASCII"},
};
/* clang-format on */

static void test_parts(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		autofree char *error = NULL;
		struct target target;

		assert_int_equal(target_parse(engines, urls[i].url, &target, &error), 0);
		assert_string_equal(target.engine->scheme, "http");
		assert_string_equal(target.host, urls[i].host);
		assert_string_equal(target.authority, urls[i].authority);
		assert_string_equal(target.path, urls[i].path);
		assert_int_equal(target.port, urls[i].port);
		target_clear(&target);
	}
}

static void test_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		autofree char *error = NULL;
		struct target target;

		assert_int_equal(target_parse(engines, refused[i].url, &target, &error), -EINVAL);
		if (!strstr(error, refused[i].expected))
			fail_msg("'%s' lacks '%s'", error, refused[i].expected);
	}
}

static void test_https(void **state)
{
	autofree char *error = NULL;
	struct target target;

	assert_int_equal(target_parse(engines, "https://name/a", &target, &error), 0);
	assert_string_equal(target.engine->scheme, "https");
	assert_int_equal(target.port, 443);
	assert_string_equal(target.authority, "name");
	target_clear(&target);
}

static void test_null_scheme(void **state)
{
	autofree char *error = NULL;
	struct target target;

	assert_int_equal(target_parse(engines, "null://", &target, &error), 0);
	assert_string_equal(target.engine->scheme, "null");
	target_clear(&target);
}

static void test_resolve(void **state)
{
	autofree char *error = NULL;
	struct target target;

	assert_int_equal(target_parse(engines, "http://[::1]:8080/", &target, &error), 0);
	assert_int_equal(target_resolve(&target, &error), 0);
	assert_int_equal(target.address.ss_family, AF_INET6);
	assert_int_equal(((struct sockaddr_in6 *)&target.address)->sin6_port, htons(8080));
	target_clear(&target);

	assert_int_equal(target_parse(engines, "http://host.invalid/", &target, &error), 0);
	assert_int_equal(target_resolve(&target, &error), -EINVAL);
	assert_non_null(strstr(error, "'host.invalid'"));
	target_clear(&target);
}

/* The loopback interface is on every host. */
static void test_link_local_needs_an_interface(void **state)
{
	autofree char *error = NULL;
	struct target target;

	assert_int_equal(target_parse(engines, "http://[fe80::1]:8080/", &target, &error), 0);
	assert_int_equal(target_resolve(&target, &error), -EINVAL);
	assert_string_equal(error,
			    "'fe80::1' is link-local: name the interface, like [fe80::1%eth0]");
	target_clear(&target);

	assert_int_equal(target_parse(engines, "http://[fe80::1%25lo]:8080/", &target, &error), 0);
	assert_int_equal(target_resolve(&target, &error), 0);
	assert_int_not_equal(((struct sockaddr_in6 *)&target.address)->sin6_scope_id, 0);
	target_clear(&target);
}

static void test_result_is_told(void **state)
{
	char text[96] = "";

	engine_tell_result(&(struct engine_result){.code = -ENETUNREACH}, text, sizeof(text));
	assert_string_equal(text, "network is unreachable (ENETUNREACH)");
	text[0] = '\0';
	engine_tell_result(&(struct engine_result){0}, text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result_is_told),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_https),
		cmocka_unit_test(test_null_scheme),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_link_local_needs_an_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
