// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Counts messages of WebSocket and server-sent events. See pushes.h. */
#include "bytes.h"
#include "clear_pushes.h"
#include "push.h"
#include "pushed.h"
#include "slot.h"
#include "state.h"

#include "protocol/http1.h"

/* Limits of one read or write. */
#define PUSH_STEPS (1 << 22)
/* Bytes of a response that are searched for its type, in how many buffers, and the places of one step. */
#define PUSH_LOOK    1024
#define PUSH_BUFFERS 8
#define PUSH_PLACES  8

/* Four bytes, and eight, the first one lowest. */
#define WORD(a, b, c, d)	      ((__u32)(a) | (__u32)(b) << 8 | (__u32)(c) << 16 | (__u32)(d) << 24)
#define WORD8(a, b, c, d, e, f, g, h) (WORD(a, b, c, d) | (__u64)WORD(e, f, g, h) << 32)

struct push_call {
	struct push_conn *p;
	struct push_side *side;
	__u64 skip; /* bytes before the head */
	__u64 over; /* enum push_kind: what the connection has become; 0: nothing else */
};

/* ---- is it one? ---- */

/* Return 1 or 0 without a branch. */
static __always_inline __u64 is_other(__u64 a, __u64 b)
{
	__u64 differs = a ^ b;

	differs |= -differs;
	barrier_var(differs);
	return differs >> 63;
}

/*
 * The head of a response that is searched for its type. The result of a step is kept in the map: on the stack the verifier
 * would follow each number of steps apart.
 */
struct push_scan {
	/* ->at: the next byte; ->begun: how many lines have the type; ->rest: where the only one begins. */
	struct command_conn *look;
	__u64 have;
};

/* Return the eight bytes from @at + @further on, the first one lowest. There is room for them after the last place. */
static __always_inline __u64 text_at(const struct command_conn *look, __u64 at, __u32 further)
{
	barrier_var(at); /* or the verifier does not see its bound */
	at &= PUSH_LOOK - 1;
	return *(const __u64 *)((const __u8 *)look->text + at + further);
}

/* Return the number of bytes up to the first newline of eight and with it; 8: there is none. */
static __always_inline __u64 to_newline(__u64 bytes)
{
	__u64 newlines = 0;

	http1_empty_lines(0, &newlines, bytes);
	newlines |= 1ULL << 63;
	return (((newlines & -newlines) >> 7) * 0x0001020304050607ULL >> 56) + 1;
}

#define SMALL 0x2020202020202020ULL /* makes letters small, and '*' of a newline */

/* Return whether the value at @at is the type of server-sent events. After several blanks it may be. */
static __always_inline bool may_be_events(const struct command_conn *look, __u64 at)
{
	__u64 value = text_at(look, at, 0);
	__u64 blanks = (value & 0xff) == ' ' || (value & 0xff) == '\t';

	if (blanks)
		value = text_at(look, at, 1);
	return (value | SMALL) == WORD8('t', 'e', 'x', 't', '/', 'e', 'v', 'e') ||
	       (blanks && ((value & 0xff) == ' ' || (value & 0xff) == '\t'));
}

/* Go on to the next line, or by eight bytes, some times. Without a branch: the verifier would go each way at each place. */
static long scan_step(__u32 i, struct push_scan *scan)
{
	struct command_conn *look = scan->look;
	__u64 at = look->at, types = look->begun, type_at = look->rest, more = 1;

#pragma clang loop unroll(full)
	for (int k = 0; k < PUSH_PLACES; k++) {
		__u64 line, end, other;

		at += to_newline(text_at(look, at, 0));
		line = text_at(look, at - 1, 0);
		end = line & 0xffff;
		more &= is_other(end, '\n' | '\r' << 8) & is_other(end, '\n' | '\n' << 8);
		other = is_other(line | SMALL, WORD8('*', 'c', 'o', 'n', 't', 'e', 'n', 't')) |
			is_other((text_at(look, at, 7) | SMALL) << 16,
				 WORD8(0, 0, '-', 't', 'y', 'p', 'e', ':'));
		types += 1 - other;
		type_at |= at & (other - 1);
	}
	look->at = at;
	look->rest = type_at;
	look->begun = types;
	return !more || at >= scan->have;
}

/* Copy the first bytes of look->bytes, of @count, to look->text. Return their number. */
static __always_inline __u32 copy_start(struct command_conn *look, __u32 count)
{
	__u8 *text = (__u8 *)look->text;
	__u32 have = 0;

	for (int i = 0; i < PUSH_BUFFERS && have < PUSH_LOOK - 1; i++) {
		__u32 room = PUSH_LOOK - 1 - have;

		if (!bytes_more(&look->bytes))
			break;
		if (room > look->bytes.left)
			room = look->bytes.left;
		if (room > count - have)
			room = count - have;
		barrier_var(room); /* or the verifier does not see the bounds */
		barrier_var(have);
		room &= PUSH_LOOK - 1;
		have &= PUSH_LOOK - 1;
		if (bpf_probe_read_user(text + have, room, (void *)look->bytes.at))
			break;
		bytes_pass(&look->bytes, room);
		have += room;
	}
	return have;
}

/* Return what the first @have bytes of look->text begin. */
static __always_inline enum push_suspicion suspicion_of(struct command_conn *look, __u32 have)
{
	struct push_scan scan = {.look = look, .have = have};
	const __u32 *words = (const __u32 *)look->text;

	if (words[0] != WORD('H', 'T', 'T', 'P'))
		return PUSH_CUT_SHORT;
	if (have < HTTP1_STATUS_LENGTH)
		return PUSH_UNSUSPECTED;
	if (words[2] != WORD(' ', '2', '0', '0'))
		return words[2] == WORD(' ', '1', '0', '1') ? PUSH_SUSPECTED : PUSH_UNSUSPECTED;
	look->at = look->rest = look->begun = 0;
	bpf_loop(PUSH_LOOK / PUSH_PLACES, scan_step, &scan, 0);
	return look->begun > 1 || (look->begun && may_be_events(look, look->rest + 13))
		       ? PUSH_SUSPECTED
		       : PUSH_UNSUSPECTED;
}

/* Return what look->bytes, of @count, begin. */
static __always_inline enum push_suspicion look_at(struct command_conn *look, __u32 count)
{
	enum push_suspicion suspicion = suspicion_of(look, copy_start(look, count));

	__builtin_memset(look->text, 0, PUSH_LOOK); /* no text is kept */
	return suspicion;
}

__noinline int pushes_suspected(struct conn *c, __u32 phase, __u32 count)
{
	struct command_conn *look;
	__u32 zero = 0;

	if (!c || phase != CONN_READING || c->phase != CONN_RESPONDING)
		return 0;
	if (c->marks & MARK_TLS)
		return config.tls ? clear_pushes_follow(c) : 0;
	look = bpf_map_lookup_elem(&pipeline_looks, &zero);
	if (!look)
		return 0;
	bytes_begin(&look->bytes, count);
	return look_at(look, count);
}

__noinline int pushes_suspected_text(struct command_conn *look, __u64 text, __u32 count)
{
	if (!look)
		return 0;
	look->bytes = (struct bytes){.at = text, .left = count};
	return look_at(look, count);
}

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
