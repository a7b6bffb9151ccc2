// SPDX-License-Identifier: MIT
/*
 * Any bytes as sent by an HTTP/2 or gRPC server to the driver, on a made-up connection. Each
 * started request ends exactly once, with an answer only if the bytes contained one, and everything
 * is freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/http2/h2.h"
#include "engine/target.h"
#include "engines.h"
#include "fuzz.h"
#include "transport/link.h"

#define SLOTS	    4U
#define MAX_LINKS   64U
#define FRAME_BYTES 4U

/* ---- transport/link.h: connections that open at once and take all bytes ---- */

static struct {
	struct link *open[MAX_LINKS];
	size_t count;
} opened;

int link_plan_fill(const struct link_settings *settings, const struct sockaddr_storage *address,
		   const char *host, const char *protocol, struct link_plan *ret_plan,
		   char **ret_error)
{
	(void)host;
	(void)protocol;
	(void)ret_error;
	*ret_plan = (struct link_plan){.address = *address,
				       .policy = settings->policy,
				       .timeout_ns = settings->timeout_ns};
	return 0;
}

void link_plan_clear(struct link_plan *plan)
{
	(void)plan;
}

int links_init(struct links *all, uv_loop_t *loop, const struct link_plan *plan,
	       const struct link_events *events)
{
	all->loop = loop;
	all->plan = plan;
	all->events = events;
	return 0;
}

void links_divide(struct links *all, uint32_t first, uint32_t count, uint32_t of)
{
	(void)all;
	require(first + count <= of);
}

void links_clear(struct links *all)
{
	(void)all;
}

int link_open(struct link *link)
{
	if (opened.count == MAX_LINKS)
		return -EMFILE;
	opened.open[opened.count++] = link;
	link->state = LINK_CONNECTING;
	return 0;
}

int link_send(struct link *link, const char *data, size_t length)
{
	require(link->state == LINK_OPEN && data && length);
	return 0;
}

size_t link_unsent(const struct link *link)
{
	return link->unsent_length;
}

bool link_flow(const struct link *link, struct flow *ret_flow, uint32_t *ret_hash)
{
	(void)link;
	*ret_flow = (struct flow){0};
	*ret_hash = 0;
	return false;
}

void link_close(struct link *link)
{
	if (link->state != LINK_CLOSED)
		link->state = LINK_CLOSING;
}

enum run_error link_connect_error(int code)
{
	(void)code;
	return RUN_ERROR_REFUSED;
}

enum run_error link_connect_failure(struct link *link, int code)
{
	link->code = code;
	return RUN_ERROR_REFUSED;
}

enum run_error link_transfer_failure(struct link *link, int code)
{
	link->code = code;
	return RUN_ERROR_RESET;
}

/* ---- the worker ---- */

static struct {
	unsigned int started, ended;
	bool under_way[SLOTS];
} worker;

static bool may_connect(void *user)
{
	(void)user;
	return true;
}

static void connected(void *user, uint32_t slot, uint64_t connect_ns)
{
	(void)user;
	(void)connect_ns;
	require(slot < SLOTS);
}

static enum engine_next done(const struct engine_host *host, uint32_t slot,
			     struct engine_result *result)
{
	char text[512] = "";

	(void)host;
	require(slot < SLOTS && worker.under_way[slot]);
	worker.under_way[slot] = false;
	worker.ended++;
	if (result->not_yet)
		return ENGINE_REST;
	require(result->end_ns);
	require(result->error != RUN_NO_ERROR || result->start_ns);
	require(result->grpc <= RUN_GRPC_STATUS_COUNT);
	if (result->tell)
		result->tell(result, text, sizeof(text));
	require(memchr(text, 0, sizeof(text)));
	return ENGINE_REST;
}

static uv_loop_t loop; /* of the timer of messages */
static const struct engine_host host = {.loop = &loop,
					.slots = SLOTS,
					.all_slots = SLOTS,
					.may_connect = may_connect,
					.connected = connected,
					.done = done};

static void start_idle(void *state)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (worker.under_way[slot])
			continue;
		worker.under_way[slot] = true;
		worker.started++;
		engine_h2c.start(state, slot);
	}
}

/* Act as the event loop: open the connecting links, close the closing ones. */
static void go_on(const struct link_events *events)
{
	for (size_t i = 0; i < opened.count; i++) {
		struct link *link = opened.open[i];

		if (link->state == LINK_CONNECTING) {
			link->state = LINK_OPEN;
			events->opened(link);
		} else if (link->state == LINK_CLOSING) {
			opened.open[i--] = opened.open[--opened.count];
			link->state = LINK_CLOSED;
			events->closed(link);
		}
	}
}

static void say(const struct link_events *events, const uint8_t *data, size_t length)
{
	for (size_t i = 0; i < opened.count; i++) {
		struct link *link = opened.open[i];

		if (link->state == LINK_OPEN) {
			events->received(link, (const char *)data, length);
			return;
		}
	}
}

/* ---- the server's bytes ---- */

/* Send a frame. @data is its type, flags, stream and length, a byte each, then the payload. */
static size_t say_frame(const struct link_events *events, const uint8_t *data, size_t size)
{
	size_t length = data[3] < size - FRAME_BYTES ? data[3] : size - FRAME_BYTES;
	uint8_t frame[9 + UINT8_MAX] = {0, 0, (uint8_t)length, data[0], data[1], 0, 0, 0, data[2]};

	memcpy(frame + 9, data + FRAME_BYTES, length);
	say(events, frame, 9 + length);
	return FRAME_BYTES + length;
}

static void say_all(void *state, const uint8_t *data, size_t size, bool frames)
{
	const struct link_events *events = &h2_link_events;

	while (size) {
		size_t said = frames && size > FRAME_BYTES ? say_frame(events, data, size) : size;

		if (said == size && !(frames && size > FRAME_BYTES))
			say(events, data, size);
		data += said;
		size -= said;
		go_on(events);
		start_idle(state);
		go_on(events);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
}

static void finish(void *state)
{
	engine_h2c.expire(state, UINT64_MAX);
	go_on(&h2_link_events);
	engine_h2c.close(state);
	while (opened.count)
		go_on(&h2_link_events);
	uv_run(&loop, UV_RUN_NOWAIT);
	require(!uv_loop_alive(&loop));
	engine_h2c.free(state);
	require(worker.ended <= worker.started);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	require(!uv_loop_init(&loop));
	return 0;
}

/* The first byte has bits: gRPC, whole frames instead of bytes, SETTINGS from the server first, several messages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
	struct link_settings link = {.timeout_ns = 1, .streams = 2, .policy = {.requests = 3}};
	struct request request = {.method = "GET"};
	struct target target = {0};
	autofree char *error = NULL;
	void *shared = NULL, *state = NULL;

	if (size < 2)
		return 0;
	memset(&worker, 0, sizeof(worker));
	memset(&opened, 0, sizeof(opened));
	request.grpc = data[0] & 1;
	if (data[0] & 8)
		request.grpc_messages = (struct grpc_messages){.count = 3, .interval_ns = 1000};
	require(!target_parse(engines, "h2c://127.0.0.1:80/a", &target, &error));
	require(!engine_h2c.prepare(&request, &link, &target, &shared, &error));
	require(!engine_h2c.open(&host, shared, &state));
	start_idle(state);
	go_on(&h2_link_events);
	if (data[0] & 4)
		say(&h2_link_events, settings, sizeof(settings));
	say_all(state, data + 1, size - 1, data[0] & 2);
	finish(state);
	engine_h2c.release(shared);
	target_clear(&target);
	return 0;
}
