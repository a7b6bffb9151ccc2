// SPDX-License-Identifier: MIT
/*
 * tcp:// and unix: — any protocol of requests and responses over a stream. Neighbours: connection.c
 * carries the bytes, message.c makes them, framing.c says where a response ends.
 */
#include "engine_stream.h"

#include <errno.h>
#include <stdlib.h>

#include "connection.h"
#include "message.h"
#include "options.h"
#include "refuse.h"
#include "target.h"

struct stream_shared {
	struct link_plan plan;
	struct framing framing;
	struct message message;
};

/* One worker's. */
struct stream {
	struct stream_shared *shared;
	struct message_room room;
};

struct stream_connection {
	struct connection base;
	struct framing_state state;
};

static void stream_begin(struct connection *base)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	struct stream *stream = connection_user(base);
	size_t length;

	connection->state = (struct framing_state){0};
	base->request.base =
		message_next(&stream->shared->message, &stream->room, base->slot, &length);
	base->request.len = length;
}

static enum connection_verdict stream_receive(struct connection *base, const char *data,
					      size_t length)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	const struct stream *stream = connection_user(base);
	struct framing_sent sent = {base->request.base, base->request.len};
	enum framing_verdict verdict;

	verdict = framing_feed(&stream->shared->framing, &connection->state, sent, data, length);
	if (verdict == FRAMING_MORE)
		return CONNECTION_MORE;
	if (verdict == FRAMING_MALFORMED)
		return CONNECTION_MALFORMED;
	base->keep_alive = true;
	base->result.verdict = verdict == FRAMING_REJECTED ? ENGINE_BAD_STATUS : ENGINE_GOOD;
	return CONNECTION_COMPLETE;
}

/* A server that closes without a word has not answered. */
static enum connection_verdict stream_end(struct connection *base)
{
	const struct stream *stream = connection_user(base);

	return framing_lasts_until_close(&stream->shared->framing) && base->result.bytes_in
		       ? CONNECTION_COMPLETE
		       : CONNECTION_TRUNCATED;
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct stream_connection),
	.begin = stream_begin,
	.receive = stream_receive,
	.end = stream_end,
};

static int stream_check(const struct options *options, const struct target *target,
			char **ret_error)
{
	struct message message = {0};
	int err;

	(void)target;
	if (!options->framing.kind)
		return refuse(ret_error,
			      "it is not known where a response ends: give --framing (fixed:SIZE, "
			      "delimiter:TEXT, length:WIDTH, ber, ldap, resp, echo or close)");
	if (framing_lasts_until_close(&options->framing) && options->framing.replies > 1)
		return refuse(ret_error, "--replies: with --framing=close there is only one");
	if (framing_is_whole_datagram(&options->framing))
		return refuse(ret_error, "--framing: dns marks no end on a stream, where a length "
					 "of 2 bytes comes first; write --framing=length:2");
	err = message_build(options, &message, ret_error); /* its fields are bad usage, too */
	if (!err)
		message_clear(&message);
	return err;
}

static void stream_release(void *state)
{
	struct stream_shared *shared = state;

	if (shared)
		message_clear(&shared->message);
	free(shared);
}

static int stream_prepare(const struct options *options, const struct target *target,
			  void **ret_shared, char **ret_error)
{
	struct stream_shared *shared = calloc(1, sizeof(*shared));
	int err;

	if (!shared)
		return -ENOMEM;
	err = link_plan_fill(options, target, NULL, &shared->plan, ret_error);
	if (!err)
		err = message_build(options, &shared->message, ret_error);
	if (err) {
		stream_release(shared);
		return err;
	}
	shared->framing = options->framing;
	*ret_shared = shared;
	return 0;
}

static void stream_free_worker(struct stream *stream)
{
	if (stream)
		message_room_close(&stream->room);
	free(stream);
}

static void stream_free(void *state)
{
	struct connections *connections = state;

	if (connections)
		stream_free_worker(connections->user);
	connections_free(connections);
}

static int stream_open(const struct engine_host *host, const void *state, void **ret_state)
{
	struct stream_shared *shared = (struct stream_shared *)state; /* it numbers the requests */
	struct stream *stream = calloc(1, sizeof(*stream));
	struct connections *connections = NULL;

	if (!stream)
		return -ENOMEM;
	stream->shared = shared;
	if (!message_room_open(&stream->room, message_room_size(&shared->message), host->slots))
		connections = connections_new(host, &shared->plan, &protocol, stream);
	if (!connections) {
		stream_free_worker(stream);
		return -ENOMEM;
	}
	*ret_state = connections;
	return 0;
}

#define STREAM                                                                      \
	.plain = true, .check = stream_check, .prepare = stream_prepare,            \
	.release = stream_release, .open = stream_open, .start = connections_start, \
	.expire = connections_expire, .close = connections_close, .free = stream_free

const struct engine engine_tcp = {
	.scheme = "tcp", .form = "tcp://HOST:PORT", .addressed = true, STREAM};

const struct engine engine_unix = {.scheme = "unix", .form = "unix:PATH", .local = true, STREAM};
