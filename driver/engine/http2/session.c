// SPDX-License-Identifier: MIT
/* One connection of HTTP/2: nghttp2 between its link and its requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "h2.h"
#include "sojourn/clock.h"
#include "transport/speech.h"

#define STREAM_WINDOW	  (16 << 20)
#define CONNECTION_WINDOW (1 << 30)
#define FRAME_MAX	  (16384U + 1024U)

static struct h2_session *of(struct link *link)
{
	return (struct h2_session *)link; /* its first member */
}

static struct h2 *h2_of(const struct h2_session *session)
{
	return session->place->h2;
}

static void session_free(struct h2_session *session)
{
	nghttp2_session_del(session->http);
	free(session->out);
	free(session);
}

void h2_session_retire(struct h2_session *session)
{
	struct h2_place *place = session->place;

	if (place->current != session)
		return;
	place->current = NULL;
	session->next = place->old;
	place->old = session;
}

int h2_session_open(struct h2_place *place, struct h2_session **ret_session)
{
	struct h2_session *session = calloc(1, sizeof(*session));
	int err;

	if (!session)
		return -ENOMEM;
	session->place = place;
	session->link.all = &place->h2->links;
	if (nghttp2_session_client_new(&session->http, place->h2->shared->callbacks, session)) {
		free(session);
		return -ENOMEM;
	}
	err = link_open(&session->link);
	if (err && session->link.state == LINK_CLOSED) {
		session_free(session);
		return err;
	}
	*ret_session = session;
	return err;
}

/* Return whether a request queued now leaves at once. */
bool h2_session_takes(const struct h2_session *session)
{
	return session->link.state == LINK_OPEN && !session->lost && !session->inside &&
	       !session->link.writing &&
	       session->active < nghttp2_session_get_remote_settings(
					 session->http, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

/* Gather frames for one system call; their requests start now. */
static size_t gather(struct h2_session *session)
{
	struct h2 *h2 = h2_of(session);
	size_t filled = 0;

	h2->batch_ns = clock_now_ns();
	session->inside = h2->gathering = true;
	while (filled + FRAME_MAX <= H2_OUT_SIZE) {
		const uint8_t *data;
		ssize_t length = nghttp2_session_mem_send(session->http, &data);

		if (length <= 0) {
			session->lost = session->lost || length < 0;
			break;
		}
		memcpy(h2->out + filled, data, (size_t)length);
		filled += (size_t)length;
	}
	session->inside = h2->gathering = false;
	return filled;
}

/* The link still sends from this buffer: leave it, and gather in a new one. */
static int keep_out(struct h2_session *session)
{
	struct h2 *h2 = h2_of(session);
	char *fresh = malloc(H2_OUT_SIZE);

	session->out = h2->out;
	h2->out = fresh;
	return fresh ? 0 : -ENOMEM;
}

static int send_gathered(struct h2_session *session)
{
	int err = 0;

	while (!err && !session->lost && session->link.state == LINK_OPEN &&
	       !session->link.writing) {
		size_t length = gather(session);

		if (!length)
			break;
		err = link_send(&session->link, h2_of(session)->out, length);
		if (!err && session->link.writing)
			err = keep_out(session);
	}
	return err;
}

void h2_session_abandon(struct h2_session *session)
{
	session->lost = true;
	link_close(&session->link);
}

static void fail(struct h2_session *session, enum run_error error, const char *detail)
{
	struct h2 *h2 = h2_of(session);
	struct h2_place *place = session->place;
	struct h2_slot *first = &h2->slots[(size_t)(place - h2->places) * h2->shared->streams];

	h2_session_retire(session);
	session->lost = true;
	for (uint32_t i = 0; i < h2->shared->streams && session->active; i++) {
		struct h2_slot *slot = &first[i];

		if (slot->session != session)
			continue;
		nghttp2_session_set_stream_user_data(session->http, slot->stream, NULL);
		slot->session = NULL;
		session->active--;
		slot->result.detail = detail;
		slot->result.code = session->link.code;
		h2->events->ended(h2, slot, error);
	}
	h2_session_abandon(session);
	h2->events->ready(place);
}

static void flush_one(struct h2_session *session)
{
	struct h2 *h2 = h2_of(session);
	int err;

	if (h2->gathering) {
		h2->again = true;
		return;
	}
	if (session->inside || session->link.state != LINK_OPEN)
		return;
	err = send_gathered(session);
	if (err || session->lost) {
		fail(session,
		     err ? link_transfer_failure(&session->link, err) : RUN_ERROR_MALFORMED, NULL);
		return;
	}
	if (session->active || session->place->current == session)
		return;
	/* Send GOAWAY if there is room, so that the server knows. */
	if (session->link.state == LINK_OPEN && !session->link.writing &&
	    !session->link.all->plan->policy.reset) {
		nghttp2_session_terminate_session(session->http, NGHTTP2_NO_ERROR);
		send_gathered(session);
	}
	h2_session_abandon(session);
}

static void flush_place(struct h2_place *place)
{
	if (place->current)
		flush_one(place->current);
	for (struct h2_session *session = place->old; session; session = session->next)
		flush_one(session);
}

/* Flush connections that changed while frames were gathered for another. */
static void catch_up(struct h2 *h2)
{
	h2->again = false;
	for (uint32_t i = 0; i < h2->place_count; i++) {
		struct h2_place *place = &h2->places[i];

		h2->events->ready(place);
		flush_place(place);
	}
}

void h2_session_flush(struct h2_session *session)
{
	struct h2 *h2 = h2_of(session);

	flush_one(session);
	if (h2->again && !h2->gathering)
		catch_up(h2);
}

void h2_place_flush(struct h2_place *place)
{
	struct h2 *h2 = place->h2;

	flush_place(place);
	if (h2->again && !h2->gathering)
		catch_up(h2);
}

static int greet(struct h2_session *session)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
	};

	if (nghttp2_submit_settings(session->http, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) ||
	    nghttp2_session_set_local_window_size(session->http, NGHTTP2_FLAG_NONE, 0,
						  CONNECTION_WINDOW))
		return -ENOMEM;
	return 0;
}

/* Report the connection for the slot that has waited longest. */
static void on_opened(struct link *link)
{
	struct h2_session *session = of(link);
	struct h2_place *place = session->place;
	const struct engine_host *host = place->h2->host;
	uint32_t slot =
		place->waiting ? place->waiting->index
			       : (uint32_t)(place - place->h2->places) * place->h2->shared->streams;

	session->opened_ns = link->begin_ns + link->connect_ns + link->tls_ns;
	session->received_ns = session->opened_ns;
	place->pause_ms = 0;
	place->not_before_ns = 0;
	host->connected(host->user, slot, link->connect_ns);
	if (link->tls)
		host->secured(host->user, link->tls_ns);
	session->has_flow = link_flow(link, &session->flow, &session->flow_hash);
	if (greet(session))
		session->lost = true;
	place->h2->events->ready(place);
	h2_session_flush(session);
}

static void on_failed(struct link *link, enum run_error error)
{
	struct h2_session *session = of(link);

	h2_of(session)->events->failed(session, error);
}

/* Return what the server speaks instead of HTTP/2, by its first bytes; NULL: not known. */
static const char *other_speech(const char *data, size_t length)
{
	static const char *const words[] = {
		[SPEECH_HTTP1] = "the server answered HTTP/1.1: use http://",
		[SPEECH_TEXT] = "the server does not speak HTTP/2: use http://",
		[SPEECH_HTTP2] = NULL,
		[SPEECH_TLS] = "the server spoke TLS: use h2:// or https://",
	};

	return words[speech_of(data, length)];
}

static void on_received(struct link *link, const char *data, size_t length)
{
	struct h2_session *session = of(link);
	const char *other = NULL;
	ssize_t taken;

	if (session->lost)
		return;
	if (session->received_ns == session->opened_ns) /* the first bytes */
		other = other_speech(data, length);
	if (other) {
		fail(session, RUN_ERROR_MALFORMED, other);
		return;
	}
	session->received_ns = clock_now_ns();
	session->inside = true;
	taken = nghttp2_session_mem_recv(session->http, (const uint8_t *)data, length);
	session->inside = false;
	if (taken < 0) {
		fail(session, RUN_ERROR_MALFORMED, nghttp2_strerror((int)taken));
		return;
	}
	h2_of(session)->events->ready(session->place);
	h2_session_flush(session);
	/* nghttp2 has reported an error to the server and reads no further. */
	if (session->link.state == LINK_OPEN && session->active &&
	    !nghttp2_session_want_read(session->http))
		fail(session, RUN_ERROR_MALFORMED, "the server broke the protocol");
}

static void on_drained(struct link *link)
{
	struct h2_session *session = of(link);

	free(session->out);
	session->out = NULL;
	h2_of(session)->events->ready(session->place);
	h2_session_flush(session);
}

static void on_ended(struct link *link, enum run_error error)
{
	fail(of(link), error == RUN_NO_ERROR ? RUN_ERROR_CLOSED_EARLY : error, link->detail);
}

static void on_closed(struct link *link)
{
	struct h2_session *session = of(link), **at = &session->place->old;

	h2_session_retire(session);
	while (*at != session)
		at = &(*at)->next;
	*at = session->next;
	session_free(session);
}

const struct link_events h2_link_events = {
	.opened = on_opened,
	.failed = on_failed,
	.received = on_received,
	.drained = on_drained,
	.ended = on_ended,
	.closed = on_closed,
};
