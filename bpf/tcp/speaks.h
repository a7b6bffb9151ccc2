/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Recognises a connection's protocol by its client's first bytes: HTTP/1, HTTP/2 (RFC 9113, 3.4) or
 * TLS, each perhaps after a PROXY header. On connections older than the observation these bytes are
 * gone. There a series of headers of frames or records shows the protocol. Called with the bytes of
 * each read and write until the protocol is known, and for TLS until the connection ends.
 * Neighbours: speaks.bpf.c, talk.h, tls.h, exchange.h.
 */
#ifndef BPF_TCP_SPEAKS_H
#define BPF_TCP_SPEAKS_H

#include "tcp/connection/arrival.h"
#include "tcp/connection/clear.h"
#include "tcp/connection/transmit.h"
#include "tcp/http/beside.h"
#include "tcp/http/streams.h"
#include "tcp/tls/tls.h"

/*
 * The number of reads in which TLS may still begin after another protocol (STARTTLS), or an older
 * connection be recognised.
 */
#define SPEAKS_LOOKS 8
/* The same for an older connection whose streams of HTTP/2 would be followed. Its next reads may be within DATA. */
#define SPEAKS_LOOKS_OLDER 64
/* Limit of fields and buffers. The longest line of PROXY takes 13. */
#define SPEAKS_STEPS 24
#define SPEAKS_FEW   6 /* the steps of WALK() without bpf_loop() */

#define START_BYTES   5
#define PREFACE_BYTES 24
#define PROXY_BYTES   16
#define FRAME_HEADER  9
#define FRAME_LONGEST 16384

/* The protocol that the first bytes begin. */
enum start {
	START_NOT_YET,
	START_OTHER,
	START_HTTP1,
	START_HTTP2,
	START_TLS,
	START_OLD_TLS,
	START_PREFACE, /* from here on: undecided, more bytes are needed */
	START_PROXY_LINE,
	START_PROXY,
	START_OLD_RECORD,
	START_OLD_FRAME,
	START_UNSEEN = 1 << 8, /* besides: the bytes cannot be seen */
	START_FRAME = 1 << 9,  /* besides: the read seems to be a frame of WebSocket's */
	START_MASK = 16,       /* and from this bit on is the start of its mask */
};

/* Return whether a request of HTTP/1 begins. Leave out CONNECT, after which another protocol follows. */
static __always_inline bool is_http1(__u32 word, __u8 next)
{
	if (word == word_of("GET ") || word == word_of("PUT "))
		return next == '/' || next == 'h';
	return word == word_of("POST") || word == word_of("HEAD") || word == word_of("DELE") ||
	       word == word_of("PATC") || word == word_of("OPTI") || word == word_of("TRAC");
}

static __always_inline enum start start_of(const __u8 *f, bool old, bool first)
{
	__u32 word = f[0] | f[1] << 8 | f[2] << 16 | (__u32)f[3] << 24;

	if (tls_is_header(f) && old)
		return START_OLD_RECORD;
	if (tls_is_header(f))
		return f[0] == TLS_HANDSHAKE ? START_TLS : START_OTHER;
	if (!first && !old)
		return START_OTHER;
	if (is_http1(word, f[4]))
		return START_HTTP1;
	if (word == word_of("PRI "))
		return START_PREFACE;
	if (word == word_of("PROX") && f[4] == 'Y')
		return START_PROXY_LINE;
	if (word == word_of("\r\n\r\n") && !f[4])
		return START_PROXY;
	return old && !f[0] && f[1] <= FRAME_LONGEST >> 8 ? START_OLD_FRAME : START_OTHER;
}

/* ---- fields of other protocols than TLS ---- */

static __always_inline bool is_preface(const struct talk_side *s)
{
	const char preface[PREFACE_BYTES] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#pragma clang loop unroll(full)
	for (__u32 i = 0; i < PREFACE_BYTES; i++) {
		if (s->field[i] != (__u8)preface[i])
			return false;
	}
	return true;
}

static __always_inline bool is_proxy(const struct talk_side *s)
{
	return s->field[5] == '\r' && s->field[6] == '\n' && s->field[7] == 'Q' &&
	       s->field[8] == 'U' && s->field[9] == 'I' && s->field[10] == 'T' &&
	       s->field[11] == '\n';
}

/*
 * Return whether this is a frame's header that a client may send (RFC 9113, 4.1 and 6). Only types
 * with a strict form count.
 */
static __always_inline bool is_frame(const __u8 *f)
{
	__u32 length = (__u32)f[0] << 16 | (__u32)f[1] << 8 | f[2];
	__u32 stream = (__u32)f[5] << 24 | (__u32)f[6] << 16 | (__u32)f[7] << 8 | f[8];
	__u8 flags = f[4];

	if (length > FRAME_LONGEST || stream >> 31)
		return false;
	switch (f[3]) {
	case 0: /* DATA */
		return stream & 1 && !(flags & ~0x09);
	case 1: /* HEADERS */
		return stream & 1 && !(flags & ~0x2d);
	case 2: /* PRIORITY */
		return stream && length == 5;
	case 3: /* RST_STREAM */
		return stream && length == 4;
	case 4: /* SETTINGS */
		return !stream && length % 6 == 0 && flags <= 1;
	case 6: /* PING */
		return !stream && length == 8 && flags <= 1;
	case 7: /* GOAWAY */
		return !stream && length >= 8;
	case 8: /* WINDOW_UPDATE */
		return length == 4 && !flags;
	case 9: /* CONTINUATION */
		return stream & 1 && !(flags & ~0x04);
	case 16: /* PRIORITY_UPDATE (RFC 9218) */
		return !stream && length >= 4;
	}
	return false;
}

/* ---- changes of a connection's protocol ---- */

/* From now on reads and writes are no exchanges, nor is the message under way. @counter may be COUNTER_COUNT: none. */
static __always_inline void becomes_opaque(const struct sock *sk, struct conn *c,
					   enum counter counter)
{
	struct service_slot *slot = slot_of(c->service);

	transmit_end(sk, c);
	c->phase = CONN_IDLE;
	c->marks = MARK_MULTIPLEXED | MARK_SETTLED | (c->marks & MARK_TLS);
	if (slot && counter < COUNTER_COUNT)
		count_atomic(slot, counter, 1);
}

/* The bytes read so far were no request. Return when they were readable; 0: there were none, or that is not known. */
static __always_inline __u64 exchange_cancel(const struct sock *sk, struct conn *c)
{
	__u64 since_ns = c->start_ns ? c->start_ns - c->accept_delay_ns : 0;

	if (c->phase != CONN_READING) {
		if (c->phase == CONN_UNKNOWN)
			c->phase = CONN_IDLE;
		return 0;
	}
	transmit_end(sk, c);
	c->phase = CONN_IDLE;
	c->marks &= MARK_LASTING;
	c->bytes_in = 0;
	c->start_ns = 0;
	if (c->index)
		c->index--;
	else
		c->first_read_ns = 0;
	return since_ns;
}

static __always_inline void becomes_tls(struct conn *c)
{
	struct service_slot *slot = slot_of(c->service);

	c->marks |= MARK_TLS;
	if (slot)
		count_atomic(slot, COUNTER_TLS, 1);
}

/* Return whether the kernel handles the records: the process then reads and writes plain text. */
static __always_inline bool tls_in_kernel(const struct sock *sk)
{
	return BPF_CORE_READ((const struct inet_connection_sock *)sk, icsk_ulp_ops);
}

/* The handshake is over: a protocol follows. */
static __always_inline void tls_carried(const struct sock *sk, struct conn *c, struct talk *t)
{
	int carries = tls_opened(t, c->service);

	if (carries == TLS_CARRIES_HTTP1)
		c->marks |= MARK_HTTP1;
	else if (carries == TLS_CARRIES_HIDDEN)
		becomes_opaque(sk, c, COUNTER_COUNT);
	else if (carries != TLS_CARRIES_ANY)
		becomes_opaque(sk, c,
			       carries == TLS_CARRIES_HTTP2 ? COUNTER_MULTIPLEXED
							    : COUNTER_TLS_UNKNOWN);
}

/*
 * Only plain text shows what the connection carries. Until then its messages are those of HTTP/1, so that nothing of the
 * first one is missed. @answers: this write may be an answer; others are none of either protocol. Return whether it is decided.
 */
static __always_inline bool tls_decides(const struct sock *sk, struct conn *c, struct talk *t,
					bool answers)
{
	int carries = clear_carries(c, answers);

	if (carries == TLS_CARRIES_ANY)
		return false;
	t->flags &= ~TLS_UNDECIDED;
	if (carries != TLS_CARRIES_HTTP1) {
		exchange_cancel(sk, c);
		becomes_opaque(sk, c, COUNTER_COUNT);
	} else if (t->flags & TLS_OFFERS_HTTP1) {
		c->marks |= MARK_HTTP1;
	}
	return true;
}

static __always_inline bool is_undecided(const struct talk *t)
{
	return config.tls && t->flags & TLS_UNDECIDED;
}

/* Handle the result of a read or a write of TLS, understood or not. */
static __always_inline void tls_walked(const struct sock *sk, struct conn *c, struct talk *t,
				       struct talk_side *s, bool understood)
{
	if (!understood && tls_in_kernel(sk)) {
		c->marks |= MARK_SETTLED;
		walk_message(&s->walk, s->walk.begun);
	} else if (!understood || t->flags & TLS_STRANGE) {
		becomes_opaque(sk, c, is_undecided(t) ? COUNTER_COUNT : COUNTER_TLS_UNKNOWN);
	} else if (t->open_ns) {
		tls_carried(sk, c, t);
	}
}

static __always_inline void tls_read(const struct sock *sk, struct conn *c, struct talk *t)
{
	tls_walked(sk, c, t, &t->in, tls_walk_read(t, c->service, c->phase == CONN_READING));
}

/* Note that the field belongs to a message. */
static __always_inline void side_says(struct talk_side *s)
{
	walk_message(&s->walk, s->walk.resumed ? 0 : s->walk.begun);
}

/* ---- one read ---- */

/* The first bytes are complete. Return their protocol, or prepare to see more of them. */
static __always_inline enum start start_said(struct talk *t)
{
	struct talk_side *s = &t->in;
	enum start start = start_of(s->field, t->old, !t->looks);

	if (start < START_PREFACE)
		return start;
	if (start == START_PREFACE) {
		s->stage = TALK_PREFACE;
		s->want = PREFACE_BYTES;
	} else if (start == START_PROXY) {
		s->stage = TALK_PROXY;
		s->want = PROXY_BYTES;
	} else if (start == START_PROXY_LINE) {
		side_next(s, TALK_PROXY_LINE, 0, 1);
	} else if (start == START_OLD_RECORD) {
		side_next(s, TALK_OLD_RECORD, field_u16(s, 3), TLS_HEADER);
	} else {
		s->stage = TALK_FRAME;
		s->want = FRAME_HEADER;
		t->frames = 0;
	}
	return START_NOT_YET;
}

static __always_inline enum start frame_said(struct talk *t)
{
	struct talk_side *s = &t->in;

	s->walk.begun = 0;
	if (!is_frame(s->field))
		return START_OTHER;
	if (++t->frames > 1)
		return START_HTTP2;
	side_next(s, TALK_FRAME, (__u32)s->field[0] << 16 | (__u32)s->field[1] << 8 | s->field[2],
		  FRAME_HEADER);
	return START_NOT_YET;
}

/*
 * Return the bytes up to the line's end, of @room or STEP_BYTES; 0: the end is not among them. No
 * loop, as in walk.h.
 */
static __always_inline __u32 line_length(const __u8 *f, __u32 room)
{
	if (f[0] == '\n')
		return 1;
	if (room > 1 && f[1] == '\n')
		return 2;
	if (room > 2 && f[2] == '\n')
		return 3;
	if (room > 3 && f[3] == '\n')
		return 4;
	if (room > 4 && f[4] == '\n')
		return 5;
	if (room > 5 && f[5] == '\n')
		return 6;
	if (room > 6 && f[6] == '\n')
		return 7;
	return room > 7 && f[7] == '\n' ? 8 : 0;
}

/* Treat the rest of a line as a field: its length shows only at its end. */
static __always_inline enum step line_step(struct talk_side *s)
{
	struct walk *w = &s->walk;
	__u32 room = w->count - w->at, used;

	if (!room || !bytes_more(&w->bytes))
		return STEP_END;
	if (room > w->bytes.left)
		room = w->bytes.left;
	if (room > STEP_BYTES)
		room = STEP_BYTES;
	barrier_var(room);
	room &= 2 * STEP_BYTES - 1;
	if (bpf_probe_read_user(s->field, room, (void *)w->bytes.at))
		return STEP_END;
	used = line_length(s->field, room);
	side_pass(s, used ? used : room);
	return used ? STEP_FIELD : STEP_ON;
}

/* A field of the client's is complete. */
static __always_inline enum start field_said(struct talk *t)
{
	struct talk_side *s = &t->in;

	switch (s->stage) {
	case TALK_START:
		return start_said(t);
	case TALK_PREFACE:
		return is_preface(s) ? START_HTTP2 : START_OTHER;
	case TALK_PROXY_LINE:
		side_next(s, TALK_START, 0, START_BYTES);
		return START_NOT_YET;
	case TALK_PROXY:
		if (!is_proxy(s))
			return START_OTHER;
		side_next(s, TALK_START, field_u16(s, 14), START_BYTES);
		return START_NOT_YET;
	case TALK_FRAME:
		return frame_said(t);
	}
	/* The field after an old record. */
	s->walk.begun = 0;
	return tls_is_header(s->field) ? START_OLD_TLS : START_OTHER;
}

/* The read is over in the middle of a field. Decide what the connection may still become. */
static __always_inline enum start start_ends(struct talk *t)
{
	struct talk_side *s = &t->in;
	bool whole = s->walk.at == s->walk.count;

	if (s->stage == TALK_PROXY_LINE || s->stage == TALK_PROXY)
		return whole ? START_NOT_YET : START_OTHER;
	if (s->stage == TALK_FRAME)
		s->walk.begun = 0;
	if (!whole || (s->stage == TALK_START && t->looks))
		return START_OTHER;
	if (s->stage == TALK_OLD_RECORD)
		return START_OLD_TLS;
	if (s->stage == TALK_FRAME && !s->skip && !s->have)
		return START_HTTP2;
	if (s->stage == TALK_FRAME && !t->frames)
		return START_OTHER;
	if (s->have || s->stage == TALK_FRAME)
		side_says(s);
	return START_NOT_YET;
}

WALK_STEP long start_step(__u32 i, struct talk **talk)
{
	struct talk *t = *talk;
	enum step step = t->in.stage == TALK_PROXY_LINE ? line_step(&t->in) : side_step(&t->in);

	if (step == STEP_FIELD)
		t->start = field_said(t);
	return step == STEP_END || t->start != START_NOT_YET;
}

static __always_inline enum start start_steps(struct talk *t)
{
	t->start = START_NOT_YET;
	WALK(t, SPEAKS_STEPS, SPEAKS_FEW, start_step);
	return t->start == START_NOT_YET ? start_ends(t) : t->start;
}

/* Walk on, and return the protocol. A separate function like arrival_place(). */
#ifdef WALK_CALLS
int start_walk(struct talk *t);
#else
#define start_walk(t) start_steps(t)
#endif

/* The first record's header is complete. */
static __always_inline void tls_begins(const struct sock *sk, struct conn *c, struct talk *t,
				       __u64 arrival_ns)
{
	__u64 since_ns = exchange_cancel(sk, c);

	t->begun_ns = t->in.walk.resumed ? since_ns : arrival_ns;
	becomes_tls(c);
	tls_start(t);
}

/* Follow the connection's streams. Those of an older one whose preface was not seen are followed from some frame on. */
static __always_inline void becomes_http2(const struct sock *sk, struct conn *c,
					  const struct talk *t, bool http)
{
	__u32 before = t->in.stage == TALK_PREFACE ? t->in.walk.at : 0;
	enum counter counter = COUNTER_MULTIPLEXED;

	if (http && before && streams_begin(sk, c, before))
		counter = COUNTER_HTTP2;
	else if (http && !c->established_ns && streams_begin_older(sk, c, before))
		counter = COUNTER_HTTP2_OLDER;
	else if (!http && BESIDE)
		counter = beside_begin(sk, c, before);
	becomes_opaque(sk, c, counter);
}

/* Another read has not shown the protocol. Return whether the next one cannot either. @http: as below. */
static __always_inline bool looks_over(struct conn *c, bool http)
{
	return ++c->looks >= (http && !c->established_ns ? SPEAKS_LOOKS_OLDER : SPEAKS_LOOKS);
}

static __always_inline void start_becomes(const struct sock *sk, struct conn *c, struct talk *t,
					  enum start start, bool http)
{
	if (start == START_HTTP2) {
		becomes_http2(sk, c, t, http);
	} else if (start == START_OLD_TLS) {
		becomes_tls(c);
		becomes_opaque(sk, c, COUNTER_TLS_UNKNOWN);
	} else if (start == START_HTTP1) {
		c->marks |= MARK_SETTLED | MARK_HTTP1;
		side_says(&t->in);
	} else if (start == START_OTHER) {
		side_next(&t->in, TALK_START, 0, START_BYTES);
		side_says(&t->in);
		if (looks_over(c, http))
			c->marks |= MARK_SETTLED;
	}
}

/* Count a connection whose bytes cannot be found: another call or a kernel thread makes io_uring's reads. */
static __always_inline void speaks_unseen(const struct conn *c)
{
	struct service_slot *slot = slot_of(c->service);

	if (slot && !c->looks)
		count_atomic(slot, COUNTER_UNRECOGNISED, 1);
}

/*
 * A read of an older connection seems to be a frame of WebSocket's. Count the connection at the second one: other
 * protocols have such a read by chance. Masks differ (RFC 6455, 5.3), but the same message of another protocol may come
 * again. With --http the frames are followed (older_pushes.h).
 */
static __always_inline void speaks_frame(struct conn *c, __u16 mask)
{
	struct service_slot *slot = slot_of(c->service);

	if (config.http || c->frames >= 2 || (c->frames && mask == c->mask))
		return;
	c->mask = mask;
	c->frames++;
	if (slot && c->frames == 2)
		count_atomic(slot, COUNTER_PERHAPS_WEBSOCKET, 1);
}

/*
 * Return what the first bytes of the current read of @count bytes begin (enum start), with START_UNSEEN if they cannot
 * be seen, or START_FRAME. Fewer than START_BYTES decide nothing. @first: it is the first read. A separate function like
 * start_walk().
 */
__u32 start_look(__u32 count, __u32 old, __u32 first);

/*
 * Return the state of a connection that has none yet. NULL: not needed, because the first bytes of
 * its first read show the protocol, as on most connections, or because it is not worth following.
 */
static __always_inline struct talk *speaks_first(const struct sock *sk, struct conn *c, __u32 count,
						 bool http)
{
	__u32 start = start_look(count, !c->established_ns, !c->looks);
	struct talk *t;

	if (start & START_UNSEEN)
		speaks_unseen(c);
	if (start & START_FRAME)
		speaks_frame(c, start >> START_MASK);
	start &= START_UNSEEN - 1;
	if (start == START_HTTP1) {
		c->marks |= MARK_SETTLED | MARK_HTTP1;
		return NULL;
	}
	t = start == START_OTHER ? NULL : talk_new(sk);
	if (t)
		side_next(&t->in, TALK_START, 0, START_BYTES);
	else if (looks_over(c, http))
		c->marks |= MARK_SETTLED;
	return t;
}

/*
 * A read has returned @count bytes, the first of which arrived at @arrival_ns (0: not known).
 * Return the number of bytes before the first one of a message: all, if there is none. @http:
 * streams of HTTP/2 are followed.
 */
static __always_inline __u32 speaks_read(const struct sock *sk, struct conn *c, __u32 count,
					 __u64 now, __u64 arrival_ns, bool http)
{
	struct talk *t = talk_of(sk);
	enum start start;

	if (!t)
		t = speaks_first(sk, c, count, http);
	if (!t)
		return 0;
	walk_begin(&t->in, count, now);
	if (!(c->marks & MARK_TLS)) {
		t->old = !c->established_ns;
		t->looks = c->looks;
		start = start_walk(t);
		if (start == START_TLS && !WALK_FOLLOWS)
			start = START_OLD_TLS;
		if (start == START_TLS)
			tls_begins(sk, c, t, arrival_ns);
		else
			start_becomes(sk, c, t, start, http);
	}
	if (WALK_FOLLOWS && is_undecided(t))
		tls_decides(sk, c, t, false);
	if (WALK_FOLLOWS && (c->marks & (MARK_TLS | MARK_SETTLED)) == MARK_TLS)
		tls_read(sk, c, t);
	return t->in.walk.message < count ? t->in.walk.message : count;
}

/* The kind of a write. */
enum spoken {
	SPOKEN_NOTHING, /* of a message */
	SPOKEN_MESSAGE,
	SPOKEN_UNTIMED, /* of a message, perhaps not its first bytes */
};

/* A write of @count bytes. */
static __always_inline enum spoken speaks_wrote(const struct sock *sk, struct conn *c, __u32 count,
						__u64 now)
{
	struct talk *t = talk_of(sk);

	if (!t)
		return SPOKEN_MESSAGE;
	if (!WALK_FOLLOWS || !(c->marks & MARK_TLS)) {
		/* This write answers the request: end the field that the request began. */
		if (c->phase == CONN_READING && t->in.stage <= TALK_PREFACE && t->in.have) {
			side_next(&t->in, TALK_START, 0, START_BYTES);
			c->looks++;
		}
		return SPOKEN_MESSAGE;
	}
	walk_begin(&t->out, count, now);
	tls_walked(sk, c, t, &t->out, tls_walk_wrote(t));
	if (is_undecided(t) && !tls_decides(sk, c, t, c->phase == CONN_READING))
		return SPOKEN_NOTHING;
	if (c->marks & MARK_MULTIPLEXED || t->out.walk.message >= count)
		return SPOKEN_NOTHING;
	return t->out.walk.untimed ? SPOKEN_UNTIMED : SPOKEN_MESSAGE;
}

#endif
