// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Looks for pipelined requests of HTTP/1, and follows them. See pipeline.h. */
#define WALK_CALLS

#include "pipeline.h"

#include "command_walk.h"

struct pipeline_call {
	struct command_conn *h;
	struct conn *c;
	__u64 over;  /* why the connection is given up */
	__u32 begun; /* requests, of a look */
	__u32 said;  /* enum pipeline, of a look */
};

#define PIPELINE_PASS 8

/* Pass bytes of a head that say nothing. Return whether there were any. */
static __always_inline bool pipeline_pass(struct command_conn *h, struct command_side *s)
{
	__u64 at = h->at;

	if (at + PIPELINE_PASS > h->have)
		return false;
	barrier_var(at); /* or the verifier does not see its bound */
	if (at > COMMANDS_CHUNK - PIPELINE_PASS || !http1_pass(s, *(__u64 *)(h->chunk + at)))
		return false;
	h->at = at + PIPELINE_PASS;
	return true;
}

/* Go on to the next byte that says something. Return whether this step has one; *ret_last: it is the last step. */
static __always_inline bool pipeline_moves(struct command_conn *h, struct command_side *s,
					   bool passes, long *ret_last)
{
	*ret_last = 0;
	if (h->at >= h->have) {
		*ret_last = !command_fill(h, s);
		return false;
	}
	if (s->skip && command_skip(h, s))
		return false;
	return !passes || !pipeline_pass(h, s);
}

static __always_inline __u8 pipeline_byte(struct command_conn *h)
{
	__u32 at = h->at;

	h->at = at + 1;
	return h->chunk[at & (COMMANDS_CHUNK - 1)];
}

/* ---- the look ---- */

/* Return whether no line of the text before @end is empty, and clear it. The words at @end end no line. */
static __always_inline bool lines_apart(__u8 *text, __u64 end)
{
	__u64 apart = HTTP1_APART;

#pragma clang loop unroll(disable)
	for (__u64 at = 0; at < end; at += 8 * PIPELINE_WORDS) {
#pragma clang loop unroll(full)
		for (int k = 0; k < 8 * PIPELINE_WORDS; k += 8) {
			__u8 *word = text + at + k;

			apart = http1_lines_apart(apart, *(__u64 *)word, *(__u64 *)(word + 1),
						  *(__u64 *)(word + 2));
			PLAIN((__u64 *)word) = 0; /* no text is kept */
		}
	}
	return apart == HTTP1_APART;
}

static __always_inline void put_after(__u64 *last, __u64 word)
{
#pragma clang loop unroll(full)
	for (int k = 0; k < PIPELINE_AFTER; k++)
		last[k] = word;
}

/* Copy the first of @count bytes, of one buffer, to look->text. Return their number. */
static __always_inline __u64 text_copied(struct command_conn *look, __u32 count)
{
	__u64 size = count;
	struct bytes bytes;

	bytes_begin(&bytes, count);
	if (!bytes_more(&bytes))
		return 0;
	if (size > bytes.left)
		size = bytes.left;
	if (size > HTTP1_HEAD_MOST)
		size = HTTP1_HEAD_MOST;
	barrier_var(size); /* or the verifier does not see its bounds */
	if (size < sizeof(__u32) || size > HTTP1_HEAD_MOST ||
	    bpf_probe_read_user(look->text, size, (void *)bytes.at))
		return 0;
	return size;
}

/* Return whether all of the text of @size bytes is one request, as far as its end says: most are a GET. */
static __always_inline bool text_is_get(const struct command_conn *look, __u64 size)
{
	const __u8 *text = (const __u8 *)look->text;

	return *text == 'G' && *(const __u32 *)(text + size - sizeof(__u32)) == HTTP1_HEAD_END;
}

/*
 * The text of @size bytes ends with an empty line. Return whether that is the first one, and clear the text. Then the GET is
 * whole, whatever its fields say: a body would come with a later read, which then is not understood.
 */
static __always_inline bool get_is_whole(struct command_conn *look, __u64 size)
{
	__u8 *text = (__u8 *)look->text;
	__u64 *last = (__u64 *)(text + size - sizeof(__u32));
	bool whole;

	put_after(last, ~0ULL);
	whole = lines_apart(text, size - sizeof(__u32));
	put_after(last, 0);
	return whole;
}

static long head_step(__u32 i, struct command_conn **look)
{
	return http1_head_step(&(*look)->head, (const __u8 *)(*look)->text);
}

/* Go through the head line by line, and clear the text. Return the size of the request; 0: it is not known. */
__noinline __u32 head_walked(struct command_conn *look, __u32 size)
{
	struct http1_head *h;

	if (!look)
		return 0;
	h = &look->head;
	*h = (struct http1_head){.size = size};
	if (http1_head_begins((const __u8 *)look->text))
		bpf_loop(HTTP1_HEAD_STEPS, head_step, &look, 0);
	text_forget(look->text, HTTP1_HEAD_MOST, size);
	return h->over ? h->at + h->length : 0;
}

__noinline int pipeline_head(struct command_conn *look, __u32 count)
{
	__u64 copied = look ? text_copied(look, count) : 0;
	__u32 size;

	if (!copied)
		return PIPELINE_UNCLEAR;
	if (copied == count && text_is_get(look, copied))
		return get_is_whole(look, copied) ? PIPELINE_ONE : PIPELINE_UNCLEAR;
	size = head_walked(look, copied);
	if (size < count)
		return PIPELINE_UNCLEAR;
	if (size == count)
		return PIPELINE_ONE;
	look->in = (struct command_side){
		.stage = HTTP1_BODY,
		.left = 1,
		.skip = size - count,
	};
	return PIPELINE_KEPT;
}

static long look_step(__u32 i, struct pipeline_call *call)
{
	struct command_conn *h = call->h;
	struct command_side *s = &h->in;
	long last;
	int said;

	if (s->stage >= HTTP1_BODY && !s->skip) {
		http1_settle(s);
		return 0;
	}
	if (!pipeline_moves(h, s, true, &last))
		return last;
	said = http1_request(s, pipeline_byte(h));
	if (said & COMMAND_BEGINS && call->begun++)
		call->said = PIPELINE_MORE;
	if (said & COMMAND_WRONG)
		call->said = PIPELINE_WRONG;
	/* A first line shows that it is a request, not the body of one whose head has no length. */
	return call->said == PIPELINE_WRONG ||
	       (call->said == PIPELINE_MORE && s->stage == HTTP1_NAME);
}

__noinline int pipeline_look(struct command_conn *h, __u32 count, __u32 skip, int first)
{
	struct pipeline_call call = {.h = h, .begun = !first, .said = PIPELINE_ONE};

	if (!h)
		return PIPELINE_ONE;
	/* After an early response the rest of its request is no exchange. */
	if (first && h->in.stage != HTTP1_START)
		return PIPELINE_WRONG;
	h->out = h->in;
	if (first)
		h->in.skip = skip;
	h->rest = count;
	h->have = h->at = 0;
	bytes_begin(&h->bytes, count);
	bpf_loop(COMMANDS_STEPS, look_step, &call, 0);
	__builtin_memset(h->chunk, 0, sizeof(h->chunk)); /* no text is kept */
	if (call.said == PIPELINE_ONE && !command_all_seen(h))
		call.said = PIPELINE_UNSEEN;
	if (call.said == PIPELINE_MORE)
		h->in = h->out;
	h->out = (struct command_side){};
	if (call.said == PIPELINE_ONE &&
	    (h->in.stage != HTTP1_START || h->in.type & (HTTP1_IS_HEAD | HTTP1_IS_CONNECT)))
		return PIPELINE_KEPT;
	return call.said;
}

/* ---- requests ---- */

__noinline int pipeline_takes(struct command_conn *h, const struct conn *c, __u64 last_read_ns)
{
	if (!h || !c)
		return 0;
	h->have = h->at = 0;
	h->open = (struct command_times){
		.start_ns = c->start_ns,
		.accept_delay_ns = c->accept_delay_ns,
		.first_read_ns = c->first_read_ns,
		.last_read_ns = last_read_ns,
	};
	h->open_seq = h->end - c->bytes_in;
	h->opened = true;
	h->route = config.route_rows ? c->route : ROUTE_UNSEEN;
	if (h->in.stage == HTTP1_START)
		command_queued(h, pipeline_kind(h));
	return 0;
}

/* Take the byte before h->at, of a request's first line. */
__noinline int pipeline_line(struct command_conn *h)
{
	if (h)
		request_byte(&h->line, h->chunk[(h->at - 1) & (COMMANDS_CHUNK - 1)]);
	return 0;
}

/* The request under way is complete. Return why the connection is given up; 0: it is not. */
__noinline int pipeline_asked(struct command_conn *h)
{
	if (!h || !h->opened)
		return 0;
	h->open.last_read_ns = h->now;
	command_queued(h, pipeline_kind(h));
	return h->lost ? ROUTE_PIPELINED + 1 : 0;
}

static __always_inline void pipeline_asks(struct pipeline_call *call)
{
	struct command_conn *h = call->h;

	command_asks(h, call->c);
	h->line = (struct request_line){};
	h->route = config.route_rows ? ROUTE_WANTED : ROUTE_UNSEEN;
}

static long pipeline_in_step(__u32 i, struct pipeline_call *call)
{
	struct command_conn *h = call->h;
	struct command_side *s = &h->in;
	bool in_line = h->route == ROUTE_WANTED && h->line.stage < REQUEST_OVER;
	long last;
	int said;

	if (s->stage >= HTTP1_BODY && !s->skip) {
		if (http1_settle(s))
			call->over = pipeline_asked(h);
		return !!call->over;
	}
	if (!pipeline_moves(h, s, !in_line || s->stage != HTTP1_TARGET, &last))
		return last;
	said = http1_request(s, pipeline_byte(h));
	if (said & COMMAND_BEGINS)
		pipeline_asks(call);
	if (config.route_rows &&
	    (said & COMMAND_BEGINS || (in_line && s->stage <= HTTP1_TARGET && s->left)))
		pipeline_line(h);
	if (said & COMMAND_ENDS)
		call->over = pipeline_asked(h);
	if (said & COMMAND_WRONG)
		call->over = ROUTE_STRANGE + 1;
	return !!call->over;
}

__noinline int pipeline_in(struct command_conn *h, struct conn *c)
{
	struct pipeline_call call = {.h = h, .c = c};

	if (!h || !c)
		return 0;
	command_walk_begins(h);
	bpf_loop(COMMANDS_STEPS, pipeline_in_step, &call, 0);
	__builtin_memset(h->chunk, 0, sizeof(h->chunk));
	return command_walk_ends(h, call.over);
}

/* ---- responses ---- */

/* The response that has begun is counted: count its status, too. A caller of both would need more stack. */
__noinline int pipeline_status(const struct command_conn *h)
{
	const struct command_reply *reply;

	if (!h || !h->reply.counts)
		return 0;
	reply = &h->reply;
	status_count(h->service, h->out.number,
		     reply->times.start_ns ? reply->first_write_ns - reply->times.last_read_ns
					   : STATUS_UNTIMED);
	if (config.route_rows && !reply->named)
		route_uncounted(h->service, reply->row);
	return 0;
}

/* Take the next byte of a response. A step that did it itself would need more stack below command_over(). */
__noinline int pipeline_hears(struct command_conn *h)
{
	return h ? http1_response(&h->out, pipeline_byte(h)) : 0;
}

static long pipeline_out_step(__u32 i, struct pipeline_call *call)
{
	struct command_conn *h = call->h;
	struct command_side *s = &h->out;
	long last;
	int said;

	if (s->stage >= HTTP1_BODY && !s->skip) {
		if (http1_settle(s))
			call->over = command_over(h);
		return !!call->over;
	}
	if (!pipeline_moves(h, s, true, &last))
		return last;
	said = pipeline_hears(h);
	if (said & COMMAND_BEGINS) {
		command_answers(h, said);
		pipeline_status(h);
	}
	if (said & COMMAND_ENDS)
		call->over = command_over(h);
	if (said & COMMAND_UPGRADES)
		call->over = COMMAND_UPGRADED;
	if (said & COMMAND_WRONG)
		call->over = ROUTE_STRANGE + 1;
	return !!call->over;
}

__noinline int pipeline_out(struct command_conn *h, struct conn *c)
{
	struct pipeline_call call = {.h = h, .c = c};

	if (!h || !c)
		return 0;
	command_walk_begins(h);
	bpf_loop(COMMANDS_STEPS, pipeline_out_step, &call, 0);
	__builtin_memset(h->chunk, 0, sizeof(h->chunk));
	return command_wrote(h, call.over);
}

__noinline int pipeline_lost(struct command_conn *h, __u32 over)
{
	struct service_slot *slot = h ? slot_of(h->service) : NULL;

	if (!slot)
		return 0;
	h->over = over;
	count_atomic(slot, COUNTER_PIPELINES_GIVEN_UP, 1);
	return 0;
}
