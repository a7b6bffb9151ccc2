/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Calls of a service's processes to their upstreams, on the connections that these processes open (docs/measurement.md,
 * "Calls"). A call begins with the first write after a read, and its response with the first read after that. Connections
 * that cannot be cut so are counted, and never timed. Neighbours: calls.bpf.c (the programs), front.h (who calls whom).
 */
#ifndef BPF_TCP_CALLS_H
#define BPF_TCP_CALLS_H

#include "service.h"
#include "tcp/connection/arrival.h"
#include "tcp/connection/bytes.h"
#include "tcp/connection/front.h"
#include "tcp/tls/tls.h"
#include "wire/call.h"
#include "wire/event.h"

enum call_phase {
	CALL_NEW,	/* nothing was written yet */
	CALL_JOINED,	/* it is older, and what is under way is not known */
	CALL_SHAKING,	/* TLS's handshake */
	CALL_SHAKEN,	/* the first message in TLS was written */
	CALL_WAITING,	/* a request was written */
	CALL_ANSWERED,	/* a response has begun, or one that is not followed */
	CALL_OVERTAKEN, /* the response was read before the write of its request returned */
	CALL_IGNORED,	/* it cannot be cut into calls, or is over */
};

enum call_flag {
	CALL_TLS = 1 << 0,
	CALL_HTTP = 1 << 1,
	CALL_MORE = 1 << 2,	/* unread bytes were left after its latest read */
	CALL_COMMANDS = 1 << 3, /* the latest call began with a command of Redis */
	CALL_SECURED = 1 << 4,	/* TLS began after words in clear, as those of databases do */
	CALL_SHORT = 1 << 5,	/* the latest call may be a database's farewell in TLS */
	CALL_NUMBERED = 1 << 6, /* its calls are numbered as the upstream's exchanges are */
};

/* Older connections are looked at this many times for frames of HTTP/2. */
#define CALL_LOOKS 4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff {
	char cb[48];
};

struct tcp_skb_cb {
	__u32 ack_seq;
};
#pragma clang attribute pop

struct call_conn {
	__u64 begin_ns; /* of connect(); then of the call's first write */
	__u64 last_write_ns;
	__u64 last_read_ns;
	__u64 epoch; /* when the response began */
	__u32 row;
	__u32 begin_seq; /* the sequence number of the request's first byte */
	__u32 end_seq;	 /* after the last byte whose write has returned */
	__u16 bucket;	 /* 1 + that of `whole` which counts the call; 0: none does */
	__u8 phase;	 /* enum call_phase */
	__u8 flags;	 /* enum call_flag */
	__u16 looks;	 /* still to be taken */
	__u16 ahead;	 /* so many bytes of length are ahead of each message; 0: not known to be */
	__u32 service;	 /* of the process that has opened it */
	__u32 flow_hash;
	__u32 index; /* of the next call on it, from 0 */
};

/* The sockets of services' processes that lead to other places. */
struct call_conns_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call_conn);
};

/* The rows of places; with --calls there are CALL_ROWS. */
struct call_places_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct call_place);
	__type(value, __u32);
};

DECLARE_ARRAY(call_rows, struct call_row, 1, 0);

extern struct call_conns_map call_conns SEC(".maps");
extern struct call_places_map call_places SEC(".maps");
extern __u32 call_rows_taken;

static __always_inline void call_add(const struct call_conn *c, enum call_count count, __u64 n)
{
	__u32 row = c->row;
	struct call_row *r = bpf_map_lookup_elem(&call_rows, &row);

	if (r)
		__sync_fetch_and_add(&r->counts[count], n);
}

/* The connection cannot be cut into calls, for the reason that @count counts. */
static __always_inline void call_ignore(struct call_conn *c, enum call_count count)
{
	if (c->phase == CALL_WAITING)
		call_add(c, CALLS_GIVEN_UP, 1);
	call_add(c, count, 1);
	c->phase = CALL_IGNORED;
}

/* ---- the bytes of a write or read ---- */

enum call_kind {
	CALL_KIND_OTHER,
	CALL_KIND_HTTP,
	CALL_KIND_HTTP2,
	CALL_KIND_TLS,
	CALL_KIND_TUNNEL,
	CALL_KIND_UNSEEN,
};

#define CALL_HEAD 12

/* The first bytes, which are @have; the place of those after them. A length of two or four bytes may be alone in a buffer. */
struct call_look {
	struct bytes bytes;
	__u32 have;
	__u8 head[16];
};

/* A separate function, so that the verifier follows it once. Return 0. */
__noinline int call_look(struct call_look *ret_look, __u32 count)
{
	struct call_look look = {};

	if (!ret_look)
		return 0;
	bytes_begin(&look.bytes, count);
	for (int i = 0; i < 4 && !look.bytes.left; i++)
		if (!bytes_more(&look.bytes))
			break;
	if (look.bytes.left >= CALL_HEAD &&
	    !bpf_probe_read_user(look.head, CALL_HEAD, (void *)look.bytes.at))
		look.have = CALL_HEAD;
	else if (look.bytes.left >= TLS_HEADER &&
		 !bpf_probe_read_user(look.head, TLS_HEADER, (void *)look.bytes.at))
		look.have = TLS_HEADER;
	else if (look.bytes.left == 4 && !bpf_probe_read_user(look.head, 4, (void *)look.bytes.at))
		look.have = 4;
	else if (look.bytes.left == 2 && !bpf_probe_read_user(look.head, 2, (void *)look.bytes.at))
		look.have = 2;
	*ret_look = look;
	return 0;
}

static __always_inline bool call_is_letter(__u8 byte)
{
	return byte >= 'A' && byte <= 'Z';
}

static __always_inline enum call_kind call_kind_of(const struct call_look *look)
{
	const __u8 *head = look->head;

	if (look->have < TLS_HEADER)
		return CALL_KIND_UNSEEN;
	if (tls_is_header(head))
		return CALL_KIND_TLS;
	if (word_of(head) == word_of("PRI "))
		return CALL_KIND_HTTP2;
	if (word_of(head) == word_of("CONN"))
		return CALL_KIND_TUNNEL;
	return call_is_letter(head[0]) && call_is_letter(head[1]) && call_is_letter(head[2])
		       ? CALL_KIND_HTTP
		       : CALL_KIND_OTHER;
}

/* The largest frame that HTTP/2 allows without SETTINGS, and its last type (RFC 9113, 4.2 and 6). */
#define CALL_FRAME_LONGEST 16384
#define CALL_FRAME_TYPES   10

/* Return whether the bytes may be the header of a frame of HTTP/2. Then an older connection is taken for one. */
static __always_inline bool call_is_frame(const struct call_look *look)
{
	const __u8 *head = look->head;
	__u32 length = (__u32)head[0] << 16 | head[1] << 8 | head[2];

	return look->have == CALL_HEAD && length <= CALL_FRAME_LONGEST &&
	       head[3] < CALL_FRAME_TYPES && !(head[4] & ~0x2d) && !(head[5] & 0x80);
}

#define CALL_CHUNK 64
/* Of ClientHello so many bytes are searched. Of a longer one it is not known whether it offers HTTP/2. */
#define CALL_HELLO 4096
/* The name "h2" after its length, as in the list of ALPN (RFC 7301). */
#define CALL_ALPN_HTTP2 0x026832

struct call_hello {
	__u64 at;
	__u32 left;
	__u32 window;
	__u32 found;
	__u8 chunk[CALL_CHUNK];
};

static long call_hello_step(__u32 i, struct call_hello *hello)
{
	__u32 room = hello->left < CALL_CHUNK ? hello->left : CALL_CHUNK;
	__u32 window = hello->window, found = hello->found, differs;

	barrier_var(room);
	if (!room || room > CALL_CHUNK)
		return 1;
	__builtin_memset(hello->chunk, 0, sizeof(hello->chunk));
	if (bpf_probe_read_user(hello->chunk, room, (void *)hello->at)) {
		hello->found = 1;
		return 1;
	}
	/* After the last byte come zeros, which end no name. No branches, which the verifier would follow in all combinations. */
	for (__u32 j = 0; j < CALL_CHUNK; j++) {
		window = (window << 8 | hello->chunk[j]) & 0xffffff;
		differs = window ^ CALL_ALPN_HTTP2;
		barrier_var(differs);
		found |= (differs - 1) >> 31;
	}
	hello->window = window;
	hello->found = found;
	hello->at += room;
	hello->left -= room;
	return 0;
}

/*
 * Return whether ClientHello offers HTTP/2, or may do so: then what the server has chosen is not known. It is at @at, in
 * one buffer.
 */
__noinline int call_offers_http2(__u64 at, __u32 bytes)
{
	struct call_hello hello = {.at = at, .left = bytes};

	if (bytes > CALL_HELLO)
		return true;
	bpf_loop(CALL_HELLO / CALL_CHUNK, call_hello_step, &hello, 0);
	return hello.found;
}

/* In 1.3 an alert looks like a message of two bytes (docs/measurement.md, "TLS"). */
#define CALL_ALERT 19

/* Return whether a write begins with a message, instead of an alert or a part of a handshake. */
static __always_inline bool call_is_message(const struct call_look *look, __u32 count)
{
	const __u8 *head = look->head;
	__u32 length = (__u32)head[3] << 8 | head[4];

	return head[0] == TLS_APPLICATION_DATA &&
	       !(length == CALL_ALERT && count == CALL_ALERT + TLS_HEADER);
}

/*
 * Return whether a write takes leave, so that no response is to come: Terminate of PostgreSQL, COM_QUIT of MySQL, or
 * memcached's "quit".
 */
static __always_inline bool call_is_farewell(const struct call_look *look, __u32 count)
{
	const __u8 *head = look->head;

	if (!look->have)
		return false;
	if (count == 6)
		return word_of(head) == word_of("quit");
	return count == 5 && ((word_of(head) == word_of("X\0\0") && head[4] == 4) ||
			      (word_of(head) == word_of("\1\0\0") && head[4] == 1));
}

/* Their length, and what the ciphers of 1.3 and 1.2 add to it. */
#define CALL_FAREWELL 5

/* Return whether a message in TLS is as long as a farewell. */
static __always_inline bool call_is_short(__u32 count)
{
	__u32 added = count - CALL_FAREWELL - TLS_HEADER;

	return added == 1 + 16 || added == 8 + 16 || added == 16;
}

/* Return whether a write begins with a command of Redis: "*3\r\n$3\r\nSET". */
static __always_inline bool call_is_command(const struct call_look *look)
{
	const __u8 *head = look->head;
	bool more = look->have == CALL_HEAD && head[2] != '\r';

	if (look->have != CALL_HEAD || head[0] != '*' || head[1] < '1' || head[1] > '9')
		return false;
	return more ? head[3] == '\r' && head[5] == '$' : head[4] == '$';
}

/* Return whether that is one of those with which clients set up a connection. They are sent together, and all replies read. */
static __always_inline bool call_is_setup(const struct call_look *look)
{
	__u32 word = word_of(look->head + 8);

	return word == word_of("CLIE") || word == word_of("SELE") || word == word_of("AUTH") ||
	       word == word_of("HELL");
}

static __always_inline __u32 call_length(const struct call_look *look, __u32 ahead)
{
	__u32 two = (__u32)look->head[0] << 8 | look->head[1];

	return ahead == 2 ? two : two << 16 | (__u32)look->head[2] << 8 | look->head[3];
}

/*
 * Return how many bytes of length are ahead of the message that the write is, as with DNS (2) or Kafka and ZooKeeper (4).
 * 0: it is no such message. These protocols number their messages, and clients do not wait for one response before the next
 * request.
 */
static __always_inline __u32 call_ahead(const struct call_look *look, __u32 count)
{
	if (look->have >= 4 && call_length(look, 4) == count - 4)
		return 4;
	if (call_length(look, 2) != count - 2)
		return 0;
	/* Two bytes may be anything. A message of DNS has one question (RFC 1035, 4.1.1). */
	return look->have == 2 || (look->have == CALL_HEAD && !look->head[6] && look->head[7] == 1)
		       ? 2
		       : 0;
}

/* Return whether a write after a read is more than one message. */
static __always_inline bool call_is_several(const struct call_conn *c, const struct call_look *look,
					    __u32 count)
{
	__u32 ahead = c->ahead;

	return ahead && look->have >= ahead && count > ahead &&
	       call_length(look, ahead) < count - ahead;
}

/* Return whether a write begins with ClientHello. */
static __always_inline bool call_is_hello(const struct call_look *look)
{
	return look->have == CALL_HEAD && look->head[0] == TLS_HANDSHAKE &&
	       tls_is_header(look->head) && look->head[TLS_HEADER] == 1;
}

/* ---- samples ---- */

/*
 * Number the calls of a connection that is established now, as the upstream numbers its exchanges. So both hosts sample
 * the same ones. Of an older connection the number is not known.
 */
static __always_inline void call_number(const struct sock *sk, struct call_conn *c)
{
	struct flow flow = {};

	flow_of_client(&sk->__sk_common, &flow);
	c->flow_hash = flow_hash(&flow);
	c->flags |= CALL_NUMBERED;
}

/* Send the call whose response has begun, if it is sampled. */
static __always_inline void call_sample(const struct sock *sk, const struct call_conn *c, __u64 now)
{
	__u32 index = c->index - 1;
	struct call_event *e;

	if (!config.ring_bytes || !(c->flags & CALL_NUMBERED) ||
	    exchange_hash(c->flow_hash, index) >= sample_threshold || now < c->begin_ns)
		return;
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		sample_lost(c->service);
		return;
	}
	flow_of_client(&sk->__sk_common, &e->flow);
	e->index = index;
	e->service = c->service;
	e->pad = 0;
	e->begin_ns = c->begin_ns;
	e->answered_ns = now;
	bpf_ringbuf_submit(e, sample_wakeup());
}

/* ---- times ---- */

/* Return when TCP began to transmit the end of a write that has returned, like clock_written() of clock.h. */
static __always_inline __u64 call_written_ns(const struct tcp_sock *tp, const struct call_conn *c)
{
	__u64 ns = 0;

	if (bpf_core_field_exists(tp->tcp_clock_cache) && tp->snd_nxt == tp->write_seq)
		ns = tp->tcp_clock_cache;
	return ns > c->last_read_ns && ns > c->last_write_ns ? ns : bpf_ktime_get_ns();
}

static __always_inline bool call_has_unread(const struct sock *sk, const struct tcp_sock *tp)
{
	return unread_between(sk, tp->copied_seq, tp->rcv_nxt);
}

/* The response has begun. */
static __always_inline void call_answered(const struct sock *sk, struct call_conn *c, __u64 now)
{
	__u32 at = c->row;
	struct call_row *row = bpf_map_lookup_elem(&call_rows, &at);
	__u64 whole_ns = now > c->begin_ns ? now - c->begin_ns : 0;

	c->phase = CALL_ANSWERED;
	c->epoch = epoch;
	call_sample(sk, c, now);
	if (!row)
		return;
	__sync_fetch_and_add(&row->counts[CALLS_ANSWERED], 1);
	stage_add_shared(&row->wait, now > c->last_write_ns ? now - c->last_write_ns : 0);
	stage_add_shared(&row->whole, whole_ns);
	c->bucket = bucket_of(whole_ns) + 1;
}

/* More of the response was read. */
static __always_inline void call_goes_on(struct call_conn *c, __u64 now)
{
	__u32 at = c->row, before = c->bucket - 1, bucket;
	struct call_row *row = bpf_map_lookup_elem(&call_rows, &at);
	__u64 whole_ns = now > c->begin_ns ? now - c->begin_ns : 0;

	if (!c->bucket || !row || now < c->last_read_ns)
		return;
	if (c->epoch != epoch ||
	    (now - c->last_read_ns > config.quiet_ns && !(c->flags & CALL_MORE))) {
		call_add(c, c->epoch != epoch ? CALLS_CARRIED : CALLS_TRAILING, 1);
		c->bucket = 0;
		return;
	}
	bucket = bucket_of(whole_ns);
	barrier_var(before);
	if (before >= BUCKET_COUNT)
		return;
	if (bucket != before) {
		__sync_fetch_and_add(&row->whole.buckets[before], -1);
		__sync_fetch_and_add(&row->whole.buckets[bucket], 1);
	}
	__sync_fetch_and_add(&row->whole.sum_ns, now - c->last_read_ns);
	atomic_raise(&row->whole.max_ns, whole_ns);
	c->bucket = bucket + 1;
}

/* ---- writes and reads ---- */

static __always_inline void call_begins(const struct tcp_sock *tp, struct call_conn *c, __u32 bytes)
{
	c->begin_seq = tp->write_seq - bytes;
	c->begin_ns = c->last_write_ns = call_written_ns(tp, c);
	c->bucket = 0;
	c->index++;
	c->phase = CALL_WAITING;
	call_add(c, CALLS_BEGUN, 1);
}

/* The first message of TLS's handshake is written. */
static __always_inline void call_secures(struct call_conn *c, const struct call_look *look,
					 __u32 bytes)
{
	if (look->bytes.left < bytes || call_offers_http2(look->bytes.at, bytes)) {
		call_ignore(c, CALLS_PERHAPS_HTTP2);
		return;
	}
	/* Of the handshake's messages the upstream may count others than those that are calls here. */
	c->flags = (c->flags | CALL_TLS) & ~CALL_NUMBERED;
	c->phase = CALL_SHAKING;
}

/* Nothing was written before. */
static __always_inline void call_first_write(const struct tcp_sock *tp, struct call_conn *c,
					     __u32 bytes)
{
	struct call_look look;
	enum call_kind kind;

	(void)call_look(&look, bytes);
	c->ahead = call_ahead(&look, bytes);
	kind = bytes < TLS_HEADER || c->ahead ? CALL_KIND_OTHER : call_kind_of(&look);
	if (kind == CALL_KIND_UNSEEN) {
		call_ignore(c, CALLS_UNSEEN);
	} else if (kind == CALL_KIND_HTTP2) {
		call_ignore(c, CALLS_HTTP2);
	} else if (kind == CALL_KIND_TUNNEL) {
		call_ignore(c, CALLS_TUNNELS);
	} else if (kind == CALL_KIND_TLS) {
		call_secures(c, &look, bytes);
	} else if (!call_is_farewell(&look, bytes)) {
		c->flags |= kind == CALL_KIND_HTTP ? CALL_HTTP : 0;
		c->flags |= call_is_command(&look) ? CALL_COMMANDS : 0;
		call_begins(tp, c, bytes);
	}
}

/* The handshake goes on, or the first message begins. Tickets may come before the response to it. */
static __always_inline void call_shakes(struct call_conn *c, __u32 bytes)
{
	struct call_look look;

	(void)call_look(&look, bytes);
	if (!look.have || look.head[0] != TLS_APPLICATION_DATA)
		return;
	call_add(c, CALLS_HANDSHAKES, 1);
	c->phase = CALL_SHAKEN;
}

/* Look at an older connection, whose beginning was not seen. Numbered requests may already overlap on it. */
static __always_inline void call_look_again(struct call_conn *c, const struct call_look *look,
					    __u32 bytes)
{
	enum call_kind kind = call_kind_of(look);

	c->looks--;
	if (call_ahead(look, bytes))
		call_ignore(c, CALLS_OVERLAPPED);
	else if (kind == CALL_KIND_TLS)
		call_ignore(c, CALLS_PERHAPS_HTTP2);
	else if (kind == CALL_KIND_HTTP2 || call_is_frame(look))
		call_ignore(c, CALLS_HTTP2);
	else if (kind == CALL_KIND_TUNNEL)
		call_ignore(c, CALLS_TUNNELS);
	else if (kind == CALL_KIND_HTTP)
		c->flags |= CALL_HTTP;
}

/* Return whether a connection of a protocol that is not HTTP now changes to TLS. */
static __always_inline bool call_changes(struct call_conn *c, const struct call_look *look,
					 __u32 bytes)
{
	if (!call_is_hello(look))
		return false;
	if (c->phase == CALL_WAITING)
		call_add(c, CALLS_GIVEN_UP, 1);
	c->phase = CALL_ANSWERED;
	c->flags |= CALL_SECURED;
	call_secures(c, look, bytes);
	return true;
}

/* Look at a write after a read; return whether it begins a call. */
static __always_inline bool call_is_request(const struct sock *sk, struct call_conn *c, __u32 bytes)
{
	struct call_look look;

	if (c->flags & CALL_HTTP && !c->looks)
		return true;
	(void)call_look(&look, bytes);
	if (c->looks) {
		call_look_again(c, &look, bytes);
	} else if (c->flags & CALL_TLS) {
		if (!look.have || !tls_is_header(look.head))
			call_ignore(c, CALLS_UNSEEN);
		else if (!call_is_message(&look, bytes))
			return false;
	} else if (call_changes(c, &look, bytes)) {
		return false;
	}
	if (c->phase == CALL_IGNORED)
		return false;
	c->flags &= ~(CALL_COMMANDS | CALL_SHORT);
	if (c->flags & CALL_TLS)
		c->flags |= c->flags & CALL_SECURED && call_is_short(bytes) &&
					    sk->__sk_common.skc_state == TCP_ESTABLISHED
				    ? CALL_SHORT
				    : 0;
	else if (call_is_farewell(&look, bytes))
		return false;
	else if (call_is_command(&look))
		c->flags |= CALL_COMMANDS;
	else if (call_is_several(c, &look, bytes))
		call_ignore(c, CALLS_OVERLAPPED);
	else if (!c->ahead)
		c->ahead = call_ahead(&look, bytes);
	return c->phase != CALL_IGNORED;
}

/*
 * Return whether the unread bytes are of an earlier response than that to the request from @begin on. The last read has
 * left such bytes, or the peer had nothing of this request when it sent them. Other bytes are this request's response, which
 * may come before its write has returned.
 */
static __always_inline bool call_is_behind(const struct sock *sk, const struct call_conn *c,
					   __u32 begin)
{
	const struct sk_buff *first = BPF_CORE_READ(sk, sk_receive_queue.next);
	const struct tcp_skb_cb *segment = (const void *)&first->cb;

	return c->flags & CALL_MORE || !seq_after(BPF_CORE_READ(segment, ack_seq), begin);
}

/* A write after a read. */
static __always_inline void call_next_write(const struct sock *sk, const struct tcp_sock *tp,
					    struct call_conn *c, __u32 bytes)
{
	if (!call_is_request(sk, c, bytes))
		return;
	/* After the peer's FIN that may be its farewell, and no response is to come. */
	if (sk->__sk_common.skc_state == TCP_ESTABLISHED && call_has_unread(sk, tp) &&
	    call_is_behind(sk, c, tp->write_seq - bytes))
		call_ignore(c, CALLS_OVERLAPPED);
	else
		call_begins(tp, c, bytes);
}

/*
 * More of a request is written. If that is another command or message, each response may be taken for that of the next
 * one. For clients that share a connection do not read all responses before they write.
 */
static __always_inline void call_write_goes_on(const struct tcp_sock *tp, struct call_conn *c,
					       __u32 bytes)
{
	struct call_look look;

	if (!(c->flags & (CALL_HTTP | CALL_TLS))) {
		(void)call_look(&look, bytes);
		if (call_changes(c, &look, bytes))
			return;
		if ((c->flags & CALL_COMMANDS && call_is_command(&look) && !call_is_setup(&look)) ||
		    (c->ahead && c->ahead == call_ahead(&look, bytes))) {
			call_ignore(c, CALLS_OVERLAPPED);
			return;
		}
	}
	c->last_write_ns = call_written_ns(tp, c);
}

static __always_inline void call_written(const struct sock *sk, struct call_conn *c, __u32 bytes)
{
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);

	if (!tp)
		return;
	c->end_seq = tp->write_seq;
	if (c->phase == CALL_NEW)
		call_first_write(tp, c, bytes);
	else if (c->phase == CALL_SHAKING)
		call_shakes(c, bytes);
	else if (c->phase == CALL_WAITING)
		call_write_goes_on(tp, c, bytes);
	else if (c->phase == CALL_OVERTAKEN)
		c->phase = CALL_ANSWERED;
	else if (c->phase == CALL_ANSWERED)
		call_next_write(sk, tp, c, bytes);
}

/* Return whether the connection carries something else from now on: "HTTP/1.1 101". */
static __always_inline bool call_switches(__u32 bytes)
{
	struct call_look look;

	(void)call_look(&look, bytes);
	return look.have == CALL_HEAD && word_of(look.head) == word_of("HTTP") &&
	       look.head[9] == '1' && look.head[10] == '0' && look.head[11] == '1';
}

/* The first read after a request. If the peer has not got any of the request, it is no response to it. */
static __always_inline void call_first_read(const struct sock *sk, const struct tcp_sock *tp,
					    struct call_conn *c, __u32 bytes, __u64 now)
{
	if (!seq_after(tp->snd_una, c->begin_seq))
		call_ignore(c, CALLS_OVERLAPPED);
	else if (c->flags & CALL_HTTP && call_switches(bytes))
		call_ignore(c, CALLS_TUNNELS);
	else
		call_answered(sk, c, now);
}

static __always_inline void call_read(const struct sock *sk, struct call_conn *c, __u32 bytes)
{
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock((void *)sk);
	__u64 now = bpf_ktime_get_ns();

	if (!tp)
		return;
	/* A write is under way, and has not returned. */
	if (c->phase == CALL_NEW && tp->write_seq != c->end_seq) {
		call_ignore(c, CALLS_UNSEEN);
	} else if (c->phase == CALL_JOINED || c->phase == CALL_SHAKEN) {
		c->phase = CALL_ANSWERED;
		c->bucket = 0;
	} else if (c->phase == CALL_WAITING) {
		call_first_read(sk, tp, c, bytes, now);
	} else if (c->phase == CALL_ANSWERED && tp->write_seq != c->end_seq) {
		call_add(c, CALLS_UNTIMED, 1);
		c->index++;
		c->phase = CALL_OVERTAKEN;
	} else if (c->phase == CALL_ANSWERED) {
		call_goes_on(c, now);
	}
	c->last_read_ns = now;
	c->flags = call_has_unread(sk, tp) ? c->flags | CALL_MORE : c->flags & ~CALL_MORE;
}

#endif
