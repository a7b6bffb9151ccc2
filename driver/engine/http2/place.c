// SPDX-License-Identifier: MIT
/*
 * Which slot waits for which connection. A request is queued on a connection only when it can leave
 * at once: its clock starts then. Until then its slot waits here.
 */
#include "h2.h"

#include "sojourn/clock.h"

#define PAUSE_MIN_MS 1U
#define PAUSE_MAX_MS 100U

static struct h2_place *place_of(struct h2 *h2, const struct h2_slot *slot)
{
	return &h2->places[slot->index / h2->shared->streams];
}

static void wait_for_turn(struct h2_place *place, struct h2_slot *slot)
{
	slot->state = H2_WAITING;
	slot->begin_ns = clock_now_ns();
	slot->next = NULL;
	if (place->waiting)
		place->last->next = slot;
	else
		place->waiting = slot;
	place->last = slot;
}

static struct h2_slot *take_waiting(struct h2_place *place)
{
	struct h2_slot *slot = place->waiting;

	place->waiting = slot->next;
	return slot;
}

static void pump(struct h2_place *place);

/* Report the result of a slot without session, and start its next request if the worker says so. */
static void finish(struct h2 *h2, struct h2_slot *slot, enum run_error error)
{
	slot->state = H2_IDLE;
	slot->result.end_ns = clock_now_ns();
	slot->result.error = error;
	slot->result.tell = h2_stream_tell;
	if (h2->host->done(h2->host, slot->index, &slot->result) != ENGINE_AGAIN)
		return;
	wait_for_turn(place_of(h2, slot), slot);
	pump(place_of(h2, slot));
}

/* Return all waiting slots to the worker as not yet started. */
static void postpone(struct h2_place *place)
{
	struct h2 *h2 = place->h2;
	struct h2_slot *slot = place->waiting, *next;

	place->waiting = NULL;
	for (; slot; slot = next) {
		next = slot->next;
		slot->state = H2_IDLE;
		slot->result = (struct engine_result){.not_yet = true};
		h2->host->done(h2->host, slot->index, &slot->result);
	}
}

/* Fail the slot that waited first; the others have not started. */
static void fail_to_connect(struct h2_place *place, enum run_error error, const char *detail,
			    int code)
{
	uint32_t doubled = place->pause_ms ? place->pause_ms * 2 : PAUSE_MIN_MS;
	struct h2 *h2 = place->h2;
	struct h2_slot *slot;

	if (h2->shared->streams > 1) {
		place->pause_ms = doubled < PAUSE_MAX_MS ? doubled : PAUSE_MAX_MS;
		place->not_before_ns = clock_now_ns() + place->pause_ms * NSEC_PER_MSEC;
	}
	if (!place->waiting)
		return;
	slot = take_waiting(place);
	postpone(place);
	slot->result =
		(struct engine_result){.connect_failed = true, .detail = detail, .code = code};
	finish(h2, slot, error);
}

static void connect_failed(struct h2_session *session, enum run_error error)
{
	const char *detail = session->link.detail;
	int code = session->link.code;
	struct h2_place *place = session->place;

	h2_session_retire(session);
	h2_session_abandon(session);
	fail_to_connect(place, error, detail, code);
}

static void connect_place(struct h2_place *place)
{
	struct h2 *h2 = place->h2;
	struct h2_session *session = NULL;
	int err;

	if (h2->closing)
		return;
	if (clock_now_ns() < place->not_before_ns || !h2->host->may_connect(h2->host->user)) {
		postpone(place);
		return;
	}
	err = h2_session_open(place, &session);
	place->current = session;
	if (err && session)
		connect_failed(session, link_connect_failure(&session->link, err));
	else if (err)
		fail_to_connect(place, link_connect_error(err), NULL, err);
}

static bool is_over(const struct h2_session *session)
{
	const struct link_plan *plan = session->link.all->plan;

	return session->link.state == LINK_OPEN &&
	       policy_is_over(&plan->policy, session->served, session->opened_ns);
}

/* Put requests on the connection while it takes any. It has identifiers for 2^30 streams. */
static void submit(struct h2_place *place)
{
	struct h2_session *session = place->current;

	while (place->waiting && place->current == session && !is_over(session) &&
	       h2_session_takes(session)) {
		struct h2_slot *slot = place->waiting, *next = slot->next;

		if (h2_stream_submit(session, slot)) {
			h2_session_retire(session);
			return;
		}
		place->waiting = next;
	}
}

/* Send the waiting requests, or open a connection for them. */
static void pump(struct h2_place *place)
{
	struct h2_session *session = place->current;

	if (session && is_over(session)) {
		h2_session_retire(session);
		/* Flush an idle connection that is replaced: nothing else would close it. */
		if (!session->inside)
			h2_session_flush(session);
		session = place->current;
	}
	if (!place->waiting)
		return;
	if (!session) {
		connect_place(place);
		return;
	}
	submit(place);
	h2_session_flush(session);
	if (place->waiting && (!place->current || is_over(place->current)))
		pump(place);
}

const struct h2_events h2_place_events = {
	.ready = pump,
	.failed = connect_failed,
	.ended = finish,
};

void h2_start(void *state, uint32_t index)
{
	struct h2 *h2 = state;
	struct h2_slot *slot = &h2->slots[index];

	wait_for_turn(place_of(h2, slot), slot);
	pump(place_of(h2, slot));
}

static void expire_slot(struct h2 *h2, struct h2_slot *slot, uint64_t over_ns)
{
	struct h2_session *session = slot->session;

	if (slot->state != H2_BUSY || over_ns < slot->begin_ns + h2->shared->plan.timeout_ns)
		return;
	/* A silent server may be gone: the next request takes a new connection. */
	if (session->received_ns <= slot->begin_ns)
		h2_session_retire(session);
	h2_stream_cancel(slot);
	finish(h2, slot, RUN_ERROR_TIMEOUT);
	if (session->place->current != session)
		h2_session_flush(session);
}

/* Fail slots that waited too long: the server allows too few streams, or none. */
static void expire_waiting(struct h2_place *place, uint64_t over_ns)
{
	struct h2 *h2 = place->h2;

	while (place->waiting &&
	       over_ns >= place->waiting->begin_ns + h2->shared->plan.timeout_ns) {
		struct h2_slot *slot = take_waiting(place);

		slot->result =
			(struct engine_result){.detail = "no stream was free for the request"};
		finish(h2, slot, RUN_ERROR_TIMEOUT);
	}
}

static void expire_place(struct h2_place *place, uint64_t over_ns)
{
	struct h2_session *session = place->current;

	if (!session)
		return;
	if (session->link.state == LINK_OPEN) {
		expire_waiting(place, over_ns);
		pump(place);
		return;
	}
	if (over_ns >= session->link.begin_ns + place->h2->shared->plan.timeout_ns)
		connect_failed(session, session->link.state == LINK_SECURING
						? RUN_ERROR_TLS_TIMEOUT
						: RUN_ERROR_CONNECT_TIMEOUT);
}

void h2_expire(void *state, uint64_t over_ns)
{
	struct h2 *h2 = state;

	for (uint32_t i = 0; i < h2->place_count; i++)
		expire_place(&h2->places[i], over_ns);
	for (uint32_t i = 0; i < h2->host->slots; i++)
		expire_slot(h2, &h2->slots[i], over_ns);
}

void h2_close(void *state)
{
	struct h2 *h2 = state;

	h2->closing = true;
	uv_close((uv_handle_t *)&h2->pace, NULL);
	for (uint32_t i = 0; i < h2->place_count; i++) {
		struct h2_place *place = &h2->places[i];

		place->waiting = NULL;
		if (place->current)
			h2_session_retire(place->current);
		for (struct h2_session *session = place->old; session; session = session->next)
			h2_session_abandon(session);
	}
}
