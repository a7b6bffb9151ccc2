// SPDX-License-Identifier: MIT
/* One request and its response as frames. The slot is the nghttp2 stream's user data. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "payload/detail.h"
#include "h2.h"
#include "sojourn/clock.h"

#define FRAME_HEAD 9U

static struct h2_slot *slot_of(nghttp2_session *http, int32_t stream)
{
	return stream ? nghttp2_session_get_stream_user_data(http, stream) : NULL;
}

static const struct h2_shared *shared_of(const struct h2_session *session)
{
	return session->place->h2->shared;
}

static bool all_sent(const struct h2_shared *shared, const struct h2_slot *slot)
{
	return slot->result.messages_sent == shared->messages.count;
}

/* Copy at most @size bytes from @at on. Return how many. */
static size_t copy_part(const void *from, size_t length, size_t at, char *buffer, size_t size)
{
	size_t part = length - at < size ? length - at : size;

	if (part)
		memcpy(buffer, (const char *)from + at, part);
	return part;
}

/* Copy as much of prefix and body as fits, from where the last call ended: perhaps only 1 byte. */
static size_t copy_body(const struct h2_slot *slot, size_t prefix_size, char *buffer, size_t size)
{
	unsigned char prefix[GRPC_PREFIX_SIZE];
	size_t at = slot->sent, copied = 0;

	if (at < prefix_size) {
		grpc_prefix((uint32_t)slot->body_length, prefix);
		copied = copy_part(prefix, prefix_size, at, buffer, size);
		at += copied;
	}
	if (at >= prefix_size)
		copied += copy_part(slot->body, slot->body_length, at - prefix_size,
				    buffer + copied, size - copied);
	return copied;
}

static ssize_t on_body(nghttp2_session *http, int32_t stream, uint8_t *buffer, size_t size,
		       uint32_t *flags, nghttp2_data_source *source, void *user)
{
	const struct h2_shared *shared = shared_of(user);
	size_t prefix_size = shared->grpc ? GRPC_PREFIX_SIZE : 0, copied;
	struct h2_slot *slot = slot_of(http, stream);

	(void)source;
	if (!slot)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* request given up */
	if (slot->sent == slot->body_length + prefix_size) {
		if (h2_message_waits(((struct h2_session *)user)->place->h2, slot))
			return NGHTTP2_ERR_DEFERRED;
		slot->sent = 0;
	}
	copied = copy_body(slot, prefix_size, (char *)buffer, size);
	slot->sent += copied;
	if (slot->sent < slot->body_length + prefix_size)
		return (ssize_t)copied;
	slot->result.messages_sent += shared->grpc;
	if (!shared->grpc || all_sent(shared, slot))
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)copied;
}

/* Return the request to send: a constant one is split only once. */
static const struct h2_request *prepare(struct h2 *h2, struct h2_slot *slot,
					struct h2_request *buffer)
{
	struct h2_shared *shared = h2->shared;
	size_t length;
	char *bytes;

	if (shared->message.fixed) {
		message_next(&shared->message, &h2->room, slot->index, NULL, &length);
		return &shared->fixed;
	}
	bytes = message_next(&shared->message, &h2->room, slot->index, NULL, &length);
	h2_request_split(bytes, length, shared->scheme, shared->grpc, buffer);
	return buffer;
}

int h2_stream_submit(struct h2_session *session, struct h2_slot *slot)
{
	struct h2 *h2 = session->place->h2;
	const nghttp2_data_provider body = {.read_callback = on_body};
	struct h2_request own;
	const struct h2_request *request = prepare(h2, slot, &own);
	bool with_body = request->body || h2->shared->grpc;

	slot->result = (struct engine_result){0};
	slot->search = (struct expectation_search){0};
	grpc_response_begin(&slot->grpc);
	slot->sent = 0;
	slot->due_ns = 0;
	slot->complete = slot->refused = slot->reset = false;
	slot->body = request->body;
	slot->body_length = request->body_length;
	slot->stream =
		nghttp2_submit_request(session->http, NULL, request->headers, request->header_count,
				       with_body ? &body : NULL, slot);
	if (slot->stream < 0)
		return -EPROTO; /* no stream identifier left, or no memory */
	slot->state = H2_BUSY;
	slot->session = session;
	slot->begin_ns = clock_now_ns();
	session->served++;
	/* The observer derives the index from the stream's identifier: 1 is the first. */
	slot->result.index = (uint32_t)slot->stream >> 1;
	slot->result.flow = session->has_flow ? &session->flow : NULL;
	slot->result.flow_hash = session->flow_hash;
	session->active++;
	return 0;
}

static void leave(struct h2_slot *slot)
{
	slot->session->active--;
	slot->session = NULL;
}

void h2_stream_cancel(struct h2_slot *slot)
{
	nghttp2_session *http = slot->session->http;

	nghttp2_session_set_stream_user_data(http, slot->stream, NULL);
	nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, slot->stream, NGHTTP2_CANCEL);
	leave(slot);
}

static int on_frame_send(nghttp2_session *http, const nghttp2_frame *frame, void *user)
{
	struct h2_session *session = user;
	struct h2_slot *slot = slot_of(http, frame->hd.stream_id);

	if (!slot)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS) /* leaves with the batch */
		slot->result.start_ns = session->place->h2->batch_ns;
	slot->result.bytes_out += FRAME_HEAD + frame->hd.length;
	return 0;
}

static int on_begin_frame(nghttp2_session *http, const nghttp2_frame_hd *head, void *user)
{
	struct h2_slot *slot = slot_of(http, head->stream_id);

	(void)user;
	if (!slot)
		return 0;
	if (!slot->result.first_ns && (head->type == NGHTTP2_HEADERS || head->type == NGHTTP2_DATA))
		slot->result.first_ns = clock_now_ns();
	slot->result.bytes_in += FRAME_HEAD + head->length;
	return 0;
}

static bool name_is(const char *wanted, const uint8_t *name, size_t length)
{
	return length == strlen(wanted) && !memcmp(name, wanted, length);
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
		     void *user)
{
	struct h2_slot *slot = slot_of(http, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!slot)
		return 0;
	if (name_is(":status", name, name_length))
		slot->result.status = value_length != 3
					      ? 0
					      : (uint16_t)((value[0] - '0') * 100 +
							   (value[1] - '0') * 10 + value[2] - '0');
	else if (name_is("grpc-status", name, name_length))
		grpc_response_status(&slot->grpc, (const char *)value, value_length);
	return 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t length, void *user)
{
	const struct h2_shared *shared = shared_of(user);
	struct h2_slot *slot = slot_of(http, stream);

	(void)flags;
	if (!slot)
		return 0;
	expectation_feed(shared->expectation, &slot->search, (const char *)data, length);
	if (shared->grpc)
		grpc_response_feed(&slot->grpc, (const char *)data, length);
	slot->result.messages_received = slot->grpc.messages;
	return 0;
}

static int on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *user)
{
	struct h2_slot *slot = slot_of(http, frame->hd.stream_id);
	struct h2_session *session = user;

	if (frame->hd.type == NGHTTP2_SETTINGS)
		session->settled = true;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		h2_session_retire(session);
	if (slot && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		slot->complete = true;
		/* The server has ended the call early: send no more messages (RFC 9113, 8.1). */
		if (shared_of(session)->grpc && !all_sent(shared_of(session), slot))
			nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, slot->stream,
						  NGHTTP2_NO_ERROR);
	}
	if (slot && frame->hd.type == NGHTTP2_RST_STREAM) {
		slot->reset = true;
		slot->refused = frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM;
	}
	return 0;
}

static enum run_error judge(const struct h2_shared *shared, struct h2_slot *slot)
{
	struct engine_result *result = &slot->result;

	if (shared->grpc && result->status == 200) {
		result->grpc = slot->grpc.status == GRPC_NO_STATUS ? 0 : slot->grpc.status + 1;
		return grpc_judge(shared->expected, &slot->grpc, &result->verdict);
	}
	result->verdict = expectation_judge(shared->expectation, &slot->search, result->status);
	return RUN_NO_ERROR;
}

static void tell_of(const struct h2 *h2, const struct h2_slot *slot, char *text, size_t size)
{
	const struct engine_result *result = &slot->result;
	enum run_error error = engine_failure(result);

	if ((error == RUN_ERROR_STATUS || error == RUN_ERROR_UNEXPECTED) && result->grpc)
		detail_add(text, size, "grpc-status %s with %" PRIu32 " messages",
			   run_grpc_status_names[result->grpc - 1], result->messages_received);
	else if (error == RUN_ERROR_STATUS || error == RUN_ERROR_UNEXPECTED)
		expectation_tell(h2->shared->expectation, &slot->search, result->status, text,
				 size);
	else if (error == RUN_ERROR_TIMEOUT && result->start_ns)
		detail_add_received(text, size, result->bytes_in);
}

void h2_stream_tell(const struct engine_result *result, char *text, size_t size)
{
	const struct h2_slot *slot =
		(const struct h2_slot *)((const char *)result - offsetof(struct h2_slot, result));
	const struct h2 *h2 = (const struct h2 *)((const char *)(slot - slot->index) -
						  offsetof(struct h2, slots));

	engine_tell_step(h2->host, slot->index, text, size);
	engine_tell_result(result, text, size);
	if (!result->detail && !result->code)
		tell_of(h2, slot, text, size);
}

/*
 * Return how the request ended. nghttp2 closes streams above GOAWAY's last one as REFUSED_STREAM,
 * and resets those that break the protocol.
 */
static enum run_error outcome(const struct h2_shared *shared, struct h2_slot *slot, uint32_t code)
{
	if (slot->complete && (!code || slot->reset))
		return judge(shared, slot);
	if (slot->refused || (!slot->reset && code == NGHTTP2_REFUSED_STREAM))
		return RUN_ERROR_UNPROCESSED;
	slot->result.detail = nghttp2_http2_strerror(code);
	return slot->reset ? RUN_ERROR_STREAM_RESET : RUN_ERROR_MALFORMED;
}

static int on_stream_close(nghttp2_session *http, int32_t stream, uint32_t code, void *user)
{
	struct h2 *h2 = ((struct h2_session *)user)->place->h2;
	struct h2_slot *slot = slot_of(http, stream);
	enum run_error error;

	if (!slot)
		return 0;
	error = outcome(h2->shared, slot, code);
	if (slot->session->settled)
		slot->result.streams = nghttp2_session_get_remote_settings(
			http, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	leave(slot);
	h2->events->ended(h2, slot, error);
	return 0;
}

int h2_callbacks_new(nghttp2_session_callbacks **ret_callbacks)
{
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	*ret_callbacks = callbacks;
	return 0;
}
