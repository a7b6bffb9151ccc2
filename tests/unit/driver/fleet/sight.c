// SPDX-License-Identifier: MIT
/* Targets of messages, compared with this host's addresses and with an observer's services. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/observers/sight.h"
#include "sojourn/array.h"
#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* Compare one target. @same: it was sent from this network namespace. */
static struct sight compare(const char *address, bool same, const struct sight_limits *limits)
{
	autojson json_t *list = json_pack("[{s:s, s:s, s:i, s:[s]}]", "name", "web:80", "host",
					  "web", "port", 80, "addresses", address);
	char place[SIGHT_PLACE] = "elsewhere";
	struct sight sight;

	if (same)
		sight_place(place);
	assert_int_equal(sight_compare(list, place, limits, &sight), 0);
	return sight;
}

/* Documentation addresses are of no host. */
static void addresses(void **state)
{
	const struct sight_limits open = {0}, sees = {.sees = "web:80,192.0.2.0/25"};
	const struct sight_limits allow = {.allow = "10.0.0.0/8"};

	assert_true(compare("127.0.0.1", true, &open).any);
	assert_true(compare("127.9.9.9", true, &open).any);
	assert_false(compare("127.0.0.1", false, &open).any);
	assert_false(compare("::1", false, &open).any);
	assert_false(compare("192.0.2.1", true, &open).any);
	assert_false(compare("2001:db8::1", true, &open).any);
	assert_false(compare("no address", true, &open).any);
	assert_true(compare("192.0.2.200", true, &sees).targets[0].sure);
	assert_true(compare("127.0.0.1", true, &allow).refused[0]);
	assert_false(compare("192.0.2.1", true, &allow).refused[0]);
}

static void messages_that_are_not_valid(void **state)
{
	static const char *const lists[] = {
		"[]",
		"{}",
		"[5]",
		"[{\"name\": \"a\", \"host\": \"a\", \"port\": 0, \"addresses\": []}]",
		"[{\"name\": \"a\", \"host\": \"a\", \"port\": 65536, \"addresses\": []}]",
		"[{\"name\": \"a\", \"port\": 80, \"addresses\": []}]",
	};
	const struct sight_limits limits = {0};
	struct sight sight;

	assert_int_equal(sight_compare(NULL, "", &limits, &sight), -EINVAL);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		autojson json_t *list = json_loads(lists[i], 0, NULL);

		assert_int_equal(sight_compare(list, "", &limits, &sight), -EINVAL);
	}
}

static uint64_t seen_at(const struct sight *sight, const char *address, uint16_t port)
{
	autorun struct run *run = run_new("test", NULL);
	struct run_service *service = ARRAY_APPEND(run->services, run->service_count);

	snprintf(service->address, sizeof(service->address), "%s", address);
	service->port = port;
	return sight_of(sight, run);
}

static void services(void **state)
{
	const struct sight_limits open = {0}, sees = {.sees = "127.0.0.1"};
	struct sight sight = compare("127.0.0.1", true, &open);
	struct sight sure = compare("127.0.0.1", true, &sees);
	autorun struct run *idle = run_new("test", NULL);

	assert_int_equal(seen_at(&sight, "127.0.0.1", 80), 1);
	assert_int_equal(seen_at(&sight, "0.0.0.0", 80), 1);
	assert_int_equal(seen_at(&sight, "*", 80), 1);
	assert_int_equal(seen_at(&sight, "127.0.0.1", 81), 0);
	assert_int_equal(seen_at(&sight, "192.0.2.1", 80), 0);
	assert_int_equal(seen_at(&sure, "192.0.2.1", 8080), 1);
	assert_int_equal(sight_of(&sight, idle), 0);
	idle->listeners_idle = 1;
	assert_int_equal(sight_of(&sight, idle), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(messages_that_are_not_valid),
		cmocka_unit_test(services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
