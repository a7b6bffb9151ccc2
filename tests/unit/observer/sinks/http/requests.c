// SPDX-License-Identifier: MIT
/* The endpoint's answers to correct and incorrect clients. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void assert_error(struct response response, int status)
{
	const char start[] = "{\"error\": \"";

	assert_answer(&response, status, "application/json");
	assert_int_equal(strncmp(response.body, start, strlen(start)), 0);
	assert_string_equal(response.body + strlen(response.body) - 3, "\"}\n");
	response_free(&response);
}

static void assert_run(struct response response, uint64_t duration_ns)
{
	autofree char *error = NULL;
	autorun struct run *run = NULL;

	assert_answer(&response, 200, "application/json");
	assert_int_equal(run_from_json(response.body, strlen(response.body), &run, &error), 0);
	assert_int_equal(run->duration_ns, duration_ns);
	response_free(&response);
}

static void test_run(void **state)
{
	assert_run(ask_route(*state, "GET", "/v1/run"), TOTAL_DURATION_NS);
}

/* An argument that would be ignored is named, and so is one that is given twice. Routes of others take any. */
static void test_arguments(void **state)
{
	static const struct {
		const char *method, *path, *named;
	} wrong[] = {
		{"GET", "/v1/run?pretty=1", "pretty is no argument"},
		{"GET", "/v1/services?port=80", "port is no argument"},
		{"GET", "/v1/past?last=60&steps=10", "steps is no argument"},
		{"GET", "/v1/past?last=60&last=600", "last is given twice"},
		{"GET", "/v1/past?LAST=60", "LAST is no argument"},
		{"GET", "/v1/past?%22%5c=1", "?? is no argument"},
		{"GET", "/v1/past?=1", "? is no argument"},
		{"GET", "/v1/clients?port=80&last=1", "last is no argument"},
		{"POST", "/v1/phases?port=80", "port is no argument"},
		{"POST", "/v1/phases?leese", "leese is no argument"},
		{"POST", "/v1/phases/1/end?lease=1", "lease is no argument"},
		{"GET", "/v1/findings?aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1",
		 "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is no argument"},
	};
	static const char *const any[] = {"/?a=1", "/healthz?a=1", "/livez?a", "/metrics?lease=1"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct response response = ask_route(*state, wrong[i].method, wrong[i].path);

		assert_answer(&response, 400, "application/json");
		assert_non_null(strstr(response.body, wrong[i].named));
		response_free(&response);
	}
	for (size_t i = 0; i < ARRAY_SIZE(any); i++) {
		struct response response = ask_route(*state, "GET", any[i]);

		assert_int_equal(response.status, 200);
		response_free(&response);
	}
}

static void test_health(void **state)
{
	struct response response = ask_route(*state, "GET", "/healthz");

	assert_answer(&response, 200, "application/json");
	assert_string_equal(response.body,
			    "{\"status\": \"ok\", \"findings\": 0, \"looked\": true}\n");
	response_free(&response);
}

static void test_routes(void **state)
{
	static const char *const paths[] = {"/healthz", "/v1/run", "/v1/phases", "{id}/end"};
	struct response response = ask_route(*state, "GET", "/");

	assert_answer(&response, 200, "text/plain; charset=utf-8");
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_non_null(strstr(response.body, paths[i]));
	response_free(&response);
}

/* The same status, headers and length as GET, and nothing after them. */
static void test_head(void **state)
{
	static const char *const paths[] = {"/", "/healthz", "/v1/run", "/none"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct response get = ask_route(*state, "GET", paths[i]), head;
		autofree char *length = response_header(&get, "Content-Length");
		autoclose int fd = client_connect(*state, NULL);
		autofree char *text = NULL;

		assert_true(asprintf(&text,
				     "HEAD %s HTTP/1.1\r\nHost: localhost\r\n"
				     "Connection: close\r\n\r\n",
				     paths[i]) > 0);
		assert_int_equal(client_send(fd, text, strlen(text)), 0);
		assert_int_equal(client_receive(fd, true, &head), 0);
		assert_int_equal(head.status, get.status);
		/* Two documents of /v1/run differ only in their time stamps. */
		assert_header(&head, "Content-Length", length);
		assert_int_equal(client_drain(fd, PATIENCE_MS), 0);
		response_free(&get);
		response_free(&head);
	}
}

static uint64_t begin(struct server *server)
{
	struct response response = ask_route(server, "POST", "/v1/phases");
	unsigned long phase;
	char location[64];

	assert_answer(&response, 201, "application/json");
	assert_int_equal(sscanf(response.body, "{\"phase\": %lu, \"lease_s\": 3600}", &phase), 1);
	snprintf(location, sizeof(location), "/v1/phases/%lu", phase);
	assert_header(&response, "Location", location);
	response_free(&response);
	return phase;
}

static struct response end(struct server *server, uint64_t phase)
{
	char path[64];

	snprintf(path, sizeof(path), "/v1/phases/%ju/end", (uintmax_t)phase);
	return ask_route(server, "POST", path);
}

static void test_phases(void **state)
{
	uint64_t first = begin(*state), second = begin(*state);

	assert_int_not_equal(first, second);
	assert_run(end(*state, second), PHASE_DURATION_NS(second));
	assert_run(end(*state, first), PHASE_DURATION_NS(first));
	assert_error(end(*state, first), 404);
	assert_error(end(*state, second + 1), 404);
	assert_error(end(*state, UINT64_MAX), 404);
}

static void test_leases(void **state)
{
	static const char *const wrong[] = {"0", "86401", "-1", "1s", "", "99999999999999999999"};
	struct server *server = *state;
	struct response response = ask_route(server, "POST", "/v1/phases?lease=60");
	char path[64];

	assert_int_equal(response.status, 201);
	assert_non_null(strstr(response.body, "\"lease_s\": 60}"));
	assert_int_equal(server->lease_s, 60);
	response_free(&response);
	snprintf(path, sizeof(path), "/v1/phases/%ju/renew", (uintmax_t)server->phases);
	response = ask_route(server, "POST", path);
	assert_answer(&response, 200, "application/json");
	response_free(&response);
	assert_run(end(server, server->phases), PHASE_DURATION_NS(server->phases));
	assert_error(ask_route(server, "POST", path), 404);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(path, sizeof(path), "/v1/phases?lease=%s", wrong[i]);
		assert_error(ask_route(server, "POST", path), 400);
	}
}

/* The default is ten minutes, by the second, of all services; invalid values are refused. */
static void test_past(void **state)
{
	static const char *const wrong[] = {
		"last=0",     "last=86401", "step=0", "step=x",	  "port=0",
		"port=65536", "last=-1",    "last=",  "port=80x", "step=86401"};
	struct server *server = *state;

	assert_run(ask_route(server, "GET", "/v1/past"), TOTAL_DURATION_NS);
	assert_int_equal(server->past.last_s, 600);
	assert_int_equal(server->past.step_s, 1);
	assert_int_equal(server->past.port, 0);
	assert_run(ask_route(server, "GET", "/v1/past?last=86400&step=10&port=80"),
		   TOTAL_DURATION_NS);
	assert_int_equal(server->past.last_s, 86400);
	assert_int_equal(server->past.step_s, 10);
	assert_int_equal(server->past.port, 80);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/v1/past?%s", wrong[i]);
		assert_error(ask_route(server, "GET", path), 400);
	}
	server->fail = -ENODATA;
	assert_error(ask_route(server, "GET", "/v1/past"), 404);
	server->fail = 0;
}

static void test_phases_full(void **state)
{
	uint64_t phases[SNAPSHOT_PHASES];
	struct response response;

	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		phases[i] = begin(*state);
	response = ask_route(*state, "POST", "/v1/phases");
	assert_header(&response, "Retry-After", "1");
	assert_error(response, 503);
	assert_run(end(*state, phases[5]), PHASE_DURATION_NS(phases[5]));
	phases[5] = begin(*state);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		assert_run(end(*state, phases[i]), PHASE_DURATION_NS(phases[i]));
}

static void test_malformed_number(void **state)
{
	static const char *const ids[] = {
		"x",
		"1x",
		"-1",
		"+1",
		"0x1",
		"1.0",
		"%20",
		"..",
		"99999999999999999999999",
		"0000000000000000000000000000000000000000000000001",
	};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		snprintf(path, sizeof(path), "/v1/phases/%s/end", ids[i]);
		assert_error(ask_route(*state, "POST", path), 400);
	}
}

static void test_source_fails(void **state)
{
	struct server *server = *state;

	server->fail = -EIO;
	assert_error(ask_route(server, "GET", "/v1/run"), 500);
	assert_error(ask_route(server, "POST", "/v1/phases"), 500);
	assert_error(ask_route(server, "POST", "/v1/phases/1/end"), 500);
	server->fail = 0;
	assert_run(ask_route(server, "GET", "/v1/run"), TOTAL_DURATION_NS);
}

static void test_unknown_route(void **state)
{
	static const char *const paths[] = {
		"/none",
		"/v1",
		"/v1/",
		"/v1/run/",
		"/v1/runs",
		"//v1/run",
		"/v1/phases/",
		"/v1/phases/1",
		"/V1/run",
		"*",
		"/v1/phases//end",
		"/v1/phases/1/2/end",
		"/v1/phases/1/end/",
		"/%2e%2e/etc/passwd",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_error(ask_route(*state, "GET", paths[i]), 404);
		assert_error(ask_route(*state, "POST", paths[i]), 404);
	}
}

static void assert_not_allowed(struct response response, const char *allow)
{
	assert_header(&response, "Allow", allow);
	assert_error(response, 405);
}

static void test_wrong_method(void **state)
{
	static const char *const gets[] = {"/", "/healthz", "/v1/run"};
	static const char *const posts[] = {"/v1/phases", "/v1/phases/1/end", "/v1/phases/x/end"};
	static const char *const others[] = {"PUT", "DELETE", "OPTIONS", "PATCH", "BREW", "get"};

	for (size_t i = 0; i < ARRAY_SIZE(gets); i++) {
		assert_not_allowed(ask_route(*state, "POST", gets[i]), "GET, HEAD");
		assert_not_allowed(ask_route(*state, "GET", posts[i]), "POST");
		for (size_t m = 0; m < ARRAY_SIZE(others); m++) {
			assert_not_allowed(ask_route(*state, others[m], gets[i]), "GET, HEAD");
			assert_not_allowed(ask_route(*state, others[m], posts[i]), "POST");
		}
	}
}

static void test_host(void **state)
{
	static const char *const bad[] = {"evil.example", "localhost:1", "127.0.0.1.evil.example",
					  "", "10.255.255.254"};
	static const char *const good[] = {"localhost", "127.0.0.1", "[::1]"};
	unsigned int port = server_port(*state);
	struct response response;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_error(ask(*state, "GET /v1/run HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]), 421);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		response = ask(*state, "GET /v1/run HTTP/1.1\r\nhOST:%s\r\n\r\n", good[i]);
		assert_run(response, TOTAL_DURATION_NS);
		response =
			ask(*state, "GET /v1/run HTTP/1.1\r\nHost:  %s:%u \r\n\r\n", good[i], port);
		assert_run(response, TOTAL_DURATION_NS);
	}
}

static void test_host_missing(void **state)
{
	assert_error(ask(*state, "GET /v1/run HTTP/1.1\r\n\r\n"), 421);
	assert_error(ask(*state, "GET /v1/run HTTP/1.0\r\n\r\n"), 421);
	assert_error(ask(*state, "GET /none HTTP/1.1\r\n\r\n"), 421);
	assert_error(ask(*state, "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n"
				 "Host: evil.example\r\n\r\n"),
		     400);
	assert_error(ask(*state, "GET /v1/run HTTP/1.1\r\nHost: evil.example\r\n"
				 "Host: localhost\r\n\r\n"),
		     400);
}

/* A refused request has no effect: the next phase has the next number. */
static void test_refused_has_no_effect(void **state)
{
	uint64_t before = begin(*state);

	assert_error(ask(*state, "POST /v1/phases HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
	assert_error(ask(*state, "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
				 "Origin: http://evil.example\r\n\r\n"),
		     403);
	assert_error(ask(*state, "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
				 "Origin: null\r\n\r\n"),
		     403);
	assert_int_equal(begin(*state), before + 1);
	assert_run(end(*state, before), PHASE_DURATION_NS(before));
	assert_run(end(*state, before + 1), PHASE_DURATION_NS(before + 1));
}

/* http://localhost is port 80, and 127.0.0.1 another origin than localhost. */
static void test_other_origins(void **state)
{
	unsigned int port = server_port(*state);

	assert_error(ask(*state,
			 "GET /v1/run HTTP/1.1\r\nHost: localhost:%u\r\n"
			 "Origin: http://localhost\r\n\r\n",
			 port),
		     403);
	assert_error(ask(*state,
			 "GET /v1/run HTTP/1.1\r\nHost: localhost:%u\r\n"
			 "Origin: http://127.0.0.1:%u\r\n\r\n",
			 port, port),
		     403);
	assert_error(ask(*state,
			 "GET /v1/run HTTP/1.1\r\nHost: localhost:%u\r\n"
			 "Origin: https://localhost:%u\r\n\r\n",
			 port, port),
		     403);
}

/* The header allows scripts and styles with the page's nonce alone, which no other page has. */
static void test_policy_of_the_page(void **state)
{
	char last[33] = "";

	for (int i = 0; i < 2; i++) {
		struct response response = ask(*state, "GET / HTTP/1.1\r\nHost: localhost\r\n"
						       "Accept: text/html\r\n\r\n");
		autofree char *policy = response_header(&response, "Content-Security-Policy");
		const char *script = strstr(response.body, "<script nonce=\"");
		char nonce[33] = "", allowed[64];

		assert_answer(&response, 200, "text/html; charset=utf-8");
		assert_non_null(script);
		assert_int_equal(sscanf(script, "<script nonce=\"%32[0-9a-f]\"", nonce), 1);
		snprintf(allowed, sizeof(allowed), "script-src 'nonce-%s'", nonce);
		assert_non_null(strstr(policy, allowed));
		snprintf(allowed, sizeof(allowed), "style-src 'nonce-%s'", nonce);
		assert_non_null(strstr(policy, allowed));
		assert_null(strstr(response.body, "http-equiv"));
		assert_string_not_equal(nonce, last);
		memcpy(last, nonce, sizeof(last));
		response_free(&response);
	}
}

/* There are places, but no memory: the caller may try again, and begins nothing. */
static void test_phases_without_memory(void **state)
{
	struct server *server = *state;
	uint64_t before = server->phases;
	struct response response;

	server->fail = -EDQUOT;
	response = ask_route(server, "POST", "/v1/phases");
	server->fail = 0;
	assert_header(&response, "Retry-After", "1");
	assert_non_null(strstr(response.body, "take all the memory"));
	assert_error(response, 503);
	assert_int_equal(server->phases, before);
	assert_run(end(server, begin(server)), PHASE_DURATION_NS(before + 1));
}

static void test_two_lengths(void **state)
{
	struct response response = ask(*state, "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n"
					       "Content-Length: 0\r\nContent-Length: 0\r\n\r\n");

	assert_int_equal(response.status, 400);
	response_free(&response);
}

/* Neither /v1/run nor any other document. */
static void test_nul_in_path(void **state)
{
	assert_error(ask_route(*state, "GET", "/v1/run%00"), 404);
	assert_error(ask_route(*state, "GET", "/v1/run%00/../x"), 404);
}

static void test_own_origin(void **state)
{
	unsigned int port = server_port(*state);

	assert_run(ask(*state,
		       "GET /v1/run HTTP/1.1\r\nHost: localhost:%u\r\n"
		       "Origin: http://localhost:%u\r\n\r\n",
		       port, port),
		   TOTAL_DURATION_NS);
}

static void test_small_body_is_ignored(void **state)
{
	static const char body[4096] = "";
	autofree char *text = malloc(sizeof(body));

	memset(text, 'x', sizeof(body));
	assert_run(ask(*state,
		       "GET /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n"
		       "%.*s",
		       sizeof(body), (int)sizeof(body), text),
		   TOTAL_DURATION_NS);
	assert_run(ask(*state, "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n"
			       "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
		   TOTAL_DURATION_NS);
}

static void test_keep_alive(void **state)
{
	const char text[] = "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n\r\n";
	autoclose int fd = client_connect(*state, NULL);
	struct response response;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(client_send(fd, text, strlen(text)), 0);
		assert_int_equal(client_receive(fd, false, &response), 0);
		assert_run(response, TOTAL_DURATION_NS);
	}
}

static void test_old_client(void **state)
{
	const char text[] = "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n";
	autoclose int fd = client_connect(*state, NULL);
	struct response response;

	assert_int_equal(client_send(fd, text, strlen(text)), 0);
	assert_int_equal(client_receive(fd, false, &response), 0);
	assert_int_equal(response.status, 200);
	response_free(&response);
	assert_int_equal(client_drain(fd, PATIENCE_MS), 0);
}

static void test_wildcard(void **state)
{
	const char good[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.2\r\n\r\n";
	const char bad[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.3\r\n\r\n";
	struct server server;
	struct response response;
	int fd;

	assert_int_equal(server_start(&server, "0.0.0.0:0", NULL), 0);
	fd = client_connect(&server, "127.0.0.2");
	assert_int_equal(client_send(fd, good, strlen(good)), 0);
	assert_int_equal(client_receive(fd, false, &response), 0);
	assert_int_equal(response.status, 200);
	response_free(&response);
	assert_int_equal(client_send(fd, bad, strlen(bad)), 0);
	assert_int_equal(client_receive(fd, false, &response), 0);
	assert_error(response, 421);
	close(fd);
	server_stop(&server);
}

static void test_ipv6(void **state)
{
	struct server server;
	int err = server_start(&server, "[::1]:0", NULL);

	if (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT) {
		print_message("no [::1] on this machine\n");
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(strncmp(server.sink->url, "http://[::1]:", 13), 0);
	assert_run(ask(&server, "GET /v1/run HTTP/1.1\r\nHost: [::1]:%u\r\n\r\n",
		       server_port(&server)),
		   TOTAL_DURATION_NS);
	server_stop(&server);
}

static void test_bind_fails(void **state)
{
	struct server *running = *state, server;

	assert_int_equal(server_start(&server, running->sink->url + strlen("http://"), NULL),
			 -EADDRINUSE);
	/* TEST-NET-1 (RFC 5737) belongs to no host. */
	assert_int_equal(server_start(&server, "192.0.2.1:0", NULL), -EADDRNOTAVAIL);
}

/* The port is free again at once, despite connections in TIME_WAIT. */
static void test_reopen(void **state)
{
	struct server first, second;
	char text[64];

	assert_int_equal(server_start(&first, "127.0.0.1:0", NULL), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", server_port(&first));
	for (int i = 0; i < 5; i++) {
		struct response response = ask(&first, "GET /healthz HTTP/1.0\r\n"
						       "Host: localhost\r\n\r\n");

		response_free(&response);
	}
	server_stop(&first);
	assert_int_equal(server_start(&second, text, NULL), 0);
	server_stop(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_health),
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_past),
		cmocka_unit_test(test_phases_full),
		cmocka_unit_test(test_malformed_number),
		cmocka_unit_test(test_source_fails),
		cmocka_unit_test(test_unknown_route),
		cmocka_unit_test(test_wrong_method),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_host_missing),
		cmocka_unit_test(test_refused_has_no_effect),
		cmocka_unit_test(test_own_origin),
		cmocka_unit_test(test_other_origins),
		cmocka_unit_test(test_policy_of_the_page),
		cmocka_unit_test(test_phases_without_memory),
		cmocka_unit_test(test_two_lengths),
		cmocka_unit_test(test_nul_in_path),
		cmocka_unit_test(test_small_body_is_ignored),
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_old_client),
		cmocka_unit_test(test_wildcard),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_bind_fails),
		cmocka_unit_test(test_reopen),
	};

	return cmocka_run_group_tests(tests, group_start, group_stop);
}
