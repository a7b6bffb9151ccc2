// SPDX-License-Identifier: MIT
/* The warning before the run: its conditions and its numbers. */
#include "driver/test.h"

#include <stdlib.h>
#include <string.h>

#include "host/preflight.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

static void expect(struct preflight preflight, const char *first, const char *second)
{
	autofree char *text = NULL;

	assert_int_equal(preflight_check(&preflight, &text), 0);
	if (!first) {
		assert_null(text);
		return;
	}
	assert_non_null(text);
	if (!strstr(text, first) || !strstr(text, second))
		fail_msg("'%s' lacks '%s' or '%s'", text, first, second);
}

static void test_check(void **state)
{
	const struct preflight base = {
		.ports = 28232, .sources = 1, .connections = 64, .block_s = 60};
	struct preflight p = base;

	expect(p, NULL, NULL);
	p.connections = 41000;
	expect(p, "needs 41,000 source ports and has 28,232", "give 2 source addresses");
	p.sources = 2;
	expect(p, NULL, NULL);
	p = base;
	p.policy.requests = 1;
	expect(p, "a connection for every request and has 28,232", "keep connections");
	expect(p, "after 28,232 it will go on at 470/s", "28,232 source ports");
	p.requests = 28232;
	expect(p, NULL, NULL);
	p.rate = 20000;
	p.requests = 200000;
	expect(p, "will stall after 1.4 s", "stay below 470/s");
	expect(p, "20,000 connections/s", "give 43 source addresses");
	p.rate = 400;
	expect(p, NULL, NULL);
	p.rate = 20000;
	p.block_s = 1; /* TIME_WAIT is reused */
	expect(p, NULL, NULL);
	p = (struct preflight){.connections = 5};
	expect(p, NULL, NULL);
}

static void test_policies(void **state)
{
	const struct preflight base = {
		.ports = 28232, .sources = 1, .connections = 64, .rate = 20000, .block_s = 60};
	struct preflight p = base;

	p.policy.requests = 10; /* 2,000 connections/s */
	expect(p, "opens 2,000 connections/s", "will stall after 14.1 s");
	p.requests = 282320;
	expect(p, NULL, NULL);
	p.requests++;
	expect(p, "give 5 source addresses", "--close=rst");
	p.policy.requests = 43; /* 466/s */
	expect(p, NULL, NULL);
	p.policy.requests = 1;
	p.policy.reset = true; /* no TIME_WAIT */
	expect(p, NULL, NULL);
	p.policy.reset = false;
	p.policy.connect_rate = 470;
	expect(p, NULL, NULL);
	p.policy.connect_rate = 1000;
	expect(p, "opens 1,000 connections/s", "after 28.2 s");
	p = base;
	p.policy.lifetime_ns = 100 * NSEC_PER_MSEC; /* 640/s */
	expect(p, "opens 640 connections/s", "stay below 470/s");
	p.policy.lifetime_ns = NSEC_PER_SEC;
	expect(p, NULL, NULL);
}

/* Ports in use are unavailable; those in TIME_WAIT only for a while. */
static void test_in_use(void **state)
{
	const struct preflight base = {
		.ports = 501, .sources = 1, .connections = 16, .block_s = 60, .used = 501};
	struct preflight p = base;

	expect(p, "needs 16 source ports, and 501 of 501 are in use now", "wait 60 s (TIME_WAIT)");
	expect(p, "give 2 source addresses", "will wait");
	p.held = 501;
	expect(p, "501 of 501 are in use now", "give 2 source addresses (--source) or fewer");
	p.used = p.held = 485;
	expect(p, NULL, NULL);
	p.policy.requests = 1;
	p.requests = 16;
	expect(p, NULL, NULL);
	p.requests = 17;
	expect(p, "501 source ports, 485 of them in use now, each blocked",
	       "after 16 it will go on");
	p.rate = 1;
	p.requests = 100; /* one a second needs 60 */
	expect(p, "will stall after 16.0 s", "give 2 source addresses");
	p.held = 441;
	expect(p, NULL, NULL);
	p.sources = 2;
	p.used = 2000; /* a reading of changing sockets may count more */
	expect(p, "2,000 of 1,002 are in use", "needs 16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
