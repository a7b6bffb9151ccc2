/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Which read does a reply answer? The oldest of the same socket by the same thread that has none yet, so
 * that recvmmsg() and sendmmsg() batches match one by one. That is right as long as each is answered, and
 * nobody says so of one that never will be. So times wait for the end of their round, when each read has
 * had its reply: then their sum is right in whatever order the replies came. A round that is not over in
 * time is counted, not timed (reply_give_up()), and what reads without a reply there are is found out by
 * looks_unanswered(). Rules: docs/measurement.md. Neighbour: udp.bpf.c.
 */
#ifndef BPF_UDP_REPLY_H
#define BPF_UDP_REPLY_H

#include "service.h"

/* Reads of a round: the largest batch that is matched. */
#define UDP_READS 64
/*
 * After so many replies in a row that speak for it, reads count as never to be answered: where nothing
 * speaks either way, that happens by chance in one of 65536 cases.
 */
#define UDP_VOTES 16

struct reader_key {
	__u64 socket;
	__u64 thread;
};

/* The counts go on for ever, and wrap. */
struct reader {
	__u32 read;
	__u32 answered; /* of these; or known to be never */
	__u32 settled;	/* of these: timed, or given up; the others wait for the end of the round */
	__u32 given_up; /* 1: nothing more of this round is timed */
	__u32 left;	/* without a reply, behind the latest one */
	__u32 votes;	/* latest replies, one after the other, that speak for the newest read */
	__u64 oldest_ns;	     /* of the latest reply: since the oldest read without one */
	__u64 newest_ns;	     /* since the newest read */
	__u64 times_ns[UDP_READS];   /* when it was read; behind the reply: how long that took */
	__u64 arrival_ns[UDP_READS]; /* 0: not matched */
};

/* Threads that serve a socket; the least recently used one makes room. */
struct readers_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct reader_key);
	__type(value, struct reader);
} readers SEC(".maps");

/* A fresh entry: too large for the stack. */
struct reader_template_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reader);
} reader_template SEC(".maps");

static __always_inline struct reader *reader_of(const struct sock *sk, bool make)
{
	struct reader_key key = {.socket = (__u64)sk, .thread = bpf_get_current_pid_tgid()};
	struct reader *reader = bpf_map_lookup_elem(&readers, &key);
	struct reader *fresh;
	__u32 zero = 0;

	if (reader || !make)
		return reader;
	fresh = bpf_map_lookup_elem(&reader_template, &zero);
	if (fresh)
		bpf_map_update_elem(&readers, &key, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&readers, &key);
}

/* What of the round is answered is counted, not timed. */
static __always_inline void reply_give_up(struct reader *r, struct service_slot *slot)
{
	if (r->answered != r->settled)
		count(slot, COUNTER_UNTIMED, r->answered - r->settled);
	r->settled = r->answered;
	r->given_up = 1;
}

/* Remembers a read until its reply; the memory of a round that has too many is overwritten. */
static __always_inline void reply_expect(const struct sock *sk, struct service_slot *slot,
					 __u32 service, __u64 arrival_ns, __u64 now)
{
	struct reader *r = reader_of(sk, true);
	__u32 at;

	if (!r)
		return;
	if (!r->read)
		owner_seen(service);
	if (r->read - r->settled >= UDP_READS)
		reply_give_up(r, slot);
	at = r->read++ & (UDP_READS - 1);
	r->times_ns[at] = now;
	r->arrival_ns[at] = arrival_ns;
	count(slot, COUNTER_OUTSTANDING, 1);
}

struct settling {
	struct reader *reader;
	struct service_slot *slot;
};

static long settle_next(__u32 index, struct settling *settling)
{
	struct reader *r = settling->reader;
	__u32 at = r->settled++ & (UDP_READS - 1);

	stage_add(&settling->slot->stages[STAGE_SERVICE], r->times_ns[at]);
	return 0;
}

/* Each read has had its reply: what was remembered of them is true. */
static __always_inline void round_end(struct reader *r, struct service_slot *slot)
{
	struct settling settling = {.reader = r, .slot = slot};
	__u32 waiting = r->answered - r->settled;

	if (r->given_up)
		reply_give_up(r, slot);
	else if (waiting == 1) /* nearly always */
		settle_next(0, &settling);
	else
		bpf_loop(waiting, settle_next, &settling, 0);
	r->given_up = 0;
	r->votes = 0;
	r->left = 0;
}

static __always_inline __u64 distance(__u64 a, __u64 b)
{
	return a > b ? a - b : b - a;
}

/*
 * Whether the reads that are without a reply will never have one. They could be as many that are always
 * under way, in a server that answers each some time later: the replies then follow the reads in the same
 * way, always leaving the same number. But where each answers the newest read, the time since the oldest
 * has the gaps between the requests in it as well, and changes more from reply to reply than the time
 * since the newest; where each answers the oldest, it is the other way round. So they vote.
 */
static __always_inline bool looks_unanswered(struct reader *r, __u32 left, __u64 oldest_ns,
					     __u64 newest_ns)
{
	if (left == r->left &&
	    distance(oldest_ns, r->oldest_ns) > distance(newest_ns, r->newest_ns))
		r->votes++;
	else
		r->votes = 0;
	r->left = left;
	r->oldest_ns = oldest_ns;
	r->newest_ns = newest_ns;
	return r->votes >= UDP_VOTES;
}

/* A reply that has left others to come. */
static __always_inline void round_goes_on(struct reader *r, struct service_slot *slot, __u32 left,
					  __u64 oldest_ns, __u64 newest_ns)
{
	if (r->given_up)
		reply_give_up(r, slot);
	if (!looks_unanswered(r, left, oldest_ns, newest_ns))
		return;
	reply_give_up(r, slot);
	count(slot, COUNTER_UNANSWERED, left);
	count(slot, COUNTER_OUTSTANDING, -(__u64)left);
	r->answered = r->read;
	r->settled = r->read;
	round_end(r, slot);
}

static __always_inline void reply_sent(const struct sock *sk, struct service_slot *slot)
{
	struct reader *r = reader_of(sk, false);
	__u64 now, oldest_ns;
	__u32 left, at;

	if (!r || r->answered == r->read) {
		count(slot, COUNTER_UNSOLICITED, 1);
		return;
	}
	now = bpf_ktime_get_ns();
	left = r->read - r->answered - 1;
	/* Of more reads than there is memory for, the oldest that is remembered is where the next will be. */
	at = (left < UDP_READS ? r->answered : r->read) & (UDP_READS - 1);
	count(slot, COUNTER_EXCHANGES, 1);
	count(slot, COUNTER_OUTSTANDING, -1ULL);
	if (r->arrival_ns[at])
		note_messages(slot, r->arrival_ns[at], now);
	oldest_ns = now - r->times_ns[at];
	r->answered++;
	if (left) {
		__u64 newest_ns = now - r->times_ns[(r->read - 1) & (UDP_READS - 1)];

		if (!r->given_up)
			r->times_ns[at] = oldest_ns;
		round_goes_on(r, slot, left, oldest_ns, newest_ns);
	} else {
		r->times_ns[at] = oldest_ns;
		round_end(r, slot);
	}
}

#endif
