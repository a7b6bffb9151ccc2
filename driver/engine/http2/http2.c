// SPDX-License-Identifier: MIT
/* h2:// and h2c://: HTTP/2, and gRPC in it. Neighbours: see h2.h. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "h2.h"
#include "engine/http/request.h"
#include "payload/request.h"
#include "engine/target.h"

static int h2_check(const struct request *request, const struct link_settings *link,
		    const struct target *target, char **ret_error)
{
	struct message message = {0};
	int err = h2_request_check(request, ret_error);

	(void)link;
	if (!err)
		err = http_request_build(request, target, &message, ret_error);
	if (!err)
		message_clear(&message);
	return err;
}

static void h2_release(void *state)
{
	struct h2_shared *shared = state;

	if (!shared)
		return;
	nghttp2_session_callbacks_del(shared->callbacks);
	link_plan_clear(&shared->plan);
	message_clear(&shared->message);
	free(shared);
}

static int fill(struct h2_shared *shared, const struct request *request,
		const struct link_settings *link, const struct target *target, char **ret_error)
{
	const bool tls = engine_has(target->engine, ENGINE_TLS);
	int err = link_plan_fill(link, &target->address, target->host, tls ? "h2" : NULL,
				 &shared->plan, ret_error);

	if (!err)
		err = http_request_build(request, target, &shared->message, ret_error);
	if (!err)
		err = h2_callbacks_new(&shared->callbacks);
	if (err)
		return err;
	shared->scheme = tls ? "https" : "http";
	shared->streams = link->streams;
	shared->grpc = request->grpc;
	shared->messages = request->grpc_messages;
	if (!shared->messages.count)
		shared->messages.count = 1;
	shared->expectation = &request->expectation;
	shared->expected = &request->grpc_expectation;
	if (shared->message.fixed)
		h2_request_split(shared->message.fixed, shared->message.length, shared->scheme,
				 shared->grpc, &shared->fixed);
	return 0;
}

static int h2_prepare(const struct request *request, const struct link_settings *link,
		      const struct target *target, void **ret_shared, char **ret_error)
{
	struct h2_shared *shared = calloc(1, sizeof(*shared));
	int err = shared ? fill(shared, request, link, target, ret_error) : -ENOMEM;

	if (err)
		h2_release(shared);
	else
		*ret_shared = shared;
	return err;
}

static void free_state(void *state)
{
	struct h2 *h2 = state;

	if (!h2)
		return;
	message_room_close(&h2->room);
	links_clear(&h2->links);
	free(h2->places);
	free(h2->out);
	free(h2);
}

static int open_parts(struct h2 *h2, const struct engine_host *host)
{
	int err;

	h2->place_count = (host->slots + h2->shared->streams - 1) / h2->shared->streams;
	h2->places = calloc(h2->place_count, sizeof(*h2->places));
	h2->out = malloc(H2_OUT_SIZE);
	if (!h2->places || !h2->out ||
	    message_room_open(&h2->room, message_room_max(&h2->shared->message, 0),
			      host->first_client, host->slots))
		return -ENOMEM;
	for (uint32_t i = 0; i < h2->place_count; i++)
		h2->places[i].h2 = h2;
	for (uint32_t i = 0; i < host->slots; i++)
		h2->slots[i].index = i;
	err = links_init(&h2->links, host->loop, &h2->shared->plan, &h2_link_events);
	links_divide(&h2->links, host->first_slot, host->slots, host->all_slots);
	if (err)
		return err;
	uv_timer_init(host->loop, &h2->pace);
	h2->pace.data = h2;
	return 0;
}

static int open_state(const struct engine_host *host, const void *state, void **ret_state)
{
	struct h2 *h2 = calloc(1, sizeof(*h2) + host->slots * sizeof(h2->slots[0]));
	int err;

	if (!h2)
		return -ENOMEM;
	h2->host = host;
	h2->events = &h2_place_events;
	h2->shared = (struct h2_shared *)state; /* not const: its message numbers the requests */
	err = open_parts(h2, host);
	if (err) {
		free_state(h2);
		return err;
	}
	*ret_state = h2;
	return 0;
}

#define H2                                                                                   \
	.check = h2_check, .prepare = h2_prepare, .release = h2_release, .open = open_state, \
	.start = h2_start, .expire = h2_expire, .close = h2_close, .free = free_state

const struct engine engine_h2 = {
	.scheme = "h2",
	.form = "h2://HOST[:PORT][/PATH]",
	.default_port = 443,
	.bits = ENGINE_ADDRESSED | ENGINE_HTTP2 | ENGINE_TLS,
	H2,
};

const struct engine engine_h2c = {
	.scheme = "h2c",
	.form = "h2c://HOST[:PORT][/PATH]",
	.default_port = 80,
	.bits = ENGINE_ADDRESSED | ENGINE_HTTP2,
	H2,
};
