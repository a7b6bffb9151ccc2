/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Walks through the bytes of one side of a connection, field by field. It skips some bytes and gathers others, over
 * as many buffers, reads and writes as they come in. tls.h and speaks.h interpret the fields.
 */
#ifndef BPF_TCP_CONNECTION_WALK_H
#define BPF_TCP_CONNECTION_WALK_H

#include "bytes.h"

#define WALK_NOWHERE 0xffffffffU

static __always_inline struct talk *talk_of(const void *sk)
{
	return bpf_sk_storage_get(&talks, (void *)sk, 0, 0);
}

/* NULL: the kernel has no memory. */
static __always_inline struct talk *talk_new(const void *sk)
{
	return bpf_sk_storage_get(&talks, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void walk_begin(struct talk_side *s, __u32 count, __u64 now)
{
	struct walk *w = &s->walk;

	w->now = now;
	w->count = count;
	w->at = 0;
	w->begun = 0;
	w->message = WALK_NOWHERE;
	w->resumed = !!s->have;
	w->untimed = 0;
	bytes_begin(&w->bytes, count);
}

static __always_inline void walk_message(struct walk *w, __u32 at)
{
	if (at < w->message)
		w->message = at;
}

static __always_inline void side_next(struct talk_side *s, __u8 stage, __u32 skip, __u8 want)
{
	s->stage = stage;
	s->skip = skip;
	s->want = want;
	s->have = 0;
}

static __always_inline void side_pass(struct talk_side *s, __u32 count)
{
	bytes_pass(&s->walk.bytes, count);
	s->walk.at += count;
	if (s->stage > TALK_RECORD)
		s->rest -= count;
}

/*
 * Take steps until one reports that it was the last. bpf_loop() exists since 5.17 (e6f2dd0f8067). With it the
 * verifier follows one step instead of each; files that may use it define WALK_CALLS before. Without it there are
 * fewer steps, TLS is not followed, and no requests are counted in a read.
 */
#ifdef WALK_CALLS
#define WALK_FOLLOWS		     1
#define WALK_STEP		     static
#define WALK(talk, steps, few, step) bpf_loop(steps, step, &(talk), 0)
#else
#define WALK_FOLLOWS 0
#define WALK_STEP    static __always_inline
/* No loop: clang jumps into the midst of some, which old kernels do not take. */
#define WALK(talk, steps, few, step)                                                  \
	((void)((few) && (step(0, &(talk)) || step(1, &(talk)) || step(2, &(talk)) || \
			  step(3, &(talk)) || step(4, &(talk)) || step(5, &(talk)))))
#endif

enum step {
	STEP_END, /* the call has no more bytes that can be seen */
	STEP_ON,
	STEP_FIELD, /* the field is complete */
};

/* Bytes of a field that one step gathers. */
#define STEP_BYTES 8

static __always_inline enum step side_gather(struct talk_side *s, __u32 room)
{
	struct walk *w = &s->walk;
	__u32 have = s->have, count = s->want - have;

	if (!have) {
		w->begun = w->at;
		w->resumed = false;
	}
	if (count > room)
		count = room;
	if (count > STEP_BYTES)
		count = STEP_BYTES;
	barrier_var(count); /* or the verifier does not see the bounds */
	barrier_var(have);
	count &= 2 * STEP_BYTES - 1;
	if (have > TALK_FIELD - 2 * STEP_BYTES ||
	    bpf_probe_read_user(&s->field[have], count, (void *)w->bytes.at))
		return STEP_END;
	side_pass(s, count);
	s->have = have + count;
	return s->have < s->want ? STEP_ON : STEP_FIELD;
}

static __always_inline enum step side_step(struct talk_side *s)
{
	struct walk *w = &s->walk;
	__u32 room = w->count - w->at, count = s->skip;

	if (!room)
		return STEP_END;
	if (count && s->message)
		walk_message(w, w->at);
	/* Skipped bytes need not be visible. */
	if (count >= room) {
		s->skip -= room;
		side_pass(s, room);
		return STEP_END;
	}
	if (!bytes_more(&w->bytes))
		return STEP_END;
	if (room > w->bytes.left)
		room = w->bytes.left;
	if (count > room)
		count = room;
	s->skip -= count;
	side_pass(s, count);
	return count < room && !s->skip ? side_gather(s, room - count) : STEP_ON;
}

#endif
