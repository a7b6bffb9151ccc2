// SPDX-License-Identifier: MIT
/* The option that would make streams of HTTP/2 exchanges. */
#include "unit.h"

#include <string.h>

#include "sojourn/remedy.h"

static void test_the_reason_names_the_option(void **state)
{
	struct run_service service = {};
	char no_http2[] = RUN_REASON_NO_HTTP2, http[] = RUN_REASON_HTTP,
	     other[] = "the kernel refuses what --http and --no-http2 need";

	(void)state;
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_NONE);
	service.http2.reason = no_http2;
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_NO_HTTP2);
	service.http2.reason = http;
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_HTTP);
	service.http2.reason = other;
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_NONE);
}

static void test_older_connections_want_it_from_the_start(void **state)
{
	struct run_service service = {.http2.older = {true, 1}};

	(void)state;
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_FROM_START);
}

static void test_tls_is_not_named_if_it_was_given(void **state)
{
	struct run_process processes[2] = {{.pid = 1}, {.pid = 2}};
	struct run_service service = {.tls = 1, .processes = processes, .process_count = 2};

	(void)state;
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_TLS);
	strcpy(processes[1].tls, "another library");
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_TLS_SHOWS);
	strcpy(processes[1].tls, RUN_TLS_PROBED);
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_TLS_SHOWS);
	/* Others speak HTTP/2 in clear text, or in TLS that is looked into. */
	service.http2.connections = (struct run_number){true, 1};
	assert_int_equal(run_http2_remedy(&service), RUN_REMEDY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_reason_names_the_option),
		cmocka_unit_test(test_older_connections_want_it_from_the_start),
		cmocka_unit_test(test_tls_is_not_named_if_it_was_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
