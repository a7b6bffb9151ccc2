// SPDX-License-Identifier: MIT
/*
 * The messages of streaming calls of gRPC, at an interval within each call. Each has an intended time, counted from the
 * call's start. So a message that flow control held back does not delay those after it. libuv's timers count
 * milliseconds.
 */
#include "h2.h"

#include "sojourn/clock.h"

/* Continue the place's calls whose message is due, if any. Lower @next_ns to when that of another is. */
static bool resume_due(struct h2_place *place, uint64_t now_ns, uint64_t *next_ns)
{
	struct h2 *h2 = place->h2;
	uint32_t first = (uint32_t)(place - h2->places) * h2->shared->streams;
	bool resumed = false;

	for (uint32_t i = first; i < first + h2->shared->streams && i < h2->host->slots; i++) {
		struct h2_slot *slot = &h2->slots[i];

		if (!slot->session || !slot->due_ns)
			continue;
		if (slot->due_ns > now_ns) {
			*next_ns = slot->due_ns < *next_ns ? slot->due_ns : *next_ns;
			continue;
		}
		slot->due_ns = 0;
		resumed |= !nghttp2_session_resume_data(slot->session->http, slot->stream);
	}
	return resumed;
}

static void on_pace(uv_timer_t *timer);

/* Let the timer go off at @due_ns, unless it does so before. */
static void set_timer(struct h2 *h2, uint64_t due_ns)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t wait_ms = due_ns > now_ns ? (due_ns - now_ns) / NSEC_PER_MSEC + 1 : 1;

	if (uv_is_active((uv_handle_t *)&h2->pace) && uv_timer_get_due_in(&h2->pace) <= wait_ms)
		return;
	uv_timer_start(&h2->pace, on_pace, wait_ms, 0);
}

static void on_pace(uv_timer_t *timer)
{
	uint64_t now_ns = clock_now_ns(), next_ns = UINT64_MAX;
	struct h2 *h2 = timer->data;

	for (uint32_t i = 0; i < h2->place_count; i++)
		if (resume_due(&h2->places[i], now_ns, &next_ns))
			h2_place_flush(&h2->places[i]);
	if (next_ns != UINT64_MAX)
		set_timer(h2, next_ns);
}

bool h2_message_waits(struct h2 *h2, struct h2_slot *slot)
{
	uint64_t interval_ns = h2->shared->messages.interval_ns;

	slot->due_ns = slot->result.start_ns + slot->result.messages_sent * interval_ns;
	if (!interval_ns || h2->closing || slot->due_ns <= clock_now_ns()) {
		slot->due_ns = 0;
		return false;
	}
	set_timer(h2, slot->due_ns);
	return true;
}
