// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Finds frames of WebSocket on older connections. See older_pushes.h. */
#define WALK_CALLS

#include "older_pushes.h"

#include "tcp/connection/bytes.h"
#include "tcp/http/pushed.h"

/* Bytes of a frame that are looked at before there is a state. */
#define OLDER_LOOK 2

/* Of struct push_conn.older: what is counted. */
enum older_told {
	OLDER_TOLD_SEEMS = 1 << 0,
	OLDER_TOLD_FOUND = 1 << 1,
};

__noinline int older_seems(__u32 count)
{
	struct websocket_side s = {.masks = 1};
	__u8 head[OLDER_LOOK] = {};
	struct bytes b;

	bytes_begin(&b, count);
	if (!bytes_more(&b) || bpf_probe_read_user(head, 1, (void *)b.at) ||
	    websocket_first(&s, head[0]) & WEBSOCKET_WRONG)
		return 0;
	if (count < OLDER_LOOK || b.left < OLDER_LOOK)
		return 1;
	return !bpf_probe_read_user(head + 1, 1, (void *)(b.at + 1)) &&
	       !(websocket_second(&s, head[1]) & WEBSOCKET_WRONG);
}

static __always_inline void older_side(struct push_side *s, bool masks)
{
	s->frames = (struct websocket_side){.masks = masks, .sought = 1};
	__sync_lock_test_and_set(&s->held.messages, 0);
	__sync_lock_test_and_set(&s->held.payload, 0);
	__sync_lock_test_and_set(&s->held.control, 0);
}

/* Return whether nothing of a frame has come, so that the next byte may be the first one. */
static __always_inline bool older_begins(const struct push_side *s)
{
	return s->frames.stage == WEBSOCKET_FIRST && !s->frames.open && !s->held.messages &&
	       !s->held.control;
}

static __always_inline void older_holds(struct push_side *s)
{
	__sync_fetch_and_add(&s->held.messages, s->sums.messages);
	__sync_fetch_and_add(&s->held.payload, s->sums.payload);
	__sync_fetch_and_add(&s->held.control, s->sums.control);
}

/* Count what was held, once: either thread may do it, also for a call of the other one. */
static __always_inline void older_releases(const struct push_conn *p, struct push_side *s,
					   __u32 direction)
{
	struct push_sums sums = {
		.messages = __sync_lock_test_and_set(&s->held.messages, 0),
		.payload = __sync_lock_test_and_set(&s->held.payload, 0),
		.control = __sync_lock_test_and_set(&s->held.control, 0),
	};

	pushed_frames(p, &sums, direction);
}

static __always_inline __u64 older_proof(const struct push_side *s)
{
	return PLAIN(&s->held.messages) + PLAIN(&s->held.control);
}

/* Note that the connection is counted as such. Return whether it was not before. */
static __always_inline bool older_tells(struct push_conn *p, __u32 told)
{
	return !(__sync_fetch_and_or(&p->older, told) & told);
}

/* Judge by what is held. */
static __always_inline void older_judge(struct push_conn *p)
{
	__u64 in = older_proof(&p->in), out = older_proof(&p->out);
	struct service_statuses *all = pushed_of(p);

	if (!all || !in || in + out < 2)
		return;
	if (older_tells(p, OLDER_TOLD_SEEMS))
		pushed(all, PUSHED_WEBSOCKETS_OLDER, 1);
	if (in < 2 || !out || !older_tells(p, OLDER_TOLD_FOUND))
		return;
	pushed(all, PUSHED_WEBSOCKETS, 1);
	pushed(all, PUSHED_WEBSOCKETS_PICKED_UP, 1);
	PLAIN(&p->in.frames.sought) = 0;
	PLAIN(&p->out.frames.sought) = 0;
	PLAIN(&p->kind) = PUSH_WEBSOCKET;
}

/* The bytes of a side are no frames. Return OLDER_NONE. */
static __always_inline int older_not(struct push_conn *p, struct push_side *s, bool written)
{
	older_side(s, !written);
	if (!written && ++p->tries >= OLDER_TRIES)
		p->kind = PUSH_LOST;
	return OLDER_NONE;
}

__noinline int older_frames(struct push_conn *p, __u32 count, __u32 end, __u32 written)
{
	struct push_side *s;
	int kind;

	if (!p)
		return OLDER_NONE;
	if (p->kind == PUSH_NONE) {
		older_side(&p->in, true);
		older_side(&p->out, false);
		p->kind = PUSH_SOUGHT;
	}
	if (!push_has_frames(p))
		return OLDER_NONE;
	s = written ? &p->out : &p->in;
	if (older_begins(s))
		s->end = end - count;
	kind = written ? pushes_out(p, count, end) : pushes_in(p, count, end);
	if (kind == PUSH_LOST && PLAIN(&p->kind) == PUSH_SOUGHT)
		return older_not(p, s, written);
	if (kind == PUSH_SOUGHT) {
		older_holds(s);
		older_judge(p);
	}
	if (PLAIN(&p->kind) != PUSH_SOUGHT) {
		older_releases(p, &p->in, 0);
		older_releases(p, &p->out, 1);
		return OLDER_FOUND;
	}
	return older_proof(&p->in) ? OLDER_SEEMS : OLDER_NONE;
}
