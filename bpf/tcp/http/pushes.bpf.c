// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Counts messages of WebSocket and server-sent events. See pushed.h. */
#include "pushed.h"
#include "state.h"
#include "tcp/connection/bytes.h"
#include "tcp/connection/slot.h"
#include "tcp/state/push.h"

#include "protocol/http1.h"

/* Limits of one read or write. */
#define PUSH_STEPS (1 << 22)

struct push_call {
	struct push_conn *p;
	struct push_side *side;
	__u64 skip; /* bytes before the head */
	__u64 over; /* enum push_kind: what the connection has become; 0: nothing else */
};

/* ---- bytes ---- */

static __always_inline void side_begin(struct push_side *s, __u32 count, __u32 end)
{
	s->rest = count;
	s->have = s->at = 0;
	s->end = end;
	s->sums = (struct push_sums){};
	if (s->text)
		s->bytes = (struct bytes){.at = s->text, .left = count};
	else
		bytes_begin(&s->bytes, count);
}

/* Get more bytes into the chunk, which is used up. Return false if there are none. */
static __always_inline bool side_fill(struct push_side *s)
{
	__u64 room = s->rest;

	s->at = 0;
	s->have = 0;
	if (!room || !bytes_more(&s->bytes))
		return false;
	if (room > s->bytes.left)
		room = s->bytes.left;
	if (room > PUSH_CHUNK)
		room = PUSH_CHUNK;
	barrier_var(room);
	if (room > PUSH_CHUNK || bpf_probe_read_user(s->chunk, room, (void *)s->bytes.at))
		return false;
	s->have = room;
	bytes_pass(&s->bytes, room);
	s->rest -= room;
	return true;
}

/* Pass bytes, @most of them. Return how many; 0: a next buffer may have some, or *ret_none. */
static __always_inline __u64 side_pass(struct push_side *s, __u64 most, long *ret_none)
{
	__u64 count = s->have - s->at;

	*ret_none = 0;
	if (count) {
		if (count > most)
			count = most;
		s->at += count;
		return count;
	}
	count = s->rest;
	if (count && count <= most) {
		/* They need not be visible. */
		s->rest = 0;
		return count;
	}
	if (!count || !bytes_more(&s->bytes)) {
		*ret_none = 1;
		return 0;
	}
	if (most > s->bytes.left)
		most = s->bytes.left;
	bytes_pass(&s->bytes, most);
	s->rest -= most;
	return most;
}

static __always_inline bool side_all_seen(const struct push_side *s)
{
	return !s->rest && s->at >= s->have;
}

static __always_inline __u8 side_byte(struct push_side *s)
{
	__u32 at = s->at;

	s->at = at + 1;
	return s->chunk[at & (PUSH_CHUNK - 1)];
}

/* ---- messages ---- */

static __always_inline void frames_said(struct push_call *call, int said)
{
	struct push_side *s = call->side;

	if (said & WEBSOCKET_MESSAGE) {
		s->sums.messages++;
		s->sums.payload += s->frames.bytes;
	}
	if (said & WEBSOCKET_CONTROL)
		s->sums.control++;
	if (said & WEBSOCKET_WRONG)
		call->over = PUSH_LOST;
}

static __always_inline long frames_next(struct push_call *call)
{
	struct push_side *s = call->side;
	__u64 passed;
	long none;

	if (s->frames.stage == WEBSOCKET_PAYLOAD) {
		passed = side_pass(s, s->frames.left, &none);
		if (passed)
			frames_said(call, websocket_pass(&s->frames, passed));
		return none;
	}
	if (s->at >= s->have)
		return !side_fill(s);
	frames_said(call, websocket_byte(&s->frames, side_byte(s)));
	return !!call->over;
}

static long frames_step(__u32 i, struct push_call *call)
{
	return frames_next(call);
}

/* Pass bytes that were moved unseen before those of the current call: all have to be payload. */
static __always_inline void frames_unseen(struct push_call *call, __u32 count)
{
	struct websocket_side *frames = &call->side->frames;

	if (frames->stage != WEBSOCKET_PAYLOAD || frames->left < count)
		call->over = PUSH_LOST;
	else
		frames_said(call, websocket_pass(frames, count));
}

/* The connection, or the response, has become another thing within a call; 0: it has not. */
static __always_inline void push_becomes(struct push_conn *p, __u64 over)
{
	struct service_statuses *all;
	__u8 kind = p->kind;

	if (!over || kind == PUSH_LOST)
		return;
	p->kind = over;
	all = over == PUSH_LOST ? pushed_of(p) : NULL;
	if (all)
		pushed(all, kind == PUSH_WEBSOCKET ? PUSHED_WEBSOCKETS_LOST : PUSHED_STREAMS_LOST,
		       1);
}

/*
 * A call in one direction is over. Return enum push_kind. PUSH_SOUGHT: what it has moved is not counted yet. PUSH_LOST and
 * p->kind is PUSH_SOUGHT: these are no frames.
 */
static __always_inline int frames_told(struct push_conn *p, const struct push_side *s,
				       __u32 direction, __u64 over)
{
	if (PLAIN(&p->kind) == PUSH_SOUGHT)
		return over ? PUSH_LOST : PUSH_SOUGHT;
	pushed_frames(p, &s->sums, direction);
	push_becomes(p, over);
	return p->kind;
}

__noinline int pushes_in(struct push_conn *p, __u32 count, __u32 end)
{
	struct push_call call = {.p = p};
	__u32 unseen;

	if (!p)
		return 0;
	call.side = &p->in;
	unseen = end - count - p->in.end;
	side_begin(&p->in, count, end);
	if (unseen)
		frames_unseen(&call, unseen);
	if (!call.over)
		bpf_loop(PUSH_STEPS, frames_step, &call, 0);
	if (!side_all_seen(&p->in))
		call.over = PUSH_LOST;
	__builtin_memset(p->in.chunk, 0, sizeof(p->in.chunk)); /* no text is kept */
	return frames_told(p, &p->in, 0, call.over);
}

/* ---- the head, and events ---- */

/* The head is over: know what follows. */
static __always_inline void head_over(struct push_call *call, int said)
{
	struct push_conn *p = call->p;
	bool pushes = p->head.type & HTTP1_PUSHES;

	if (said & COMMAND_UPGRADES)
		p->kind = pushes ? PUSH_WEBSOCKET : PUSH_NONE;
	else if (pushes && p->head.number == 200)
		p->kind = PUSH_EVENTS;
	else
		p->kind = PUSH_NONE;
	if (p->kind == PUSH_NONE || (p->kind == PUSH_EVENTS && p->head.type & HTTP1_IS_ENCODED))
		call->over = PUSH_LOST;
	else if (p->kind == PUSH_EVENTS && said & COMMAND_ENDS)
		call->over = PUSH_OVER;
}

/* Return whether the head's last byte has been taken, which has said this. */
static __always_inline bool head_is_over(const struct command_side *s, int said)
{
	return said & COMMAND_ENDS || s->stage >= HTTP1_BODY || s->stage == HTTP1_SIZE;
}

/* Pass bytes of an event that say nothing. Return whether there were any. */
static __always_inline bool events_passes(struct push_conn *p)
{
	struct push_side *s = &p->out;
	__u64 at = s->at;

	if (at + 8 > s->have || p->head.skip < 8)
		return false;
	barrier_var(at); /* or the verifier does not see its bound */
	if (at > PUSH_CHUNK - 8 || !events_pass(&p->events, *(__u64 *)(s->chunk + at)))
		return false;
	s->at = at + 8;
	p->head.skip -= 8;
	s->sums.payload += 8;
	return true;
}

/* Take the next byte of the response but for its body. A function of its own: the verifier checks it once. */
__noinline int push_hears(struct push_conn *p)
{
	return p ? http1_response(&p->head, side_byte(&p->out)) : 0;
}

static __always_inline long body_next(struct push_call *call)
{
	struct push_conn *p = call->p;
	struct command_side *head = &p->head;
	int said;

	if (head->stage >= HTTP1_BODY && !head->skip) {
		if (http1_settle(head) & COMMAND_ENDS)
			call->over = PUSH_OVER;
		return !!call->over;
	}
	if (p->out.at >= p->out.have)
		return !side_fill(&p->out);
	if (head->stage >= HTTP1_BODY) {
		if (events_passes(p))
			return 0;
		head->skip--;
		p->out.sums.payload++;
		p->out.sums.messages += events_byte(&p->events, side_byte(&p->out));
		return 0;
	}
	said = push_hears(p);
	if (said & COMMAND_WRONG)
		call->over = PUSH_LOST;
	else if (p->kind == PUSH_HEAD && head_is_over(head, said))
		head_over(call, said);
	else if (said & COMMAND_ENDS)
		call->over = PUSH_OVER;
	return !!call->over;
}

static long out_step(__u32 i, struct push_call *call)
{
	long none;
	__u64 passed;

	if (call->skip) {
		passed = side_pass(call->side, call->skip, &none);
		call->skip -= passed;
		return none;
	}
	return push_has_frames(call->p) ? frames_next(call) : body_next(call);
}

static __always_inline void out_walk(struct push_conn *p, struct push_call *call)
{
	bpf_loop(PUSH_STEPS, out_step, call, 0);
	if (!call->over && !side_all_seen(&p->out))
		call->over = PUSH_LOST;
	__builtin_memset(p->out.chunk, 0, sizeof(p->out.chunk)); /* no text is kept */
}

static __always_inline void events_count(const struct push_conn *p)
{
	struct service_statuses *all = pushed_of(p);

	if (!all)
		return;
	pushed(all, PUSHED_EVENTS, p->out.sums.messages);
	pushed(all, PUSHED_EVENT_BYTES, p->out.sums.payload);
}

static __always_inline int out_told(struct push_conn *p, __u64 over)
{
	if (push_has_frames(p))
		return frames_told(p, &p->out, 1, over);
	events_count(p);
	push_becomes(p, over);
	return p->kind;
}

__noinline int pushes_begin(struct push_conn *p, __u32 count, __u32 skip, __u32 end)
{
	struct push_call call = {.p = p, .skip = skip};
	struct service_statuses *all;

	if (!p)
		return PUSH_NONE;
	call.side = &p->out;
	p->head = (struct command_side){.named = 1};
	p->events = (struct events_side){};
	p->in.frames = (struct websocket_side){.masks = 1};
	p->out.frames = (struct websocket_side){};
	p->kind = PUSH_HEAD;
	side_begin(&p->out, count, end);
	out_walk(p, &call);
	if (p->kind <= PUSH_HEAD)
		return PUSH_NONE;
	all = pushed_of(p);
	if (all)
		pushed(all, p->kind == PUSH_WEBSOCKET ? PUSHED_WEBSOCKETS : PUSHED_STREAMS, 1);
	if (p->kind == PUSH_WEBSOCKET && p->missed)
		call.over = PUSH_LOST;
	return out_told(p, call.over);
}

__noinline int pushes_lose(struct push_conn *p)
{
	if (p)
		push_becomes(p, PUSH_LOST);
	return 0;
}

__noinline int pushes_out(struct push_conn *p, __u32 count, __u32 end)
{
	struct push_call call = {.p = p};
	__u32 unseen;

	if (!p || (!push_has_frames(p) && p->kind != PUSH_EVENTS))
		return PUSH_NONE;
	call.side = &p->out;
	unseen = end - count - p->out.end;
	side_begin(&p->out, count, end);
	if (unseen && push_has_frames(p))
		frames_unseen(&call, unseen);
	else if (unseen)
		call.over = PUSH_LOST;
	if (!call.over)
		out_walk(p, &call);
	return out_told(p, call.over);
}
