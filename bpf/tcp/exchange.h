/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The meaning of arrivals, reads and writes for an exchange: the rules of docs/measurement.md. Each set of hooks
 * includes these rules: exchange.bpf.c, exchange_fexit.bpf.c.
 */
#ifndef BPF_TCP_EXCHANGE_H
#define BPF_TCP_EXCHANGE_H

#include "oneway.h"
#include "service.h"
#include "speaks.h"
#include "tcp/connection/accept.h"
#include "tcp/connection/arrival.h"
#include "tcp/connection/batch.h"
#include "tcp/connection/busy.h"
#include "tcp/connection/nagle.h"
#include "tcp/connection/sample.h"
#include "tcp/connection/slot.h"
#include "tcp/connection/thread.h"
#include "tcp/connection/transmit.h"
#include "tcp/http/route.h"
#include "tcp/http/status.h"
#include "tcp/http/streams.h"

/*
 * The server's first read or write on a connection: it has been accepted. Return when; 0: unknown.
 * @now: the time of this read or write.
 */
static __always_inline __u64 conn_touched(const struct sock *sk, struct conn *c,
					  struct service_slot *slot, __u64 now)
{
	__u64 accepted_ns;

	c->touched |= TOUCHED;
	owner_seen(c->service);
	if (!c->established_ns)
		return 0;
	accepted_ns = accept_time(sk, c, now);
	if (!accepted_ns)
		SLOT_COUNT(slot, COUNTER_ACCEPT_UNSEEN, 1);
	else if (accept_unrecorded(c))
		SLOT_STAGE(&slot->stages[STAGE_ACCEPT_QUEUE], accept_wait(c, accepted_ns));
	return accepted_ns;
}

/*
 * Return whether the server wrote between arrival and first read: the request came before the
 * previous response was complete. Times cannot show that. On loopback the client may have read the
 * response and sent its next request before the server's write returned.
 */
static __always_inline bool pipelined(const struct sock *sk, const struct arrival *arrival)
{
	return arrival->write_seq != TCP_FIELD(sk, write_seq);
}

/* A read has returned bytes. */
struct reading {
	const struct sock *sk;
	struct service_slot *slot;
	__u64 now;
	__u64 accepted_ns; /* of a connection's first request; 0: no wait, or not known */
	__u32 end;	   /* the sequence number after its last byte */
	__u32 bytes;	   /* bytes of a message, at the read's end */
	__u32 flags;	   /* of the system call */
	bool unseen;	   /* bytes before it were read unseen */
};

/*
 * Note how far the server has read. Set r->unseen if bytes before this read were read unseen, by
 * splice() say. If a later read is noted already, another thread has counted the bytes of both.
 */
static __always_inline void reading_goes_on(struct reading *r, struct conn *c)
{
	__u32 seen = c->read_seq, new_bytes = r->end - seen;

	r->unseen = seq_after(r->end - r->bytes, seen);
	if (!seq_after(r->end, seen))
		return;
	SLOT_COUNT(r->slot, COUNTER_BYTES_IN, new_bytes);
	c->read_seq = r->end;
}

/*
 * Return whether the message under way wants no answer. It was read and not answered, and some time
 * later the client sent more. So this is not the first part of a slow request. In HTTP/1 each
 * message wants an answer.
 */
static __always_inline bool message_was_oneway(struct conn *c, const struct reading *r)
{
	struct arrival arrival;

	if (r->now < c->last_read_ns + config.quiet_ns || c->marks & (MARK_UNSEEN | MARK_HTTP1))
		return false;
	arrival_of(c, r->end - r->bytes, &arrival);
	return arrival.ns > c->last_read_ns + config.quiet_ns;
}

/* The exchange's times contradict each other, as when one thread reads while another writes. */
static __always_inline void exchange_inconsistent(struct conn *c, struct service_slot *slot)
{
	SLOT_COUNT(slot, COUNTER_INCONSISTENT, 1);
	c->start_ns = 0;
	c->accept_delay_ns = 0;
}

/* The next request begins: @r has read its first bytes. With @http each request of HTTP/1 is found (pipeline.h). */
static __always_inline void exchange_begin(const struct reading *r, struct conn *c, bool http)
{
	struct arrival arrival;
	__u64 last_ns;
	__u8 transmit;

	c->phase = CONN_READING;
	if (c->first_read_ns)
		c->index++;
	if (c->marks & MARK_HELD && !(c->flags & CONN_CLIENT_FIN))
		SLOT_COUNT(r->slot, COUNTER_NAGLE_HELD, 1);
	c->first_read_ns = r->now;
	c->last_read_ns = r->now;
	c->marks &= MARK_LASTING;
	c->bytes_in = r->bytes;
	c->busy_ticks = busy_begin(r->sk);
	/* Only now, after the clock was read: this may wait for another CPU's cache line. */
	arrival_of(c, r->end - r->bytes, &arrival);
	/* Bytes written before any response belong to a handshake. */
	if (arrival.ns && c->last_write_ns && pipelined(r->sk, &arrival))
		c->marks |= MARK_OVERLAPPED;
	c->start_ns = arrival.ns > r->accepted_ns || !arrival.ns ? arrival.ns : r->accepted_ns;
	c->accept_delay_ns = c->start_ns - arrival.ns;
	if (r->flags & FLAG_WAIT_ALL && c->start_ns) {
		last_ns = arrival_of_last(c, r->end, r->bytes, c->start_ns);
		if (last_ns <= r->now)
			c->first_read_ns -= last_ns - c->start_ns;
	}
	if (r->unseen)
		c->marks |= MARK_UNSEEN;
	if (c->start_ns > c->first_read_ns)
		exchange_inconsistent(c, r->slot);
	sample_begin(r->sk, c, c->accept_delay_ns);
	if (!(http && config.http && c->marks & MARK_HTTP1) && batch_drawn(r->sk, c))
		batch_look(c->service, c->marks, r->bytes);
	transmit = transmit_marks(c);
	if (transmit)
		transmit_begin(r->sk, c, transmit, TCP_FIELD(r->sk, write_seq));
}

/* More of the request under way, or of one that is older than the observation. */
static __always_inline void exchange_read_more(const struct reading *r, struct conn *c)
{
	c->last_read_ns = r->now;
	bytes_add(&c->bytes_in, r->bytes);
	if (r->unseen)
		c->marks |= MARK_UNSEEN;
}

/* The message has ended, and wants no answer. */
static __always_inline void exchange_oneway(const struct reading *r, struct conn *c)
{
	SLOT_COUNT(r->slot, COUNTER_ONEWAY, 1);
	transmit_end(r->sk, c);
	c->phase = CONN_IDLE;
	c->marks &= MARK_LASTING;
	c->bytes_in = 0;
}

/* Reduce a read to its bytes of a message. Return false if it has none, as in a handshake. */
static __always_inline bool read_message(struct reading *r, struct conn *c, bool http)
{
	struct arrival arrival;
	__u32 before;

	arrival_of(c, r->end - r->bytes, &arrival);
	before = speaks_read(r->sk, c, r->bytes, r->now, arrival.ns, http);
	if (before < r->bytes) {
		r->bytes -= before;
		return true;
	}
	if (!c->first_read_ns && r->accepted_ns)
		c->start_ns = r->accepted_ns;
	if (!c->last_read_ns)
		c->last_read_ns = r->now;
	return false;
}

/* A read of a connection whose streams are followed. */
static __always_inline void read_streams(const struct reading *r, struct conn *c,
					 struct http2_conn *h)
{
	struct streams_call call = {
		.h = h,
		.c = c,
		.slot = r->slot,
		.now = r->now,
		.accepted_ns = r->accepted_ns,
	};

	c->last_read_ns = r->now;
	if (h)
		streams_read(&call, r->bytes, r->end, !(r->flags & FLAG_TRUNCATES));
}

/* @http: streams of HTTP/2 are followed, and may begin in this read. */
static __always_inline void exchange_read(const struct sock *sk, struct conn *c, __u32 bytes,
					  __u32 flags, bool http)
{
	struct reading r = {.sk = sk, .bytes = bytes, .flags = flags};

	/* Before the event is sent: it carries the times of transmission. */
	if ((c->phase == CONN_RESPONDING || c->phase == CONN_PUSHING) &&
	    !(c->flags & CONN_WRITES_OVER))
		transmit_end(sk, c);
	sample_complete(sk, c);
	r.now = clock_read(sk, c);
	r.slot = slot_of(c->service);
	if (!r.slot)
		return;
	if (!c->touched)
		r.accepted_ns = conn_touched(sk, c, r.slot, r.now);
	else if (!c->first_read_ns)
		r.accepted_ns = c->start_ns; /* set by an earlier write or handshake */
	r.end = read_end(sk);
	reading_goes_on(&r, c);
	/* Nothing is said after the server's FIN: a server that lingers throws away the rest, unseen. */
	if (!(c->marks & MARK_SETTLED) && !(c->flags & CONN_WRITES_OVER) &&
	    !read_message(&r, c, http)) {
		if (http && c->marks & MARK_MULTIPLEXED)
			read_streams(&r, c, http2_of(sk));
		return;
	}
	if (http && config.route_rows)
		c->route_skip = bytes - r.bytes;
	if (config.cpu)
		split_begin(c, r.now);
	if (c->marks & MARK_MULTIPLEXED || c->flags & CONN_WRITES_OVER) {
		c->last_read_ns = r.now;
		return;
	}
	if (c->phase == CONN_UNKNOWN || (c->phase == CONN_READING && !message_was_oneway(c, &r))) {
		exchange_read_more(&r, c);
	} else {
		if (c->phase == CONN_READING) {
			SLOT_COUNT(r.slot, COUNTER_ONEWAY, 1);
			transmit_end(sk, c);
		}
		exchange_begin(&r, c, http);
		if (http && config.route_rows)
			c->route = ROUTE_WANTED;
	}
	if (c->phase != CONN_READING || c->bytes_in > ONEWAY_LONGEST)
		return;
	c->marks = oneway_look(c->marks, c->bytes_in, r.bytes);
	if (c->marks & MARK_ONEWAY)
		exchange_oneway(&r, c);
}

/*
 * Divide the service time. User space adds the zeros of RUNNABLE and BLOCKED, which most values
 * are.
 */
static __always_inline void exchange_split(struct conn *c, __u64 now)
{
	__u32 index = copy_of(c->service);
	__u64 service_ns = now - c->last_read_ns, blocked_ns;
	struct service_split *split = bpf_map_lookup_elem(&splits, &index);

	if (now < c->last_read_ns || !split_end(c, now, service_ns) || !c->start_ns || !split)
		return;
	blocked_ns = service_ns - c->split.running_ns - c->split.runnable_ns;
	SLOT_STAGE(&split->parts[SPLIT_RUNNING], c->split.running_ns);
	if (c->split.runnable_ns)
		SLOT_STAGE(&split->parts[SPLIT_RUNNABLE], c->split.runnable_ns);
	if (blocked_ns)
		SLOT_STAGE(&split->parts[SPLIT_BLOCKED], blocked_ns);
}

/* Return when a write that ended @now wrote its first byte. */
static __always_inline __u64 write_begun(const struct sock *sk, const struct conn *c,
					 struct service_slot *slot, __u32 bytes, __u64 now)
{
	__u64 waited_ns = bytes > BUSY_LEAST_BYTES ? busy_waited(sk, c, c->last_read_ns, now) : 0;

	if (waited_ns)
		SLOT_COUNT(slot, COUNTER_BLOCKED, 1);
	return now - waited_ns;
}

/* The response begins: everything but its own length is known. */
static __always_inline void exchange_answered(const struct sock *sk, struct conn *c,
					      struct service_slot *slot, __u32 bytes, __u64 now)
{
	__u64 begun_ns = c->start_ns ? write_begun(sk, c, slot, bytes, now) : now;

	if (c->start_ns && c->last_read_ns > begun_ns)
		exchange_inconsistent(c, slot);
	SLOT_COUNT(slot, COUNTER_EXCHANGES, 1);
	c->phase = CONN_RESPONDING;
	c->respond_bucket = 0;
	if (c->marks & MARK_OVERLAPPED)
		SLOT_COUNT(slot, COUNTER_OVERLAPPED, 1);
	if (c->marks & MARK_UNSEEN) {
		SLOT_COUNT(slot, COUNTER_UNSEEN_READS, 1);
		c->start_ns = 0;
	}
	if (config.transmit_below && c->marks & MARK_SHARE)
		SLOT_COUNT(slot, COUNTER_TRANSMIT_FOLLOWED, 1);
	c->last_write_ns = begun_ns;
	note_messages(slot, c->start_ns ? c->start_ns : c->first_read_ns, now);
	if (!c->start_ns) {
		SLOT_COUNT(slot, COUNTER_UNTIMED, 1);
	} else {
		exchange_stage(slot, STAGE_SOCKET_QUEUE, c->start_ns, c->first_read_ns);
		if (c->last_read_ns != c->first_read_ns)
			exchange_stage(slot, STAGE_RECEIVE, c->first_read_ns, c->last_read_ns);
		exchange_stage(slot, STAGE_SERVICE, c->last_read_ns, REREAD(&c->last_write_ns));
	}
	if (c->accept_delay_ns) {
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAYED, 1);
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAY_NS, c->accept_delay_ns);
	}
	if (config.cpu)
		exchange_split(c, REREAD(&c->last_write_ns));
	c->first_write_ns = REREAD(&c->last_write_ns);
	if (c->marks & MARK_SAMPLED)
		sample_answered(c, current_pid());
	c->bytes_in = 0;
}

/* The response goes on. One that began in an earlier epoch counts as carried, not in RESPOND. */
static __always_inline void exchange_responding(struct conn *c, struct service_slot *slot,
						__u64 now)
{
	__u64 last_ns = c->last_write_ns;

	if (now <= last_ns)
		return;
	c->last_write_ns = now;
	if (c->first_write_ns < epoch_ns) {
		if (!(c->marks & MARK_CARRIED))
			SLOT_COUNT(slot, COUNTER_CARRIED, 1);
		c->marks |= MARK_CARRIED;
	} else if (c->start_ns) {
		c->respond_bucket = respond_move(&slot->stages[STAGE_RESPOND], c->respond_bucket,
						 last_ns - c->first_write_ns,
						 REREAD(&c->last_write_ns) - c->first_write_ns);
	}
	note_last_message(slot, now);
}

/* A response began to a request that is older than the observation. */
static __always_inline void cut_off(struct conn *c, struct service_slot *slot, __u64 now)
{
	c->phase = CONN_CUT_OFF;
	c->first_write_ns = now;
	SLOT_COUNT(slot, COUNTER_CUT_OFF, 1);
}

/* A write without a waiting request. The rest of a cut-off response comes soon, or not at all. */
static __always_inline void unsolicited(struct conn *c, struct service_slot *slot, __u64 now)
{
	bool first = c->flags & CONN_PREEXISTING && !c->last_write_ns && !c->last_read_ns;

	if (first)
		cut_off(c, slot, now);
	else if (c->phase != CONN_CUT_OFF || now > c->first_write_ns + config.quiet_ns)
		SLOT_COUNT(slot, COUNTER_UNSOLICITED, 1);
	if (!c->first_read_ns && !c->last_read_ns)
		c->marks |= MARK_GREETED;
	c->last_write_ns = now;
}

/*
 * The server has read unseen bytes: a part of the request under way, or a separate request, which
 * is counted and not timed.
 */
static __always_inline void read_unseen(const struct sock *sk, struct conn *c,
					struct service_slot *slot, __u32 end, __u64 now)
{
	__u32 bytes = end - c->read_seq;

	c->read_seq = end;
	SLOT_COUNT(slot, COUNTER_BYTES_IN, bytes);
	if (c->marks & MARK_MULTIPLEXED || c->flags & CONN_WRITES_OVER)
		return;
	if (c->phase != CONN_READING && c->phase != CONN_UNKNOWN) {
		transmit_end(sk, c);
		sample_complete(sk, c);
		c->phase = CONN_READING;
		if (c->first_read_ns)
			c->index++;
		c->first_read_ns = now;
		c->last_read_ns = now;
		c->start_ns = 0;
		c->accept_delay_ns = 0;
		c->bytes_in = 0;
		c->marks &= MARK_LASTING;
	}
	bytes_add(&c->bytes_in, bytes);
	c->marks |= MARK_UNSEEN;
}

/* Return whether the write has bytes of a message. */
static __always_inline bool wrote_message(const struct sock *sk, struct conn *c, __u32 bytes,
					  __u64 now)
{
	enum spoken spoken = speaks_wrote(sk, c, bytes, now);

	if (spoken == SPOKEN_UNTIMED) {
		c->start_ns = 0;
		c->accept_delay_ns = 0;
		c->marks &= ~MARK_SAMPLED;
	}
	return spoken != SPOKEN_NOTHING;
}

/*
 * Note whether TCP holds back the end of a later write of a response. It may be sent with the next
 * write's bytes.
 */
static __always_inline void note_held(const struct sock *sk, struct conn *c)
{
	if (nagle_holds(sk))
		c->marks |= MARK_HELD;
	else if (c->marks & MARK_HELD)
		c->marks &= ~MARK_HELD;
}

/* After an upgrade the first bytes identify the protocol, as at the start of a connection. */
static __always_inline void status_upgrades(struct conn *c, int status)
{
	if (status != STATUS_UPGRADE)
		return;
	c->marks &= ~(MARK_HTTP1 | MARK_SETTLED);
	c->looks = 0;
}

/*
 * @http: count statuses. An interim response does not begin the exchange's response. Return whether pushes may follow the
 * response that has begun: enum push_suspicion.
 */
static __always_inline int exchange_write(const struct sock *sk, struct conn *c, __u32 bytes,
					  bool http)
{
	int status = STATUS_UNKNOWN, suspicion;
	struct service_slot *slot;
	__u32 read_seq;
	__u64 now;

	slot = slot_of(c->service);
	if (!slot)
		return PUSH_UNSUSPECTED;
	now = clock_written(sk, c);
	if (!c->touched)
		c->start_ns = conn_touched(sk, c, slot, now);
	SLOT_COUNT(slot, COUNTER_BYTES_OUT, bytes);
	read_seq = read_end(sk);
	if (seq_after(read_seq, c->read_seq))
		read_unseen(sk, c, slot, read_seq, now);
	if (!(c->marks & MARK_SETTLED) && !wrote_message(sk, c, bytes, now))
		return PUSH_UNSUSPECTED;
	if (http && c->phase == CONN_PUSHING) /* in TLS (clear_pushes.h) */
		return PUSH_UNSUSPECTED;
	if (c->phase == CONN_RESPONDING && now > c->last_write_ns + config.quiet_ns &&
	    !busy_explains(sk, c, bytes, now)) {
		SLOT_COUNT(slot, COUNTER_TRAILING, 1);
		return PUSH_UNSUSPECTED;
	}
	if (c->marks & MARK_SAMPLED)
		sample_wrote(c, bytes);
	if (config.transmit_below && c->marks & MARK_TRANSMIT)
		transmit_written(c, TCP_FIELD(sk, write_seq));
	if (c->marks & MARK_MULTIPLEXED)
		return PUSH_UNSUSPECTED;
	if (c->phase == CONN_UNKNOWN) {
		cut_off(c, slot, now);
		return PUSH_UNSUSPECTED;
	}
	if (http && c->phase == CONN_READING)
		status = status_written(c, bytes);
	if (status < 0) {
		/* An interim response is no response: written_unseen() of conn.bpf.c. */
		c->arrival_write_seq[c->newest & 1] = TCP_FIELD(sk, write_seq);
		return PUSH_UNSUSPECTED;
	}
	suspicion = status >> STATUS_BITS;
	status &= (1 << STATUS_BITS) - 1;
	if (c->phase == CONN_READING) {
		exchange_answered(sk, c, slot, bytes, now);
		if (http) {
			status_answered(c, status);
			if (config.route_rows)
				route_answered(c, status);
			status_upgrades(c, status);
		}
	} else if (c->phase == CONN_RESPONDING) {
		note_held(sk, c);
	}
	if (c->phase == CONN_RESPONDING && http && config.route_rows)
		route_responding(c, now);
	if (c->phase == CONN_RESPONDING)
		exchange_responding(c, slot, now);
	else if (http || !beside_early(sk, c, bytes))
		unsolicited(c, slot, now);
	return suspicion;
}

/*
 * Handle a read of a connection whose streams are followed. False: they are not. Separate from the
 * rest, whose many paths would exceed the verifier's limit.
 */
static __always_inline bool http2_read(const struct sock *sk, struct conn *c, __u32 bytes,
				       __u32 flags)
{
	struct http2_conn *h = c->marks & MARK_MULTIPLEXED ? http2_of(sk) : NULL;
	struct reading r = {.sk = sk, .bytes = bytes, .flags = flags};

	if (!h)
		return false;
	r.now = bpf_ktime_get_ns();
	r.slot = slot_of(c->service);
	if (!r.slot)
		return true;
	/* The connection's service may have a new number: it lost its slots and got others. */
	h->service = c->service;
	r.accepted_ns = c->first_read_ns ? 0 : c->start_ns;
	r.end = read_end(sk);
	reading_goes_on(&r, c);
	if (!(c->flags & CONN_WRITES_OVER))
		read_streams(&r, c, h);
	return true;
}

/* The same for a write, which may precede the read of the client's preface. */
static __always_inline bool http2_write(const struct sock *sk, struct conn *c, __u32 bytes)
{
	struct streams_call call;

	if (!streams_are_written(sk, c, bytes, true, &call))
		return false;
	if (!c->touched)
		c->start_ns = conn_touched(sk, c, call.slot, call.now);
	SLOT_COUNT(call.slot, COUNTER_BYTES_OUT, bytes);
	streams_write(&call, bytes, TCP_FIELD(sk, write_seq));
	return true;
}

#endif
