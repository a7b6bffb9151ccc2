// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The end of connections whose streams are followed (streams.h): streams that are open then will not be answered.
 * This program is separate so that it does not run without --http, and kernels without bpf_loop() load the others.
 */
#include "streams.h"

__noinline int stream_waited(__u32 service, __u64 waited_ns)
{
	span_add(service, SPAN_ABANDONED, waited_ns);
	return 0;
}

__noinline __u32 way_frame(struct http2_way *way, __u32 room)
{
	__u32 said, used;

	if (!way)
		return HTTP2_WRONG;
	said = http2_step(&way->side, way->bytes.at, room, &used);
	way_pass(way, used);
	return said;
}

/* A binary search of 2^7. */
__noinline __u64 arrival_among(struct http2_arrivals *a, __u32 seq)
{
	__u32 low, high, end, middle;
	__u64 range, ns;

	if (!a)
		return 0;
	end = high = PLAIN(&a->next);
	low = high > HTTP2_ARRIVALS ? high - HTTP2_ARRIVALS : 0;

	for (int i = 0; i < 8; i++) {
		middle = low + (high - low) / 2;
		range = PLAIN(&a->range[middle & (HTTP2_ARRIVALS - 1)]);
		if (low < high && seq_after(range >> 32, seq))
			high = middle;
		else if (low < high)
			low = middle + 1;
	}
	if (low == end)
		return 0;
	range = PLAIN(&a->range[low & (HTTP2_ARRIVALS - 1)]);
	atomic_order(&a->pad);
	ns = PLAIN(&a->ns[low & (HTTP2_ARRIVALS - 1)]);
	atomic_order(&a->pad);
	return arrival_has(range, seq) && range == PLAIN(&a->range[low & (HTTP2_ARRIVALS - 1)]) ? ns
												: 0;
}

__noinline int stream_answered(struct service_slot *slot, struct stream *st, __u64 now)
{
	if (!slot || !st)
		return 0;
	if (st->start_ns && st->last_read_ns > now) {
		SLOT_COUNT(slot, COUNTER_INCONSISTENT, 1);
		st->start_ns = 0;
		st->accept_delay_ns = 0;
	}
	SLOT_COUNT(slot, COUNTER_EXCHANGES, 1);
	st->last_write_ns = now;
	note_messages(slot, st->start_ns ? st->start_ns : st->first_read_ns, now);
	if (!st->start_ns) {
		SLOT_COUNT(slot, COUNTER_UNTIMED, 1);
	} else {
		exchange_stage(slot, STAGE_SOCKET_QUEUE, st->start_ns, st->first_read_ns);
		if (st->last_read_ns != st->first_read_ns)
			exchange_stage(slot, STAGE_RECEIVE, st->first_read_ns, st->last_read_ns);
		exchange_stage(slot, STAGE_SERVICE, st->last_read_ns, REREAD(&st->last_write_ns));
	}
	if (st->accept_delay_ns) {
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAYED, 1);
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAY_NS, st->accept_delay_ns);
	}
	if (st->flags & STREAM_SAMPLED)
		st->pid = current_pid();
	st->first_write_ns = REREAD(&st->last_write_ns);
	st->flags |= STREAM_RESPONDING;
	return 0;
}

__noinline int stream_insert(struct http2_conn *h, __u32 id)
{
	struct stream_entry entry;
	__u64 key;

	if (!h)
		return -1;
	key = stream_key(h, id);
	entry = h->opening;
	return bpf_map_update_elem(&streams, &key, &entry, BPF_ANY) ? -1 : 0;
}

static __always_inline struct service_windows *windows_of(const struct http2_conn *h)
{
	__u32 index = service_index(h->service);

	return slot_of(h->service) ? bpf_map_lookup_elem(&windows, &index) : NULL;
}

__noinline int streams_opened(struct http2_conn *h)
{
	struct service_windows *all;
	__u32 open = h ? __sync_fetch_and_add(&h->open, 1) + 1 : 0;

	if (!h || open <= h->open_most)
		return 0;
	h->open_most = open;
	all = windows_of(h);
	if (all)
		atomic_raise(&all->open_most, open);
	return 0;
}

/* Of a connection that was picked up or given up not all streams are known. */
__noinline int streams_ended(struct http2_conn *h)
{
	struct service_windows *all;
	struct service_slot *slot;

	if (!h || (h->flags & (HTTP2_FOLLOWED | HTTP2_GIVEN_UP | HTTP2_OLDER)) != HTTP2_FOLLOWED)
		return 0;
	all = windows_of(h);
	slot = slot_of(h->service);
	if (!all || !slot || __sync_lock_test_and_set(&h->ended, 1))
		return 0;
	count_atomic(slot, COUNTER_HTTP2_ENDED, 1);
	count_atomic(slot, COUNTER_HTTP2_ENDED_STREAMS, h->opened);
	atomic_raise(&all->streams_most, h->opened);
	return 0;
}

static __always_inline void reset_count(__u32 service, __u32 by, __u32 error)
{
	__u32 index = service_index(service);
	struct service_windows *all = bpf_map_lookup_elem(&windows, &index);

	if (error > RESET_OTHER)
		error = RESET_OTHER;
	barrier_var(by);
	barrier_var(error);
	if (all && by < RESET_SIDES && error < RESET_ERRORS)
		__sync_fetch_and_add(&all->resets[by][error], 1);
}

__noinline int stream_reset(struct http2_conn *h, __u32 id, __u32 by, __u32 error)
{
	struct stream_entry *found = h ? stream_entry_of(h, id) : NULL;
	struct service_slot *slot;
	struct stream st;

	if (!found)
		return 0;
	stream_copy(&st, found);
	slot = slot_of(h->service);
	if (!stream_take(h, id) || !slot)
		return 0;
	count_atomic(slot,
		     by == RESET_BY_SERVER ? COUNTER_STREAMS_BY_SERVER : COUNTER_STREAMS_BY_CLIENT,
		     1);
	reset_count(h->service, by, error);
	if (by == RESET_BY_SERVER && error == HTTP2_REFUSED_STREAM)
		count_atomic(slot, COUNTER_STREAMS_REFUSED, 1);
	if (st.flags & STREAM_RESPONDING)
		stream_over(h, &st, id);
	else
		stream_abandoned(slot, &st);
	return 0;
}

__noinline int stream_done(struct http2_conn *h, __u32 id)
{
	struct stream_entry *found = h ? stream_entry_of(h, id) : NULL;
	struct stream st;

	if (!found)
		return 0;
	stream_copy(&st, found);
	if (stream_take(h, id))
		stream_over(h, &st, id);
	return 0;
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(streams_state, const struct sock *sk, int old, int new)
{
	struct http2_conn *h;

	if (sk->sk_protocol != PROTO_TCP || !tcp_ends_writes(new))
		return 0;
	h = http2_of(sk);
	if (!h)
		return 0;
	streams_ended(h);
	if (!older_ends(h))
		streams_end(h);
	return 0;
}
