// SPDX-License-Identifier: MIT
/*
 * tcp:// and unix: — any protocol of requests and responses over a stream. Neighbours:
 * engine/connection.c carries the bytes, payload/message.c makes requests,
 * payload/framing/framing.c finds the end of a response.
 */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/connection.h"
#include "payload/message.h"
#include "payload/request.h"
#include "sojourn/refuse.h"
#include "engine/target.h"

struct stream_connection {
	struct connection base;
	struct framing_state state;
	struct expectation_search search;
};

static void stream_begin(struct connection *base)
{
	struct stream_connection *connection = (struct stream_connection *)base;

	connection_begin(base);
	connection->state = (struct framing_state){0};
	connection->search = (struct expectation_search){0};
	if (base->kind->captures)
		capture_begin(connection_store(base));
}

/* Judge a complete response; @rejected: the response itself says failure. */
static enum verdict judge(struct stream_connection *connection, bool rejected)
{
	const struct connection_kind *kind = connection->base.kind;
	bool captured =
		!kind->captures || capture_end(kind->captures, connection_store(&connection->base));

	if (rejected)
		return VERDICT_BAD_STATUS;
	if (kind->request->expectation.body && !connection->search.found)
		return VERDICT_UNEXPECTED;
	return captured ? VERDICT_GOOD : VERDICT_UNEXPECTED;
}

static enum connection_verdict stream_receive(struct connection *base, const char *data,
					      size_t length)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	struct framing_sent sent = {base->request.base, base->request.len};
	const struct connection_kind *kind = connection->base.kind;
	enum framing_verdict verdict;

	verdict = framing_feed(&kind->request->framing, &connection->state, sent, data, length);
	if (verdict == FRAMING_MALFORMED)
		return CONNECTION_MALFORMED;
	if (kind->request->expectation.body)
		expectation_feed(&kind->request->expectation, &connection->search, data, length);
	if (kind->captures)
		capture_body(kind->captures, connection_store(base), data, length);
	if (verdict == FRAMING_MORE)
		return CONNECTION_MORE;
	base->keep_alive = true;
	base->result.verdict = judge(connection, verdict == FRAMING_REJECTED);
	return CONNECTION_COMPLETE;
}

/* A server that closes without a byte has not answered. */
static enum connection_verdict stream_end(struct connection *base)
{
	struct stream_connection *connection = (struct stream_connection *)base;

	if (!framing_lasts_until_close(&connection->base.kind->request->framing) ||
	    !base->result.bytes_in)
		return CONNECTION_TRUNCATED;
	base->result.verdict = judge(connection, false);
	return CONNECTION_COMPLETE;
}

static void stream_tell(struct connection *base, enum run_error error, char *text, size_t size)
{
	struct stream_connection *connection = (struct stream_connection *)base;
	const struct connection_kind *kind = connection->base.kind;
	size_t before = strlen(text);

	if (error == RUN_ERROR_MALFORMED) {
		framing_tell(&kind->request->framing, &connection->state, base->result.bytes_in,
			     text, size);
		connection_tell_begin(base, text, size);
	}
	if (error != RUN_ERROR_UNEXPECTED)
		return;
	expectation_tell(&kind->request->expectation, &connection->search, 0, text, size);
	if (kind->captures && strlen(text) == before)
		capture_tell(kind->captures, connection_store(base), text, size);
}

static const struct connection_protocol protocol = {
	.size = sizeof(struct stream_connection),
	.begin = stream_begin,
	.receive = stream_receive,
	.end = stream_end,
	.tell = stream_tell,
};

static int stream_check(const struct request *request, const struct link_settings *link,
			const struct target *target, char **ret_error)
{
	struct message message = {0};
	int err;

	(void)link;
	(void)target;
	if (!request->framing.kind)
		return refuse(ret_error,
			      "it is not known where a response ends: give --framing (fixed:SIZE, "
			      "delimiter:TEXT, length:WIDTH, ber, ldap, resp, echo or close)");
	if (framing_lasts_until_close(&request->framing) && request->framing.replies > 1)
		return refuse(ret_error, "--replies: with --framing=close there is only one");
	if (framing_is_whole_datagram(&request->framing))
		return refuse(ret_error, "--framing: dns marks no end on a stream, where a length "
					 "of 2 bytes comes first; write --framing=length:2");
	err = message_build(request, &message, ret_error); /* wrong fields are bad usage, too */
	if (!err)
		message_clear(&message);
	return err;
}

/* The observer counts the server's reads and writes, whatever the driver takes for one request. */
static const char *stream_unsampled_with(const struct request *request)
{
	if (framing_is_echo(&request->framing))
		return "with --framing=echo a server may answer piece by piece, which the observer "
		       "counts as it writes them";
	return request->framing.replies > 1
		       ? "with --replies a request is several, which the observer counts as the "
			 "server reads them"
		       : NULL;
}

static int stream_add(void *state, const struct request *request, const struct target *target,
		      char **ret_error)
{
	struct connections_shared *shared = state;
	struct connection_kind *kind = connections_add(shared, request);

	(void)target;
	if (!kind)
		return -ENOMEM;
	if (stream_unsampled_with(request))
		shared->plan.sampling = false;
	return message_build(request, &kind->message, ret_error);
}

static int stream_prepare(const struct request *request, const struct link_settings *link,
			  const struct target *target, void **ret_shared, char **ret_error)
{
	return connections_prepare(request, link, target, NULL, stream_add, ret_shared, ret_error);
}

static int stream_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	return connections_open(host, shared, &protocol, ret_state);
}

#define STREAM                                                                                  \
	.check = stream_check, .prepare = stream_prepare, .release = connections_release,       \
	.add = stream_add, .open = stream_open, .start = connections_start,                     \
	.retire = connections_retire, .expire = connections_expire, .close = connections_close, \
	.free = connections_free

const struct engine engine_tcp = {
	.scheme = "tcp",
	.form = "tcp://HOST:PORT",
	.bits = ENGINE_ADDRESSED | ENGINE_PLAIN | ENGINE_CAPTURES,
	.unsampled_with = stream_unsampled_with,
	STREAM,
};

const struct engine engine_unix = {
	.scheme = "unix",
	.form = "unix:PATH",
	.bits = ENGINE_LOCAL | ENGINE_PLAIN | ENGINE_CAPTURES,
	.unsampled = "the observer sees TCP and UDP, not sockets of the file system",
	STREAM,
};
