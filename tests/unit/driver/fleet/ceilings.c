// SPDX-License-Identifier: MIT
/* Targets that --allow accepts without resolving names: networks, addresses, and names as text. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/agent/ceilings.h"
#include "scenario/scenario.h"
#include "sojourn/cleanup.h"

static bool is_allowed(const char *allow, const char *url)
{
	const struct ceilings ceilings = {.allow = allow};
	bool local = !strncmp(url, "unix:", 5);
	char *words[] = {"sojourn-drive", (char *)url, "--payload=x", "--framing=close", NULL};
	struct options options;
	struct scenario *scenario;
	autofree char *error = NULL;
	int err = scenario_of_command(local ? 4 : 2, words, NULL, &options, &scenario, &error);

	if (err)
		fail_msg("%s: %s", url, error);
	assert_int_equal(ceilings_check_list("--allow", allow, &error), 0);
	err = ceilings_check_targets(&ceilings, scenario, &error);
	assert_true(!err || (err == -EINVAL && error));
	scenario_free(scenario);
	options_clear(&options);
	return !err;
}

static void networks_and_hosts(void **state)
{
	static const struct {
		const char *allow, *url;
		bool allowed;
	} cases[] = {
		{"10.0.0.0/8", "http://10.255.0.1/", true},
		{"10.0.0.0/8", "http://11.0.0.1/", false},
		{"192.0.2.128/25", "http://192.0.2.128/", true},
		{"192.0.2.128/25", "http://192.0.2.127/", false},
		{"0.0.0.0/0", "http://192.0.2.1/", true},
		{"0.0.0.0/0", "http://[::1]/", false},
		{"2001:db8::/33", "http://[2001:db8:7fff::1]/", true},
		{"2001:db8::/33", "http://[2001:db8:8000::1]/", false},
		{"127.0.0.1:80", "http://127.0.0.1/", true},
		{"127.0.0.1:80", "http://127.0.0.1:81/", false},
		{"127.0.0.1", "h2c://127.0.0.1:81/", true},
		{"[::1]:8080", "http://[0:0::1]:8080/", true},
		{"[::1]:8080", "http://[::1]:8081/", false},
		{"::1", "http://[::1]:8081/", true},
		{"server.test:80,10.0.0.0/8", "http://Server.TEST/", true},
		{"server.test:80,10.0.0.0/8", "http://10.1.1.1:9/", true},
		{"server.test:80,10.0.0.0/8", "http://127.0.0.1/", false},
		{"10.0.0.0/8", "unix:/run/x", false},
		{"::/0", "http://[2001:db8::1]/", true},
		{"::/0", "http://[::ffff:192.0.2.1]/", false},
		{"::ffff:10.0.0.0/104", "http://[::ffff:10.9.9.9]/", true},
		{"10.0.0.0/8", "http://[::ffff:10.0.0.1]/", true},
		{"[::ffff:10.0.0.1]:80", "http://10.0.0.1/", true},
		{"10.0.0.0/8", "http://2130706433/", false},
		{"10.0.0.0/8", "http://10.1/", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (is_allowed(cases[i].allow, cases[i].url) != cases[i].allowed)
			fail_msg("--allow %s: %s", cases[i].allow, cases[i].url);
}

static void what_is_no_list(void **state)
{
	static const char *const lists[] = {"",	      ",",	"10.0.0.0/33", "10.0.0.0/",
					    "host/8", "host:",	"host:0",      "host:65536",
					    "[::1",   "[::1]x", "::/129",      "10.0.0.1,,a"};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		autofree char *error = NULL;

		if (ceilings_check_list("--allow", lists[i], &error) != -EINVAL || !error)
			fail_msg("'%s' is taken", lists[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(networks_and_hosts),
		cmocka_unit_test(what_is_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
