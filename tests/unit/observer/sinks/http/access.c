// SPDX-License-Identifier: MIT
/* The endpoint's answers to machines and people: access, formats and rate limits. */
#include "fixture.h"

#include <string.h>

/* Health is the doctor's finding; the doctor does not look for every answer. */
static void test_health_is_the_doctors(void **state)
{
	struct server server;
	struct response response;

	assert_int_equal(server_start(&server, "127.0.0.1:0", NULL), 0);
	server.critical = 1;
	response = ask_route(&server, "GET", "/healthz");
	assert_answer(&response, 503, "application/json");
	assert_non_null(strstr(response.body, "\"critical\""));
	response_free(&response);
	for (unsigned int i = 0; i < 5; i++) {
		response = ask_route(&server, "GET", i % 2 ? "/metrics" : "/v1/findings");
		assert_int_equal(response.status, 200);
		assert_non_null(strstr(response.body, "critical"));
		response_free(&response);
	}
	assert_int_equal(server.looks, 1);
	server_stop(&server);
}

/* Any user can exhaust their own limits: a finding of the host, which fails no service. */
static void test_health_is_of_services(void **state)
{
	struct response response;
	struct server server;

	assert_int_equal(server_start(&server, "127.0.0.1:0", NULL), 0);
	server.critical = 1;
	server.critical_of_others = true;
	response = ask_route(&server, "GET", "/healthz");
	assert_answer(&response, 200, "application/json");
	assert_non_null(strstr(response.body, "\"warning\""));
	response_free(&response);
	server_stop(&server);
}

static void test_metrics_are_what_is_accepted(void **state)
{
	struct response response = ask_route(*state, "GET", "/metrics");

	assert_answer(&response, 200, "text/plain; version=0.0.4; charset=utf-8");
	assert_null(strstr(response.body, "# EOF"));
	response_free(&response);
	response =
		ask(*state,
		    "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
		    "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n");
	assert_answer(&response, 200, "application/openmetrics-text; version=1.0.0; charset=utf-8");
	assert_string_equal(response.body + strlen(response.body) - 6, "# EOF\n");
	response_free(&response);
}

static void test_browsers_get_a_page(void **state)
{
	struct response response =
		ask(*state, "GET / HTTP/1.1\r\nHost: localhost\r\n"
			    "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n\r\n");

	assert_answer(&response, 200, "text/html; charset=utf-8");
	assert_int_equal(strncmp(response.body, "<!doctype html>", 15), 0);
	response_free(&response);
}

#define TOKEN	   "0123456789abcdefghijklmn"
#define READ_TOKEN "nmlkjihgfedcba9876543210"

static void test_tokens(void **state)
{
	static const struct sink_http_access access = {.token = TOKEN, .read_token = READ_TOKEN};
	/* clang-format off */
	static const struct {
		const char *method;
		const char *path;
		const char *header;
		int status;
	} cases[] = {
		{"GET",  "/v1/run",    "",						  401},
		{"GET",  "/metrics",   "",						  401},
		{"GET",  "/",	       "",						  401},
		{"GET",  "/v1/run",    "Authorization: Bearer " TOKEN "\r\n",		  200},
		{"GET",  "/v1/run",    "Authorization: bearer " TOKEN "\r\n",		  200},
		{"GET",  "/v1/run",    "Authorization: Bearer " TOKEN "x\r\n",		  401},
		{"GET",  "/v1/run",    "Authorization: Bearer 0123456789abcdefghijklm0\r\n", 401},
		{"GET",  "/v1/run",    "Authorization: Bearer \r\n",			  401},
		{"GET",  "/v1/run",    "Authorization: Basic " TOKEN "\r\n",		  401},
		{"GET",  "/v1/run",    "Authorization: Bearer " READ_TOKEN "\r\n",	  200},
		{"GET",  "/metrics",   "Authorization: Bearer " READ_TOKEN "\r\n",	  200},
		{"POST", "/v1/phases", "Authorization: Bearer " READ_TOKEN "\r\n",	  403},
		{"POST", "/v1/phases", "",						  401},
		{"POST", "/v1/phases", "Authorization: Bearer " TOKEN "\r\n",		  201},
	};
	/* clang-format on */
	struct server server;

	assert_int_equal(server_start_for(&server, "127.0.0.1:0", &access, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct response response =
			ask(&server, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", cases[i].method,
			    cases[i].path, cases[i].header);

		if (response.status != cases[i].status)
			fail_msg("case %zu: %d", i, response.status);
		response_free(&response);
	}
	assert_int_equal(server.phases, 1);
	server_stop(&server);
}

static void test_names_of_its_own(void **state)
{
	static const struct sink_http_access access = {.hosts = {"metrics.example"},
						       .host_count = 1};
	struct server server;
	struct response response;

	assert_int_equal(server_start_for(&server, "127.0.0.1:0", &access, NULL), 0);
	response = ask(&server, "GET /healthz HTTP/1.1\r\nHost: Metrics.example:9180\r\n\r\n");
	assert_int_equal(response.status, 200);
	response_free(&response);
	response = ask(&server, "GET /healthz HTTP/1.1\r\nHost: metrics.example:junk\r\n\r\n");
	assert_int_equal(response.status, 421);
	response_free(&response);
	response = ask(&server, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	assert_int_equal(response.status, 421);
	response_free(&response);
	server_stop(&server);
}

/* Wrong tokens use up a bucket of their own, and none of a valid client's. */
static void test_buckets_are_apart(void **state)
{
	static const struct sink_http_access access = {.token = TOKEN};
	struct sink_http_limits limits = sink_http_default_limits;
	unsigned int refused = 0, slowed = 0;
	struct response response;
	struct server server;

	limits.per_second = 3;
	assert_int_equal(server_start_for(&server, "127.0.0.1:0", &access, &limits), 0);
	for (unsigned int i = 0; i < 20; i++) {
		response = ask_route(&server, "GET", "/v1/run");
		refused += response.status == 401;
		slowed += response.status == 429;
		response_free(&response);
	}
	assert_int_equal(refused + slowed, 20);
	response = ask(&server, "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n"
				"Authorization: Bearer " TOKEN "\r\n\r\n");
	assert_int_equal(response.status, 200);
	response_free(&response);
	server_stop(&server);
}

/* Occasional requests get current documents. */
static void test_documents_are_new(void **state)
{
	struct server *server = *state;
	unsigned int before = server->made;

	for (unsigned int i = 0; i < 10; i++) {
		struct response response = ask_route(server, "GET", "/v1/run");

		assert_int_equal(response.status, 200);
		response_free(&response);
	}
	assert_int_equal(server->made - before, 10);
}

static void test_too_many_requests(void **state)
{
	struct sink_http_limits limits = sink_http_default_limits;
	struct server server;
	unsigned int good = 0, refused = 0;

	limits.per_second = 3;
	assert_int_equal(server_start(&server, "127.0.0.1:0", &limits), 0);
	for (unsigned int i = 0; i < 20; i++) {
		struct response response = ask_route(&server, "GET", "/v1/run");

		good += response.status == 200;
		refused += response.status == 429;
		response_free(&response);
	}
	assert_int_equal(good + refused, 20);
	assert_true(good >= 3 && refused > 0);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_health_is_the_doctors),
		cmocka_unit_test(test_health_is_of_services),
		cmocka_unit_test(test_metrics_are_what_is_accepted),
		cmocka_unit_test(test_browsers_get_a_page),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_names_of_its_own),
		cmocka_unit_test(test_buckets_are_apart),
		cmocka_unit_test(test_documents_are_new),
		cmocka_unit_test(test_too_many_requests),
	};

	return cmocka_run_group_tests(tests, group_start, group_stop);
}
