// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Follows the windows of HTTP/2's responses, and times PINGs. See window.h. */
#include "window.h"

#include "state.h"

static __always_inline struct service_windows *windows_of(const struct http2_conn *h)
{
	__u32 index = service_index(h->service);
	struct service_windows *all = bpf_map_lookup_elem(&windows, &index);

	return all && slot_of(h->service) ? all : NULL;
}

/* The windows of an older connection are not known, nor how many PINGs are without an ACK. */
static __always_inline bool window_is_known(const struct http2_conn *h)
{
	return !(h->flags & HTTP2_OLDER);
}

/* ---- the connection's window ---- */

/* Return how long it was closed so far. */
static __always_inline __u64 window_shut_ns(struct http2_window *w, __u64 now)
{
	__u64 before_ns = PLAIN(&w->shut_ns), closed_ns = PLAIN(&w->closed_ns);

	return closed_ns && closed_ns < now ? before_ns + (now - closed_ns) : before_ns;
}

static __always_inline void window_spent(struct http2_window *w, __u32 bytes, __u64 now)
{
	if (__sync_fetch_and_add(&w->used, bytes) + bytes < WINDOW_START || w->closed_ns)
		return;
	__sync_lock_test_and_set(&w->closed_ns, now);
	if (__sync_fetch_and_add(&w->used, 0) < WINDOW_START)
		__sync_lock_test_and_set(&w->closed_ns, 0);
}

static __always_inline void window_granted(struct http2_window *w, __u32 bytes, __u64 now)
{
	__u64 closed_ns;

	if (__sync_fetch_and_add(&w->used, -(__s64)bytes) - bytes >= WINDOW_START)
		return;
	closed_ns = PLAIN(&w->closed_ns);
	if (!closed_ns)
		return;
	/* In this order: a thread that looks in between takes the window for closed longer before, and a stall for shorter. */
	if (closed_ns < now)
		PLAIN(&w->shut_ns) = w->shut_ns + (now - closed_ns);
	__sync_lock_test_and_set(&w->closed_ns, 0);
}

/* ---- streams' windows ---- */

/* The response may go on at @now. From here on its stream has to wait for the connection's window alone. */
static __always_inline void window_opens(struct http2_conn *h, struct stream_window *w, __u64 now)
{
	w->shut_ns = window_shut_ns(&h->window, now);
	w->opened_ns = now;
}

/* A part of the response that does not end it was written. */
static __always_inline void window_waits(struct http2_conn *h, struct stream_entry *entry,
					 __u64 now)
{
	struct stream_window *w = &entry->window;

	w->shut_ns = window_shut_ns(&h->window, now);
	w->opened_ns = 0;
	w->closed_ns = 0;
	if (h->window.first > w->used)
		return;
	entry->raises = h->window.raises;
	__sync_lock_test_and_set(&w->closed_ns, now);
	if (h->window.first > __sync_fetch_and_add(&w->used, 0))
		w->closed_ns = 0;
}

static __always_inline void stream_granted(struct http2_conn *h, __u32 id, __u32 bytes, __u64 now)
{
	struct stream_entry *entry = stream_entry_of(h, id);
	struct stream_window *w;

	if (!entry)
		return;
	w = &entry->window;
	if (__sync_fetch_and_add(&w->used, -(__s64)bytes) - bytes >= h->window.first)
		return;
	if (w->closed_ns && !w->opened_ns)
		window_opens(h, w, now);
}

/* SETTINGS change the windows of all streams. */
static __always_inline void window_settled(struct http2_conn *h, __u32 first, __u64 now)
{
	struct http2_window *w = &h->window;

	if (first > w->first) {
		w->raised_ns = now;
		w->raised_shut_ns = window_shut_ns(w, now);
		w->raises++;
	}
	w->first = first;
}

/* ---- stalls ---- */

/*
 * Which SETTINGS have opened the window is known if there was but one that could. A window whose opening was not seen
 * opened while its closing was noted.
 */
static __always_inline void window_find_opening(const struct http2_conn *h,
						struct stream_entry *entry)
{
	struct stream_window *w = &entry->window;

	if (!w->closed_ns || w->opened_ns || h->window.raises - entry->raises != 1)
		return;
	w->opened_ns = h->window.raised_ns;
	w->shut_ns = h->window.raised_shut_ns;
}

static __always_inline void stall_add(const struct http2_conn *h, enum window_level level,
				      __u64 stalled_ns)
{
	struct service_windows *all = windows_of(h);

	if (all)
		stage_add_shared(&all->stalls[level], stalled_ns);
}

/* DATA follows: count for how long it could not. */
static __always_inline void window_stalled(struct http2_conn *h, struct stream_entry *entry,
					   __u64 now)
{
	struct stream_window *w = &entry->window;
	__u64 shut_ns;

	window_find_opening(h, entry);
	if (w->closed_ns && w->opened_ns > w->closed_ns)
		stall_add(h, WINDOW_STREAM, w->opened_ns - w->closed_ns);
	shut_ns = window_shut_ns(&h->window, now);
	if (shut_ns > w->shut_ns)
		stall_add(h, WINDOW_CONNECTION, shut_ns - w->shut_ns);
}

__noinline int window_begins(struct http2_conn *h, struct stream_entry *entry, __u64 now)
{
	if (h && entry && window_is_known(h))
		window_waits(h, entry, now);
	return 0;
}

__noinline int window_wrote(struct http2_conn *h, struct stream_entry *entry, __u64 now)
{
	__u32 bytes;

	if (!h || !window_is_known(h))
		return 0;
	bytes = h->out.side.payload;
	if (!bytes)
		return 0;
	if (entry && entry->stream.flags & STREAM_RESPONDING)
		window_stalled(h, entry, now);
	window_spent(&h->window, bytes, now);
	if (!entry)
		return 0;
	__sync_fetch_and_add(&entry->window.used, bytes);
	if (!(h->out.side.flags & HTTP2_END_STREAM))
		window_waits(h, entry, now);
	return 0;
}

/* ---- what the client sends ---- */

static __always_inline void ping_answered(struct http2_conn *h, __u64 now)
{
	struct http2_pings *p = &h->pings;
	__u64 sent_ns = PLAIN(&p->sent_ns);
	struct service_windows *all;

	if (sent_ns && sent_ns < now && PLAIN(&p->timed) == p->acknowledged) {
		all = windows_of(h);
		if (all)
			stage_add_shared(&all->pings, now - sent_ns);
	}
	PLAIN(&p->acknowledged) = p->acknowledged + 1;
}

__noinline int window_read(struct http2_conn *h, __u32 said, __u64 end, __u64 now)
{
	const struct http2_side *s;
	__u32 value, lost;

	if (!h || !window_is_known(h))
		return 0;
	s = &h->in.side;
	if (s->type == HTTP2_PING && said & HTTP2_ENDS && s->flags & HTTP2_ACK)
		ping_answered(h, now);
	if (!window_is_told(s, said))
		return 0;
	if (window_follow(s, &h->window.number, said, end, &value, &lost)) {
		if (s->type == HTTP2_SETTINGS)
			window_settled(h, value, now);
		else if (s->stream)
			stream_granted(h, s->stream, value, now);
		else
			window_granted(&h->window, value, now);
	}
	return lost ? -1 : 0;
}
