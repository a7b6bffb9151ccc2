// SPDX-License-Identifier: MIT
/* The order in which connections read responses and send the next requests. */
#include "driver/test.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/connection.h"

#define SLOTS 3
#define TURNS 100

/* The events, two characters each: 's' sent or 'r' received, and the slot. */
struct scene {
	uv_loop_t loop;
	struct engine_host host;
	struct connections_shared shared;
	void *connections;
	int listener;
	int peers[SLOTS];
	uint32_t dones[SLOTS];
	char log[64];
};

static void note(struct scene *scene, char what, uint32_t slot)
{
	size_t length = strlen(scene->log);

	assert_true(length + 2 < sizeof(scene->log));
	scene->log[length] = what;
	scene->log[length + 1] = (char)('0' + slot);
}

static void begin(struct connection *connection)
{
	note(connection_host(connection)->user, 's', connection->slot);
	connection->request = uv_buf_init((char *)"?", 1);
}

static enum connection_verdict receive(struct connection *connection, const char *data,
				       size_t length)
{
	(void)data;
	note(connection_host(connection)->user, 'r', connection->slot);
	connection->keep_alive = true;
	return length == 1 ? CONNECTION_COMPLETE : CONNECTION_MALFORMED;
}

static enum connection_verdict end(struct connection *connection)
{
	(void)connection;
	return CONNECTION_TRUNCATED;
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct connection),
	.begin = begin,
	.receive = receive,
	.end = end,
};

static bool may_connect(void *user)
{
	(void)user;
	return true;
}

static void connected(void *user, uint32_t slot, uint64_t connect_ns)
{
	(void)user;
	(void)slot;
	(void)connect_ns;
}

/* Each slot has two requests. */
static enum engine_next done(const struct engine_host *host, uint32_t slot,
			     struct engine_result *result)
{
	struct scene *scene = host->user;

	assert_int_equal(result->error, RUN_NO_ERROR);
	assert_true(result->start_ns <= result->first_ns && result->first_ns <= result->end_ns);
	return ++scene->dones[slot] < 2 ? ENGINE_AGAIN : ENGINE_REST;
}

static void listen_here(struct scene *scene)
{
	struct sockaddr *address = (struct sockaddr *)&scene->shared.plan.address;
	socklen_t length = sizeof(scene->shared.plan.address);

	scene->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(scene->listener >= 0);
	if (scene->listener < 0)
		return; /* as the analyser requires */
	address->sa_family = AF_UNIX;
	/* With only a family, the kernel chooses an unused abstract name. */
	assert_int_equal(bind(scene->listener, address, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(scene->listener, address, &length), 0);
	assert_int_equal(listen(scene->listener, SLOTS), 0);
	scene->shared.plan.address_length = length;
}

/* The first request of every slot is sent. */
static void open_scene(struct scene *scene, bool batched)
{
	*scene = (struct scene){0};
	listen_here(scene);
	assert_int_equal(uv_loop_init(&scene->loop), 0);
	scene->host = (struct engine_host){
		.loop = &scene->loop,
		.slots = SLOTS,
		.all_slots = SLOTS,
		.batched = batched,
		.user = scene,
		.may_connect = may_connect,
		.connected = connected,
		.done = done,
	};
	scene->shared.plan.timeout_ns = UINT64_MAX / 2;
	assert_int_equal(
		connections_open(&scene->host, &scene->shared, &protocol, &scene->connections), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		connections_start(scene->connections, i);
		scene->peers[i] = accept(scene->listener, NULL, NULL);
		assert_true(scene->peers[i] >= 0);
	}
	assert_string_equal(scene->log, "s0s1s2");
	memset(scene->log, 0, sizeof(scene->log));
}

static void close_scene(struct scene *scene)
{
	connections_close(scene->connections);
	uv_run(&scene->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&scene->loop), 0);
	connections_free(scene->connections);
	for (uint32_t i = 0; i < SLOTS; i++)
		close(scene->peers[i]);
	close(scene->listener);
}

static void run_until(struct scene *scene, size_t length)
{
	for (int i = 0; i < TURNS && strlen(scene->log) < length; i++)
		uv_run(&scene->loop, UV_RUN_NOWAIT);
}

static void answer(const struct scene *scene, uint32_t slot)
{
	assert_int_equal(write(scene->peers[slot], "!", 1), 1);
}

static void expect_order(bool batched, const char *expected)
{
	struct scene scene;

	open_scene(&scene, batched);
	for (uint32_t i = 0; i < SLOTS; i++)
		answer(&scene, i);
	run_until(&scene, strlen(expected));
	assert_string_equal(scene.log, expected);
	close_scene(&scene);
}

/* No response is read late because of other slots' writes. */
static void test_reads_before_it_writes(void **state)
{
	expect_order(true, "r0r1r2s0s1s2");
}

/* At a rate each request has its own time. */
static void test_writes_at_once(void **state)
{
	expect_order(false, "r0s0r1s1r2s2");
}

/* The server's close is seen before the next request is sent, which gets another connection. */
static void test_sees_the_end_first(void **state)
{
	struct scene scene;

	open_scene(&scene, true);
	answer(&scene, 0);
	close(scene.peers[0]);
	answer(&scene, 1);
	run_until(&scene, strlen("r0r1s1s0"));
	assert_string_equal(scene.log, "r0r1s1s0");
	scene.peers[0] = accept(scene.listener, NULL, NULL);
	answer(&scene, 0);
	answer(&scene, 1);
	run_until(&scene, strlen("r0r1s1s0r0r1"));
	assert_int_equal(scene.dones[0], 2);
	assert_int_equal(scene.dones[1], 2);
	assert_int_equal(scene.dones[2], 0);
	close_scene(&scene);
}

/* The driver closes while requests wait to be sent. */
static void test_closes_with_requests_to_follow(void **state)
{
	struct scene scene;

	open_scene(&scene, true);
	answer(&scene, 0);
	run_until(&scene, strlen("r0s0"));
	answer(&scene, 1);
	close_scene(&scene);
	assert_string_equal(scene.log, "r0s0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_before_it_writes),
		cmocka_unit_test(test_writes_at_once),
		cmocka_unit_test(test_sees_the_end_first),
		cmocka_unit_test(test_closes_with_requests_to_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
