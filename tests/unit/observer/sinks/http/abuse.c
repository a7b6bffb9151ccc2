// SPDX-License-Identifier: MIT
/* Clients cannot hold, fill or crash the endpoint, or make it spin. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/clock.h"

static const struct sink_http_limits short_limits = {
	.connections = 8,
	.per_peer = 8,
	.head_s = 2,
	.idle_s = 1,
	.request_s = 2,
	.connection_memory = 16 * 1024,
};

static const struct sink_http_limits one_connection = {
	.connections = 1,
	.per_peer = 1,
	.head_s = 20,
	.idle_s = 20,
	.request_s = 20,
	.connection_memory = 16 * 1024,
};

/* Patient limits: no client is dropped for being slow. */
static const struct sink_http_limits patient = {
	.connections = 64,
	.per_peer = 32,
	.head_s = 600,
	.idle_s = 600,
	.request_s = 600,
	.connection_memory = 16 * 1024,
};

static int start(void **state, const struct sink_http_limits *limits)
{
	static struct server server;

	*state = &server;
	return server_start(&server, "127.0.0.1:0", limits);
}

static int start_short(void **state)
{
	return start(state, &short_limits);
}

static int start_one(void **state)
{
	return start(state, &one_connection);
}

static int start_patient(void **state)
{
	return start(state, &patient);
}

static int start_default(void **state)
{
	return start(state, NULL);
}

static int stop(void **state)
{
	server_stop(*state);
	return 0;
}

static void assert_status(int fd, int status)
{
	struct response response;

	assert_int_equal(client_receive(fd, false, &response), 0);
	if (response.status != status)
		fail_msg("%d expected: %s", status, response.text);
	response_free(&response);
}

static void assert_healthy(struct server *server)
{
	autoclose int fd = client_connect(server, NULL);

	assert_int_equal(client_send(fd, HEALTH, strlen(HEALTH)), 0);
	assert_status(fd, 200);
}

static char *letters(size_t length)
{
	char *text = malloc(length + 1);

	assert_non_null(text);
	memset(text, 'a', length);
	text[length] = '\0';
	return text;
}

static void test_oversized_head(void **state)
{
	autofree char *text = letters(64 * 1024);
	struct response response;

	response = ask(*state, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Big: %s", text);
	assert_int_equal(response.status, 431);
	response_free(&response);
	response = ask(*state, "GET /%s", text);
	assert_int_equal(response.status, 414);
	response_free(&response);
	assert_healthy(*state);
}

static void assert_too_large(struct response response)
{
	if (response.status != 413)
		fail_msg("413 expected: %s", response.text);
	assert_non_null(strstr(response.body, "\"error\""));
	response_free(&response);
}

static void test_oversized_body(void **state)
{
	static const size_t sizes[] = {4097, 65536, 1024 * 1024};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		autofree char *body = letters(sizes[i]);

		assert_too_large(ask(*state,
				     "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
				     "Content-Length: %zu\r\n\r\n%s",
				     sizes[i], body));
		assert_too_large(ask(*state,
				     "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
				     sizes[i], body));
	}
	assert_too_large(ask(*state, "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
				     "Content-Length: 999999999999\r\n\r\n"));
	assert_too_large(ask(*state, "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
				     "Expect: 100-continue\r\nContent-Length: 4097\r\n\r\n"));
	assert_healthy(*state);
	assert_int_equal(((struct server *)*state)->phases, 0);
}

/* Without an announced length the excess shows only as it arrives: the connection is cut. */
static void test_endless_body(void **state)
{
	const char head[] = "POST /v1/phases HTTP/1.1\r\nHost: localhost\r\n"
			    "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n";
	autoclose int fd = client_connect(*state, NULL);
	autofree char *piece = letters(64 * 1024);
	size_t sent = 0;

	assert_int_equal(client_send(fd, head, strlen(head)), 0);
	while (sent < (64U << 20) && !client_send(fd, piece, 64 * 1024))
		sent += 64 * 1024;
	assert_true(sent < (64U << 20));
	assert_healthy(*state);
}

static void test_malformed(void **state)
{
	static const char *const requests[] = {
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"GET / HTTP/1.1\r\nno colon\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct response response = ask(*state, "%s", requests[i]);

		if (response.status < 400 || response.status == 500)
			fail_msg("%s answered by %s", requests[i], response.text);
		response_free(&response);
	}
	assert_healthy(*state);
}

/* Half a request, then silence; also silence from the start, and after an answer. */
static void test_silence(void **state)
{
	static const char *const starts[] = {
		"",
		"G",
		"GET /healthz HTTP/1.1\r\nHost: lo",
		HEALTH,
		"POST /v1/phases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc",
	};
	unsigned int runs = ((struct server *)*state)->runs;
	int fds[ARRAY_SIZE(starts)];
	uint64_t begin = clock_now_ns();

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		fds[i] = client_connect(*state, NULL);
		assert_int_equal(client_send(fds[i], starts[i], strlen(starts[i])), 0);
	}
	assert_healthy(*state);
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		assert_int_not_equal(client_drain(fds[i], PATIENCE_MS), -ETIMEDOUT);
		close(fds[i]);
	}
	assert_true(clock_now_ns() - begin >= short_limits.idle_s * NSEC_PER_SEC / 2);
	/* The server slept meanwhile. */
	assert_in_range(((struct server *)*state)->runs - runs, 1, 200);
}

/* A byte now and then is traffic, but no request: the connection still ends. */
static void test_slow_loris(void **state)
{
	autoclose int fd = client_connect(*state, NULL);
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	uint64_t begin = clock_now_ns();

	assert_int_equal(client_send(fd, "GET /", 5), 0);
	/* Sending fails if the server ends the connection just before. */
	while (!poll(&pollfd, 1, 200) && !client_send(fd, "a", 1))
		assert_true(clock_now_ns() - begin < PATIENCE_MS * NSEC_PER_MSEC);
	assert_true(clock_now_ns() - begin >= short_limits.head_s * NSEC_PER_SEC * 3 / 4);
	assert_healthy(*state);
}

/* The client requests much and reads nothing. */
static void test_slow_reader(void **state)
{
	const char text[] = "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n\r\n";
	autoclose int fd = client_connect(*state, NULL);
	struct server *server = *state;
	unsigned int runs;

	server->padding = 4 << 20;
	for (int i = 0; i < 8; i++)
		assert_int_equal(client_send(fd, text, strlen(text)), 0);
	assert_healthy(server);
	runs = server->runs;
	poll(NULL, 0, 2500);
	assert_in_range(server->runs - runs, 1, 200);
	server->padding = 0;
	/*
	 * The client gets the contents of the socket buffers, then the end: not all eight
	 * documents.
	 */
	assert_int_not_equal(client_drain(fd, PATIENCE_MS), -ETIMEDOUT);
	assert_healthy(server);
}

/* All allowed connections are held: the next client waits only until they end. */
static void test_held_connections(void **state)
{
	int held[8];

	for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
		held[i] = client_connect(*state, NULL);
		assert_int_equal(client_send(held[i], "GET ", 4), 0);
	}
	assert_healthy(*state);
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		close(held[i]);
}

#define STRANGERS 200U

/*
 * However many strangers stall, an admitted client stays, a new one is answered at once, and the
 * oldest stranger is dropped.
 */
static void test_strangers_make_room(void **state)
{
	struct pollfd first = {.events = POLLIN}, last = {.events = POLLIN};
	struct server server;
	int fds[STRANGERS], admitted;

	assert_int_equal(server_start(&server, "127.0.0.1:0", &patient), 0);
	admitted = client_connect(&server, NULL);
	assert_int_equal(client_send(admitted, HEALTH, strlen(HEALTH)), 0);
	assert_status(admitted, 200);
	for (size_t i = 0; i < STRANGERS; i++) {
		fds[i] = client_connect(&server, NULL);
		assert_int_equal(client_send(fds[i], "GET / HT", 8), 0);
		if (i % 50 == 0)
			assert_healthy(&server);
	}
	assert_healthy(&server);
	first.fd = fds[0];
	last.fd = fds[STRANGERS - 1];
	assert_int_equal(poll(&first, 1, PATIENCE_MS), 1);
	assert_int_equal(poll(&last, 1, 0), 0);
	assert_int_equal(client_send(admitted, HEALTH, strlen(HEALTH)), 0);
	assert_status(admitted, 200);
	server_stop(&server);
	close(admitted);
	for (size_t i = 0; i < STRANGERS; i++)
		close(fds[i]);
}

/* Many requests for an expensive document share one that is at most a second old. */
static void test_dear_documents_are_shared(void **state)
{
	const char text[] = "GET /v1/run HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct server server;
	int fds[30];

	assert_int_equal(server_start(&server, "127.0.0.1:0", &patient), 0);
	assert_healthy(&server); /* makes the doctor look */
	server.made = 0;
	server.work_ms = 300;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = client_connect(&server, NULL);
		assert_int_equal(client_send(fds[i], text, strlen(text)), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_status(fds[i], 200);
		close(fds[i]);
	}
	/* One for each second in which they were answered. */
	assert_in_range(server.made, 1, ARRAY_SIZE(fds) / 2);
	server_stop(&server);
}

/*
 * Make the request @text for a document, and /healthz on the connection @asker while the document is read. Repeat that
 * request until the document comes. Return how many answers came before it. If this thread comes
 * late, it counts too few.
 */
static unsigned int race(struct server *server, int asker, const char *text)
{
	struct pollfd fds[] = {{.fd = asker, .events = POLLIN},
			       {.fd = client_connect(server, NULL), .events = POLLIN}};
	struct response response;
	unsigned int answers = 0;

	server->asker = asker;
	assert_int_equal(client_send(fds[1].fd, text, strlen(text)), 0);
	while (poll(fds, ARRAY_SIZE(fds), PATIENCE_MS) > 0 && !fds[1].revents) {
		assert_status(asker, 200);
		answers++;
		assert_int_equal(client_send(asker, HEALTH, strlen(HEALTH)), 0);
	}
	assert_status(asker, 200);
	assert_int_equal(client_receive(fds[1].fd, false, &response), 0);
	assert_int_equal(response.status, 200);
	response_free(&response);
	close(fds[1].fd);
	return answers;
}

/*
 * Health checks are answered while a long document is made, though they came after its request. Two
 * answers would not need slices: one before the text is printed, and one with it.
 */
static void health_beside(const char *text)
{
	unsigned int answers = 0;

	for (int i = 0; i < 20 && answers < 3; i++) {
		struct server server;
		int asker;

		assert_int_equal(server_start(&server, "127.0.0.1:0", &patient), 0);
		assert_healthy(&server); /* makes the doctor look */
		asker = client_connect(&server, NULL);
		server.services = 100;
		response_free((struct response[]){ask_route(&server, "POST", "/v1/phases")});
		answers = race(&server, asker, text);
		close(asker);
		server_stop(&server);
	}
	assert_in_range(answers, 3, UINT_MAX);
}

static void test_health_beside_a_document(void **state)
{
	health_beside("GET /v1/run HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

static void test_health_beside_the_document_of_a_phase(void **state)
{
	health_beside("POST /v1/phases/1/end HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* A health check is answered before a reading ends, for all requests that take one. */
static void test_health_within_a_reading(void **state)
{
	static const char *const requests[][2] = {
		{"GET", "/v1/run"},	      {"GET", "/v1/services"},
		{"GET", "/v1/past"},	      {"GET", "/v1/findings"},
		{"GET", "/metrics"},	      {"POST", "/v1/phases"},
		{"POST", "/v1/phases/1/end"}, {"GET", "/v1/clients?port=80"},
	};
	struct server server;
	int asker;

	assert_int_equal(server_start(&server, "127.0.0.1:0", &patient), 0);
	assert_healthy(&server); /* makes the doctor look */
	asker = client_connect(&server, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(requests); i++) {
		struct response response;

		server.impatient = asker;
		response = ask_route(&server, requests[i][0], requests[i][1]);
		assert_true(response.status == 200 || response.status == 201 ||
			    i + 1 == ARRAY_SIZE(requests));
		response_free(&response);
		assert_status(asker, 200);
		assert_int_equal(server.satisfied, i + 1);
	}
	close(asker);
	server_stop(&server);
}

/* A health check that came during a long reading is answered before the loop goes on to its own. */
static void test_health_before_the_loop(void **state)
{
	struct server server;
	int asker;

	assert_int_equal(server_start(&server, "127.0.0.1:0", &patient), 0);
	assert_healthy(&server); /* makes the doctor look */
	asker = client_connect(&server, NULL);
	server.work_ms = 20;
	for (int i = 0; i < 5; i++) {
		autoclose int fd = client_connect(&server, NULL);
		const char text[] = "GET /v1/services HTTP/1.1\r\nHost: localhost\r\n\r\n";

		server.asker = asker;
		assert_int_equal(client_send(fd, text, strlen(text)), 0);
		assert_status(fd, 200);
		/* Leave the answer until it is noted. */
		while (server.in_time + server.late == (unsigned int)i)
			poll(NULL, 0, 1);
		assert_status(asker, 200);
	}
	assert_int_equal(server.late, 0);
	assert_int_equal(server.in_time, 5);
	close(asker);
	server_stop(&server);
}

/* The highest age of a verdict, after which a health check makes the doctor look again. */
#define VERDICT_MS 10000

/* A health check does not wait for the look that it causes, and the next one has its verdict. */
static void test_health_does_not_wait(void **state)
{
	struct response response;
	struct server server;
	unsigned int looks;
	int status = 200;

	assert_int_equal(server_start(&server, "127.0.0.1:0", &patient), 0);
	assert_healthy(&server);
	poll(NULL, 0, VERDICT_MS + 100);
	looks = server.looks;
	server.critical = 1;
	assert_healthy(&server);
	for (int i = 0; i < 1000 && server.looks == looks; i++)
		poll(NULL, 0, 10);
	assert_int_equal(server.looks, looks + 1);
	for (int i = 0; i < 100 && status == 200; i++) {
		response = ask_route(&server, "GET", "/healthz");
		status = response.status;
		response_free(&response);
	}
	assert_int_equal(status, 503);
	server_stop(&server);
}

/* The listener must resume when the last connection at the limit has gone. */
static void test_limit_is_left(void **state)
{
	for (int i = 0; i < 20; i++) {
		int first = client_connect(*state, NULL), second;

		assert_int_equal(client_send(first, HEALTH, strlen(HEALTH)), 0);
		assert_status(first, 200);
		second = client_connect(*state, NULL);
		assert_int_equal(client_send(second, HEALTH, strlen(HEALTH)), 0);
		poll(NULL, 0, 5);
		close(first);
		assert_status(second, 200);
		close(second);
	}
}

static void test_many_connections(void **state)
{
	int fds[300];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = client_connect(*state, NULL);
		assert_int_equal(client_send(fds[i], HEALTH, strlen(HEALTH)), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_status(fds[i], 200);
		close(fds[i]);
	}
	assert_healthy(*state);
}

static void test_pipelined(void **state)
{
	const char pattern[] = HEALTH "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"
				      "POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
				      "Content-Length: 3\r\n\r\nabc";
	static const int statuses[] = {200, 404, 405};
	autoclose int fd = client_connect(*state, NULL);

	for (int i = 0; i < 200; i++)
		assert_int_equal(client_send(fd, pattern, strlen(pattern)), 0);
	for (size_t i = 0; i < 200 * ARRAY_SIZE(statuses); i++)
		assert_status(fd, statuses[i % ARRAY_SIZE(statuses)]);
}

/* A client that has shut its side is not kept until the idle time is over. */
static void test_half_close(void **state)
{
	static const char *const starts[] = {"", "GET /", HEALTH, HEALTH HEALTH "GET /"};

	for (size_t i = 0; i < 50 * ARRAY_SIZE(starts); i++) {
		const char *start = starts[i % ARRAY_SIZE(starts)];
		autoclose int fd = client_connect(*state, NULL);

		assert_int_equal(client_send(fd, start, strlen(start)), 0);
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		assert_int_not_equal(client_drain(fd, PATIENCE_MS), -ETIMEDOUT);
	}
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33);
}

/* Even rounds: only noise; odd ones: a request with a few changed bytes, which gets further. */
static size_t make_garbage(uint64_t *seed, int round, char *data, size_t size)
{
	static const char sane[] = "POST /v1/phases/1/end?a=%41&b HTTP/1.1\r\nHost: localhost\r\n"
				   "Cookie: a=b; c=\"d\"\r\nTransfer-Encoding: chunked\r\n\r\n"
				   "3\r\nabc\r\n0\r\nX: y\r\n\r\n";
	size_t length = 1 + next_random(seed) % (size - 1);

	if (round % 2) {
		length = sizeof(sane) - 1;
		memcpy(data, sane, length);
		for (int i = 0; i < 1 + round % 7; i++)
			data[next_random(seed) % length] = (char)next_random(seed);
		return length;
	}
	for (size_t i = 0; i < length; i++)
		data[i] = (char)next_random(seed);
	return length;
}

static size_t open_descriptors(void)
{
	autoclosedir DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (dir && readdir(dir))
		count++;
	return count;
}

static void test_garbage(void **state)
{
	size_t before = open_descriptors();
	uint64_t seed = 20240611;
	char data[2048];

	for (int round = 0; round < 4000; round++) {
		size_t length = make_garbage(&seed, round, data, sizeof(data));
		autoclose int fd = client_connect(*state, NULL);

		/* Either may fail: the server need not read it all. */
		client_send(fd, data, length);
		shutdown(fd, SHUT_WR);
		if (client_drain(fd, PATIENCE_MS) == -ETIMEDOUT)
			fail_msg("round %d hangs", round);
	}
	assert_healthy(*state);
	for (int i = 0; i < 100 && open_descriptors() > before; i++)
		poll(NULL, 0, 10);
	assert_int_equal(open_descriptors(), before);
}

static void test_stop_with_clients(void **state)
{
	struct server server;
	int fds[3];

	assert_int_equal(server_start(&server, "127.0.0.1:0", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = client_connect(&server, NULL);
	assert_int_equal(client_send(fds[1], "GET /", 5), 0);
	assert_int_equal(client_send(fds[2], HEALTH, strlen(HEALTH)), 0);
	assert_status(fds[2], 200);
	server_stop(&server);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_int_not_equal(client_drain(fds[i], PATIENCE_MS), -ETIMEDOUT);
		close(fds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_oversized_head, start_default, stop),
		cmocka_unit_test_setup_teardown(test_oversized_body, start_default, stop),
		cmocka_unit_test_setup_teardown(test_endless_body, start_default, stop),
		cmocka_unit_test_setup_teardown(test_malformed, start_default, stop),
		cmocka_unit_test_setup_teardown(test_silence, start_short, stop),
		cmocka_unit_test_setup_teardown(test_slow_loris, start_short, stop),
		cmocka_unit_test_setup_teardown(test_slow_reader, start_short, stop),
		cmocka_unit_test_setup_teardown(test_held_connections, start_short, stop),
		cmocka_unit_test_setup_teardown(test_limit_is_left, start_one, stop),
		cmocka_unit_test_setup_teardown(test_many_connections, start_default, stop),
		cmocka_unit_test_setup_teardown(test_pipelined, start_default, stop),
		cmocka_unit_test_setup_teardown(test_half_close, start_patient, stop),
		cmocka_unit_test_setup_teardown(test_garbage, start_default, stop),
		cmocka_unit_test(test_strangers_make_room),
		cmocka_unit_test(test_dear_documents_are_shared),
		cmocka_unit_test(test_health_beside_a_document),
		cmocka_unit_test(test_health_beside_the_document_of_a_phase),
		cmocka_unit_test(test_health_within_a_reading),
		cmocka_unit_test(test_health_before_the_loop),
		cmocka_unit_test(test_health_does_not_wait),
		cmocka_unit_test(test_stop_with_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
