// SPDX-License-Identifier: MIT
/*
 * tcp:// and unix: — any protocol of requests and responses over a stream. Neighbours: connection.c
 * carries the bytes, message.c makes them, framing.c says where a response ends.
 */
#include "engine_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "message.h"
#include "options.h"
#include "sojourn/refuse.h"
#include "target.h"

/* One kind of request, and what becomes of its responses. */
struct stream_kind {
	struct framing framing;
	struct message message;
	const struct expectation *expectation; /* borrowed from the options */
	const struct capture_list *captures;   /* likewise; NULL: nothing is captured */
};

struct stream_shared {
	struct link_plan plan;
	struct stream_kind **kinds; /* the messages' addresses stay */
	uint32_t kind_count;
};

/* One worker's. */
struct stream {
	struct stream_shared *shared;
	struct message_room room;
};

struct stream_connection {
	struct connection base;
	struct stream_kind *kind;
	struct framing_state state;
	struct expectation_search search;
};

static struct capture_store *store_of(const struct connection *base)
{
	return &connection_host(base)->clients[base->slot].store;
}

static void stream_begin(struct connection *base)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	const struct engine_client *clients = connection_host(base)->clients;
	struct stream *stream = connection_user(base);
	struct stream_kind *kind = stream->shared->kinds[clients ? clients[base->slot].kind : 0];
	size_t length;

	connection->kind = kind;
	connection->state = (struct framing_state){0};
	connection->search = (struct expectation_search){0};
	if (kind->captures)
		capture_begin(store_of(base));
	base->request.base = message_next(&kind->message, &stream->room, base->slot, &length);
	base->request.len = length;
}

/* Of a complete response: @rejected by what it says, else by what the user expects. */
static enum engine_verdict judge(struct stream_connection *connection, bool rejected)
{
	const struct stream_kind *kind = connection->kind;
	bool captured = !kind->captures || capture_end(kind->captures, store_of(&connection->base));

	if (rejected)
		return ENGINE_BAD_STATUS;
	if (kind->expectation->body && !connection->search.found)
		return ENGINE_UNEXPECTED;
	return captured ? ENGINE_GOOD : ENGINE_UNEXPECTED;
}

static enum connection_verdict stream_receive(struct connection *base, const char *data,
					      size_t length)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	struct framing_sent sent = {base->request.base, base->request.len};
	const struct stream_kind *kind = connection->kind;
	enum framing_verdict verdict;

	verdict = framing_feed(&kind->framing, &connection->state, sent, data, length);
	if (verdict == FRAMING_MALFORMED)
		return CONNECTION_MALFORMED;
	if (kind->expectation->body)
		expectation_feed(kind->expectation, &connection->search, data, length);
	if (kind->captures)
		capture_body(kind->captures, store_of(base), data, length);
	if (verdict == FRAMING_MORE)
		return CONNECTION_MORE;
	base->keep_alive = true;
	base->result.verdict = judge(connection, verdict == FRAMING_REJECTED);
	return CONNECTION_COMPLETE;
}

/* A server that closes without a word has not answered. */
static enum connection_verdict stream_end(struct connection *base)
{
	struct stream_connection *connection = (struct stream_connection *)base;

	if (!framing_lasts_until_close(&connection->kind->framing) || !base->result.bytes_in)
		return CONNECTION_TRUNCATED;
	base->result.verdict = judge(connection, false);
	return CONNECTION_COMPLETE;
}

static void stream_tell(struct connection *base, enum run_error error, char *text, size_t size)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	const struct stream_kind *kind = connection->kind;
	size_t before = strlen(text);

	if (error == RUN_ERROR_MALFORMED) {
		framing_tell(&kind->framing, &connection->state, base->result.bytes_in, text, size);
		connection_tell_begin(base, text, size);
	}
	if (error != RUN_ERROR_UNEXPECTED)
		return;
	expectation_tell(kind->expectation, &connection->search, 0, text, size);
	if (kind->captures && strlen(text) == before)
		capture_tell(kind->captures, store_of(base), text, size);
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct stream_connection),
	.begin = stream_begin,
	.receive = stream_receive,
	.end = stream_end,
	.tell = stream_tell,
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

static void free_kind(struct stream_kind *kind)
{
	message_clear(&kind->message);
	free(kind);
}

static void stream_release(void *state)
{
	struct stream_shared *shared = state;

	if (!shared)
		return;
	for (uint32_t i = 0; i < shared->kind_count; i++)
		free_kind(shared->kinds[i]);
	free(shared->kinds);
	free(shared);
}

/* The observer counts what the server reads and answers, which may be each or all at once. */
static const char *stream_unsampled_with(const struct options *options)
{
	if (framing_is_echo(&options->framing))
		return "with --framing=echo a server may answer piece by piece, which the observer "
		       "counts as it writes them";
	return options->framing.replies > 1
		       ? "with --replies a request is several, which the observer counts as the "
			 "server reads them"
		       : NULL;
}

static int stream_add(void *state, const struct options *options, const struct target *target,
		      char **ret_error)
{
	struct stream_shared *shared = state;
	struct stream_kind *kind = calloc(1, sizeof(*kind)), **kinds;
	int err = kind ? message_build(options, &kind->message, ret_error) : -ENOMEM;

	(void)target;
	if (err) {
		free(kind);
		return err;
	}
	kinds = reallocarray(shared->kinds, shared->kind_count + 1, sizeof(struct stream_kind *));
	if (!kinds) {
		free_kind(kind);
		return -ENOMEM;
	}
	if (stream_unsampled_with(options))
		shared->plan.sampling = false;
	kind->framing = options->framing;
	kind->expectation = &options->expectation;
	kind->captures = options->captures && options->captures->count ? options->captures : NULL;
	shared->kinds = kinds;
	kinds[shared->kind_count++] = kind;
	return 0;
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
		err = stream_add(shared, options, target, ret_error);
	if (err)
		stream_release(shared);
	else
		*ret_shared = shared;
	return err;
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
	size_t size = 0;

	if (!stream)
		return -ENOMEM;
	stream->shared = shared;
	for (uint32_t i = 0; i < shared->kind_count; i++)
		size = message_room_max(&shared->kinds[i]->message, size);
	if (!message_room_open(&stream->room, size, host))
		connections = connections_new(host, &shared->plan, &protocol, stream);
	if (!connections) {
		stream_free_worker(stream);
		return -ENOMEM;
	}
	*ret_state = connections;
	return 0;
}

#define STREAM                                                                                  \
	.plain = true, .captures = true, .check = stream_check, .prepare = stream_prepare,      \
	.release = stream_release, .add = stream_add, .open = stream_open,                      \
	.start = connections_start, .retire = connections_retire, .expire = connections_expire, \
	.close = connections_close, .free = stream_free

const struct engine engine_tcp = {
	.scheme = "tcp",
	.form = "tcp://HOST:PORT",
	.addressed = true,
	.sampled = true,
	.unsampled_with = stream_unsampled_with,
	STREAM,
};

const struct engine engine_unix = {
	.scheme = "unix",
	.form = "unix:PATH",
	.local = true,
	.unsampled = "the observer sees TCP and UDP, not sockets of the file system",
	STREAM,
};
