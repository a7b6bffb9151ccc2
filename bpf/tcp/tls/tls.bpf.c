// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Walks through the records of TLS, and through its two hellos. See tls.h. */

/* bpf_loop() exists on all kernels where TLS is followed (WALK_FOLLOWS of walk.h). */
#define WALK_CALLS

#include "tls.h"
#include "tcp/connection/clear.h"

/* Limits of one read or write: 64 records are 1 MiB; a hello has about 20 fields. */
#define TLS_FIRST_STEPS 2
#define TLS_HELLO_STEPS 48
#define TLS_STEPS	64

#define TLS_HELLO_FIXED	 38 /* type, length, version and random, before session_id */
#define TLS_ALERT_LENGTH 19 /* 1.3: alert, its true type, authentication */
/* 1.3: Finished: header, hash of 32 or 48 bytes, true type and authentication. */
#define TLS_FINISHED_SHA256 53
#define TLS_FINISHED_SHA384 69
/* 1.2: the longest Finished of any cipher; every hello is longer. */
#define TLS_FINISHED_LONGEST 96
/* 1.3: EncryptedExtensions without any: type, lengths, true type and authentication. */
#define TLS_EXTENSIONS_NONE    23
#define TLS_EXTENSIONS_LONGEST (TLS_EXTENSIONS_NONE + 64)

#define EXTENSION_ALPN 16

#define TLS_OVER_1_2 (TLS_CLIENT_FINISHED | TLS_SERVER_FINISHED)

/* ---- ClientHello and ServerHello, for ALPN (RFC 7301) ---- */

static __always_inline void hello_end(struct talk_side *s)
{
	side_next(s, TALK_RECORD, s->rest, TLS_HEADER);
}

/* Go to the next field, unless the record ends before it. */
static __always_inline bool hello_next(struct talk_side *s, __u8 stage, __u32 skip, __u8 want)
{
	if (skip + want <= s->rest) {
		side_next(s, stage, skip, want);
		return true;
	}
	hello_end(s);
	return false;
}

/* Go to the next extension, after @skip bytes of this one. */
static __always_inline void hello_extension(struct talk *t, struct talk_side *s, bool out,
					    __u32 skip)
{
	__u32 length = skip + 4;

	if (s->extensions < length) {
		t->flags |= out ? TLS_CHOICE_KNOWN : TLS_OFFER_KNOWN;
		hello_end(s);
	} else if (hello_next(s, TALK_HELLO_EXTENSION, skip, 4)) {
		s->extensions -= length;
	}
}

/*
 * Length of the extension if it holds only "h2", "http/1.1" or both, by which these are
 * distinguished.
 */
#define ALPN_HTTP2 5
#define ALPN_HTTP1 11
#define ALPN_BOTH  14

static __always_inline void hello_alpn(struct talk_side *s, __u32 length)
{
	if (length == ALPN_HTTP2 || length == ALPN_HTTP1 || length == ALPN_BOTH)
		hello_next(s, TALK_HELLO_ALPN, 0, length);
	else
		hello_end(s);
}

/* Read the first name, after its length. Of two names the other one is then known. */
static __always_inline void hello_names(struct talk *t, struct talk_side *s, bool out)
{
	bool http2 = s->field[2] == 2 && s->field[3] == 'h' && s->field[4] == '2';
	bool http1 =
		s->field[2] == 8 && s->field[3] == 'h' && s->field[4] == 't' && s->field[7] == '/';
	bool both = s->want == ALPN_BOTH;

	hello_end(s);
	if (!http2 && !http1)
		return;
	t->flags |= out ? TLS_CHOICE_KNOWN : TLS_OFFER_KNOWN;
	if (http2 || both)
		t->flags |= out ? TLS_CHOSE_HTTP2 : TLS_OFFERS_HTTP2;
	if (http1 || both)
		t->flags |= out ? TLS_CHOSE_HTTP1 : TLS_OFFERS_HTTP1;
}

static __always_inline void hello_field(struct talk *t, struct talk_side *s, bool out)
{
	switch (s->stage) {
	case TALK_HELLO_ID:
		if (out) /* after session_id come one cipher and one method */
			hello_next(s, TALK_HELLO_EXTENSIONS, s->field[0] + 3, 2);
		else
			hello_next(s, TALK_HELLO_CIPHERS, s->field[0], 2);
		break;
	case TALK_HELLO_CIPHERS:
		hello_next(s, TALK_HELLO_METHODS, field_u16(s, 0), 1);
		break;
	case TALK_HELLO_METHODS:
		hello_next(s, TALK_HELLO_EXTENSIONS, s->field[0], 2);
		break;
	case TALK_HELLO_EXTENSIONS:
		s->extensions = field_u16(s, 0);
		hello_extension(t, s, out, 0);
		break;
	case TALK_HELLO_EXTENSION:
		if (field_u16(s, 0) == EXTENSION_ALPN)
			hello_alpn(s, field_u16(s, 2));
		else
			hello_extension(t, s, out, field_u16(s, 2));
		break;
	default:
		hello_names(t, s, out);
	}
}

/* ---- the agreed protocol ---- */

/* 1.3: EncryptedExtensions grows by the name that the server has chosen; the growth shows which name it is. */
static __always_inline enum tls_carries carries_by_length(const struct talk *t)
{
	__u32 extra = t->extensions - TLS_EXTENSIONS_NONE;

	/*
	 * 9 or 15 for the name, and 4 each for server_name and early_data. Longer ones include
	 * groups of unknown size.
	 */
	if (extra == 9 || extra == 13 || extra == 17)
		return TLS_CARRIES_HTTP2;
	if (extra == 15 || extra == 19 || extra == 23)
		return TLS_CARRIES_HTTP1;
	/* All but names are of even length. */
	if (!(extra & 1) && t->extensions <= TLS_EXTENSIONS_LONGEST)
		return TLS_CARRIES_ANY;
	return t->flags & TLS_OFFERS_HTTP1 ? TLS_CARRIES_UNKNOWN : TLS_CARRIES_HTTP2;
}

static __always_inline enum tls_carries tls_carries(const struct talk *t)
{
	if (t->flags & TLS_STRANGE)
		return TLS_CARRIES_UNKNOWN;
	if (!(t->flags & TLS_1_3)) {
		if (t->flags & TLS_CHOSE_HTTP2)
			return TLS_CARRIES_HTTP2;
		if (t->flags & TLS_CHOSE_HTTP1)
			return TLS_CARRIES_HTTP1;
		return t->flags & (TLS_CHOICE_KNOWN | TLS_OFFER_KNOWN) ? TLS_CARRIES_ANY
								       : TLS_CARRIES_UNKNOWN;
	}
	if (!(t->flags & TLS_OFFER_KNOWN))
		return TLS_CARRIES_UNKNOWN;
	if (t->flags & TLS_OFFERS_HTTP2)
		return carries_by_length(t);
	return t->flags & TLS_OFFERS_HTTP1 ? TLS_CARRIES_HTTP1 : TLS_CARRIES_ANY;
}

/* ---- the handshake ---- */

static __always_inline void tls_opens(struct talk *t, __u64 now)
{
	t->flags |= TLS_OPEN;
	t->open_ns = now;
}

/* Look into a hello of the server, or the first one of the client. */
static __always_inline void handshake_hello(struct talk *t, struct talk_side *s, __u32 length,
					    __u32 flag)
{
	t->flags |= flag;
	s->rest = length;
	hello_next(s, TALK_HELLO_ID, TLS_HELLO_FIXED, 1);
}

/* An encrypted record of the client during the handshake. */
static __always_inline void client_encrypted(struct talk *t, struct talk_side *s, __u32 length)
{
	if (!(t->flags & TLS_1_3)) {
		/* 1.2: a client may send its request before the server has finished (RFC 7918); 1.3: early data. */
		if (t->flags & TLS_CLIENT_FINISHED)
			s->message = true;
		else
			t->flags |= TLS_STRANGE;
		return;
	}
	t->client_ns = s->walk.now;
	if (length == TLS_FINISHED_SHA256 || length == TLS_FINISHED_SHA384)
		tls_opens(t, s->walk.now);
	else
		t->client_records++; /* a certificate */
}

static __always_inline void server_encrypted(struct talk *t, __u32 length)
{
	if (!(t->flags & TLS_1_3)) {
		t->flags |= TLS_1_3;
		t->extensions = length;
	} else if (t->client_records == 1) {
		/* The client has answered the server's flight, all in one record. */
		tls_opens(t, t->client_ns);
	} else if (t->client_records) {
		t->flags |= TLS_STRANGE;
	}
}

static __always_inline void tls_handshake(struct talk *t, struct talk_side *s, __u8 type,
					  __u32 length, bool out)
{
	__u32 hello = out ? TLS_SERVER_HELLO : TLS_CLIENT_HELLO;
	__u32 cipher = out ? TLS_SERVER_CIPHER : TLS_CLIENT_CIPHER;

	if (type == TLS_CHANGE_CIPHER_SPEC)
		t->flags |= cipher;
	if (type != TLS_HANDSHAKE)
		return;
	if (!(t->flags & hello))
		handshake_hello(t, s, length, hello);
	else if (t->flags & cipher && length <= TLS_FINISHED_LONGEST)
		t->flags |= out ? TLS_SERVER_FINISHED : TLS_CLIENT_FINISHED;
	if ((t->flags & (TLS_OVER_1_2 | TLS_1_3)) == TLS_OVER_1_2)
		tls_opens(t, s->walk.now);
}

/* ---- tickets of 1.3, which are encrypted like a response ---- */

/* Learn from a connection whose first request came after all tickets. */
static __always_inline void tickets_learn(struct tickets *known, const struct talk *t)
{
	if (!t->tickets) {
		known->none = 1;
		return;
	}
	for (__u32 i = 0; i < TICKET_LENGTHS; i++) {
		if (known->length[i] == t->ticket) {
			if (known->count[i] < t->tickets)
				known->count[i] = t->tickets;
			return;
		}
	}
	if (known->next & 1) {
		known->length[1] = t->ticket;
		known->count[1] = t->tickets;
	} else {
		known->length[0] = t->ticket;
		known->count[0] = t->tickets;
	}
	known->next++;
}

/* The first request begins to be read. */
static __always_inline void tickets_asked(__u32 service, struct talk *t)
{
	__u32 index = service_index(service);
	struct tickets *known = bpf_map_lookup_elem(&tickets, &index);

	if (!known)
		return;
	if (t->flags & TLS_TOGETHER)
		t->known = *known;
	else
		tickets_learn(known, t);
}

/* Return how many tickets of this length come in a row. */
static __always_inline __u32 tickets_known(const struct talk *t, __u32 length)
{
	if (length == t->known.length[0])
		return t->known.count[0];
	return length == t->known.length[1] ? t->known.count[1] : 0;
}

/* Return whether a record of this length before the first response is a ticket. */
static __always_inline bool is_ticket(struct talk *t, struct talk_side *s, __u32 length)
{
	__u32 count;

	if (!(t->flags & TLS_ASKED))
		return true;
	if (!(t->flags & TLS_TOGETHER))
		return false;
	count = tickets_known(t, length);
	/* In the middle of a request's record nothing of it is understood yet. */
	if (count > t->tickets || t->in.skip || t->in.have)
		return true;
	/*
	 * It is surely none if the service sends none, if all tickets were seen, or if those seen
	 * have another length. Otherwise the response is not timed.
	 */
	s->walk.untimed = !count && !t->tickets && !(t->known.none && !t->known.length[0]);
	return false;
}

/* ---- records once the handshake is over ---- */

static __always_inline void client_record(struct talk *t, struct talk_side *s, __u32 length)
{
	/* It is taken for an alert by its length: no request begins with it. */
	if (t->flags & TLS_1_3 && length == TLS_ALERT_LENGTH && !t->reading)
		return;
	s->message = true;
	t->reading = true;
	if (t->client_ns == s->walk.now && !(t->flags & TLS_ASKED))
		t->flags |= TLS_TOGETHER;
	t->flags |= TLS_ASKED;
}

static __always_inline void server_record(struct talk *t, struct talk_side *s, __u32 length)
{
	if (!(t->flags & TLS_1_3)) {
		s->message = true;
		return;
	}
	if (length == TLS_ALERT_LENGTH)
		return;
	if (!(t->flags & TLS_ANSWERED) && is_ticket(t, s, length)) {
		t->ticket = length;
		t->tickets += t->tickets < 255;
		return;
	}
	t->flags |= TLS_ANSWERED;
	s->message = true;
}

/* Handle a complete header of a record. False: it is none. */
static __always_inline bool tls_record(struct talk *t, struct talk_side *s, bool out)
{
	__u32 length = field_u16(s, 3);
	__u8 type = s->field[0];
	bool encrypted = type == TLS_APPLICATION_DATA, open = t->flags & TLS_OPEN;

	if (!tls_is_header(s->field))
		return false;
	side_next(s, TALK_RECORD, length, TLS_HEADER);
	s->message = false;
	if (!open && !encrypted)
		tls_handshake(t, s, type, length, out);
	else if (!open && !out)
		client_encrypted(t, s, length);
	else if (!open)
		server_encrypted(t, length);
	else if (encrypted && !out)
		client_record(t, s, length);
	if (out && encrypted && t->flags & TLS_OPEN)
		server_record(t, s, length);
	if (s->message)
		walk_message(&s->walk, s->walk.begun);
	return true;
}

static __always_inline long records_step(struct talk *t, struct talk_side *s, bool out)
{
	enum step step = STEP_END;

	if (s->stage == TALK_RECORD)
		step = side_step(s);
	if (step == STEP_FIELD && !tls_record(t, s, out)) {
		t->flags |= TLS_LOST;
		return 1;
	}
	return step == STEP_END;
}

WALK_STEP long records_read(__u32 i, struct talk **t)
{
	return records_step(*t, &(*t)->in, false);
}

WALK_STEP long records_wrote(__u32 i, struct talk **t)
{
	return records_step(*t, &(*t)->out, true);
}

static __always_inline long hello_step(struct talk *t, struct talk_side *s, bool out)
{
	enum step step = STEP_END;

	if (s->stage > TALK_RECORD)
		step = side_step(s);
	if (step == STEP_FIELD)
		hello_field(t, s, out);
	return step == STEP_END;
}

WALK_STEP long hello_read(__u32 i, struct talk **t)
{
	return hello_step(*t, &(*t)->in, false);
}

WALK_STEP long hello_wrote(__u32 i, struct talk **t)
{
	return hello_step(*t, &(*t)->out, true);
}

/* ---- the functions of tls.h ---- */

__noinline int tls_start(struct talk *t)
{
	if (!t)
		return 0;
	side_next(&t->out, TALK_RECORD, 0, TLS_HEADER);
	tls_record(t, &t->in, false);
	return 0;
}

/* Only the first record may be a hello. */
__noinline int tls_walk_read(struct talk *t, __u32 service, __u32 reading)
{
	struct walk *w;
	__u32 before;

	if (!t)
		return 0;
	w = &t->in.walk;
	before = t->flags;
	t->reading = reading;
	WALK(t, TLS_HELLO_STEPS, 0, hello_read);
	if (t->in.stage > TALK_RECORD && w->at < w->count)
		hello_end(&t->in);
	WALK(t, TLS_STEPS, 0, records_read);
	if ((t->flags & ~before) & TLS_ASKED && t->flags & TLS_1_3)
		tickets_asked(service, t);
	return !(t->flags & TLS_LOST) && w->at == w->count;
}

__noinline int tls_walk_wrote(struct talk *t)
{
	struct walk *w;

	if (!t)
		return 0;
	w = &t->out.walk;
	if (!(t->flags & TLS_SERVER_HELLO))
		WALK(t, TLS_FIRST_STEPS, 0, records_wrote);
	WALK(t, TLS_HELLO_STEPS, 0, hello_wrote);
	if (t->out.stage > TALK_RECORD && w->at < w->count)
		hello_end(&t->out);
	WALK(t, TLS_STEPS, 0, records_wrote);
	return !(t->flags & TLS_LOST) && w->at == w->count;
}

/* Return @carries, or that the plain text will show it. */
static __always_inline int tls_shown(struct talk *t, int carries, __u32 service)
{
	if (!config.tls)
		return carries;
	if (carries == TLS_CARRIES_HTTP2 && clear_hides(service, COUNTER_MULTIPLEXED))
		return TLS_CARRIES_HIDDEN;
	if (carries == TLS_CARRIES_UNKNOWN && clear_hides(service, COUNTER_TLS_UNKNOWN)) {
		t->flags |= TLS_UNDECIDED;
		return TLS_CARRIES_ANY;
	}
	return carries;
}

__noinline int tls_opened(struct talk *t, __u32 service)
{
	if (!t)
		return TLS_CARRIES_UNKNOWN;
	if (t->begun_ns && t->open_ns >= t->begun_ns)
		span_add(service, SPAN_TLS_HANDSHAKE, t->open_ns - t->begun_ns);
	t->open_ns = 0;
	return tls_shown(t, tls_carries(t), service);
}
