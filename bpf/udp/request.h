/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Find the request that a reply answers: one that came from the address that the reply goes to. Most clients send
 * each request from a port of its own, or wait for the reply. Then the peer has one request without a reply, and it
 * is the one. If the peer has several, the reply's first two bytes decide, if they are those of one of them.
 * Otherwise the exchange is counted and not timed. Rules: docs/measurement.md. Neighbours: peer.h (the peers),
 * udp.bpf.c (the programs).
 */
#ifndef BPF_UDP_REQUEST_H
#define BPF_UDP_REQUEST_H

#include "peer.h"
#include "service.h"

/* The time after which a request counts as unanswered. */
#define UDP_GIVE_UP_NS 30000000000ULL

/*
 * Requests without a reply. A peer of a socket has one entry (.first_bytes 0). It remembers one request.
 * Each further one has an entry of its own (.first_bytes: the two bytes, with REQUEST_ONE), unless the
 * socket's replies do not repeat the two bytes.
 */
struct request_key {
	__u64 peer;
	__u32 socket; /* struct udp_socket.number */
	__u32 first_bytes;
};

#define REQUEST_ONE 0x80000000U

struct request {
	__u64 read_ns;	  /* of the remembered request; 0: it was answered */
	__u64 arrival_ns; /* of the remembered request; 0: not known */
	__u64 since_ns;	  /* when the peer's entry was made: distinguishes entries of other times */
	__u64 newest_ns;  /* of a peer's entry: its latest read */
	__u32 service;
	__u32 waiting;	   /* requests without a reply: of the peer, or with these two bytes */
	__u32 first_bytes; /* of the remembered request */
	__u32 unsure;	   /* enum request_doubt */
};

/* .waiting of a peer whose reply was seen before its request; see reply_early(). */
#define WAITING_NEGATIVE ((__u32) - 1)

enum request_doubt {
	DOUBT_WHICH = 1,  /* it is not known which of them were answered */
	DOUBT_HIDDEN = 2, /* the first two bytes of some are not remembered */
};

struct requests_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct request_key);
	__type(value, struct request);
} udp_requests SEC(".maps");

/* Arrivals that were not read yet: more than the kernel's default receive buffer holds of small datagrams. */
#define UDP_ARRIVALS 480

/* A reader that was faster than its announcement leaves this mark: the arrival's time then belongs to no request. */
#define READ_ALREADY 1

struct udp_arrival {
	__u64 at_ns;
	__u64 from; /* the peer, with the first two bytes in the lower 16 bits; 0: not known */
};

#define FROM_COMES 1 /* another CPU is looking it up */

/*
 * State of a socket, in its storage. Its size must stay below net.core.optmem_max (20 KiB before Linux 6.7). It must
 * also stay below 8 KiB on 7.3, which takes it from caches that have nothing larger.
 */
struct udp_socket {
	__u32 service;
	__u32 skip; /* datagrams that were queued before we looked: their reads match nothing */
	__u32 arrived;
	__u32 read;
	__s32 drift;	/* how many surplus arrivals the latest reads have found */
	__u32 drifting; /* how many reads in a row have found that */
	__u32 met;	/* 1: the datagrams queued before have been counted */
	__u32 number;	/* unique among all sockets so far */
	__u64 reader;	/* process and thread that have read last */
	__u32 alone;	/* reads of that thread in a row */
	__u32 replied;	/* datagrams sent */
	__u32 repeated; /* replies that repeated the first two bytes of the only request they can answer */
	__u32 differed; /* replies that repeated those of no request */
	__u16 several;	/* 1: a peer had two requests without a reply at once */
	__u16 apart; /* 1: some datagrams are stored apart from their headers, so their first two bytes are not known */
	__u32 unplaced; /* requests whose peer is not known, or had no room: their replies cannot be recognised */
	__u64 unplaced_ns; /* the latest of them */
	__u64 latest;	   /* address of the packet that was taken for the latest arrival's */
	struct udp_arrival arrivals[UDP_ARRIVALS];
};

_Static_assert(sizeof(struct udp_socket) < 8192 - 256, "with what the kernel puts before it");

/* Followed sockets, by their number: a socket that passes no longer find is closed. */
struct udp_record {
	__u32 pass; /* the latest pass that has found it */
	__u32 service;
	__u32 nameless; /* replies to unknown peers, which answered some of its requests */
};

struct udp_records_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct udp_record);
} udp_records SEC(".maps");

static __always_inline struct udp_arrival *arrival_place(struct udp_socket *u, __u32 number)
{
	__u64 at = number % UDP_ARRIVALS;

	/*
	 * Bound the index for the verifier. The barriers keep the compiler, which knows the bound,
	 * from dropping the test.
	 */
	barrier_var(at);
	if (at >= UDP_ARRIVALS)
		at = 0;
	barrier_var(at);
	return &u->arrivals[at];
}

static __always_inline __u32 queued_datagrams(const struct sock *sk)
{
	return sk->sk_receive_queue.qlen + BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
}

/* Return whether a reader has taken a datagram, but that read was not yet seen. */
static __always_inline bool reading(const struct sock *sk, const struct udp_socket *u)
{
	return (__s32)(u->arrived - u->read + u->skip - queued_datagrams(sk)) > 0;
}

/* ---- do replies repeat the first two bytes? ---- */

static __always_inline bool never_repeats(const struct udp_socket *u)
{
	return u->differed > 8 + u->repeated;
}

static __always_inline bool always_repeats(const struct udp_socket *u)
{
	return u->repeated >= 16 && u->repeated / 64 >= u->differed;
}

/*
 * The arrival and the read of the request that a reply answers. read_ns 0: it is not known which
 * request that is.
 */
struct answered {
	__u64 read_ns;
	__u64 arrival_ns;
};

static __always_inline void count_answered(struct service_slot *slot, const struct answered *a,
					   __u64 now)
{
	count(slot, COUNTER_EXCHANGES, 1);
	count(slot, COUNTER_OUTSTANDING, -1ULL);
	if (!a->read_ns)
		count(slot, COUNTER_AMBIGUOUS_REPLIES, 1);
	if (!a->read_ns || a->read_ns > now)
		count(slot, COUNTER_UNTIMED, 1);
	else
		stage_add(&slot->stages[STAGE_SERVICE], now - a->read_ns);
	if (a->arrival_ns)
		note_messages(slot, a->arrival_ns, now);
}

/* ---- a request was read ---- */

static __always_inline void request_unplaced(struct udp_socket *u, __u64 now)
{
	__sync_fetch_and_add(&u->unplaced, 1);
	u->unplaced_ns = now;
}

/* A further request of a peer that waits for a reply. Its two bytes may identify its reply. */
static __always_inline void request_further(struct udp_socket *u, struct request *peer,
					    const struct request_key *of, __u32 first_bytes,
					    __u64 arrival_ns, __u64 now)
{
	struct request_key key = *of;
	struct request fresh = {
		.read_ns = now,
		.arrival_ns = arrival_ns,
		.since_ns = peer->since_ns,
		.service = peer->service,
		.waiting = 1,
		.unsure = peer->read_ns && peer->first_bytes == first_bytes ? DOUBT_WHICH : 0,
	};
	struct request *same;

	u->several = 1;
	key.first_bytes = REQUEST_ONE | first_bytes;
	if (never_repeats(u) || first_bytes == FIRST_BYTES_NONE) {
		peer->unsure |= DOUBT_HIDDEN;
		return;
	}
	same = bpf_map_lookup_elem(&udp_requests, &key);
	if (same && same->since_ns == fresh.since_ns && same->waiting) {
		same->unsure |= DOUBT_WHICH;
		__sync_fetch_and_add(&same->waiting, 1);
	} else if (bpf_map_update_elem(&udp_requests, &key, &fresh, BPF_ANY)) {
		peer->unsure |= DOUBT_HIDDEN;
	}
}

/* Remember a request until its reply. */
static __always_inline void request_expect(struct udp_socket *u, struct service_slot *slot,
					   const struct datagram_peer *from, __u64 arrival_ns,
					   __u64 now)
{
	struct request_key key = {.peer = from->peer, .socket = u->number};
	struct request fresh = {
		.read_ns = now,
		.arrival_ns = arrival_ns,
		.since_ns = now,
		.newest_ns = now,
		.service = u->service,
		.waiting = 1,
		.first_bytes = from->first_bytes,
	};
	const struct answered unknown = {};
	struct request *peer;
	__u32 waiting;

	count(slot, COUNTER_OUTSTANDING, 1);
	if (from->peer == PEER_NONE) {
		request_unplaced(u, now);
		return;
	}
	peer = bpf_map_lookup_elem(&udp_requests, &key);
	if (!peer) {
		if (!bpf_map_update_elem(&udp_requests, &key, &fresh, BPF_NOEXIST))
			return;
		peer = bpf_map_lookup_elem(&udp_requests, &key); /* another CPU was faster */
	}
	if (!peer) {
		count(slot, COUNTER_UNTRACKED, 1);
		request_unplaced(u, now);
		return;
	}
	waiting = __sync_fetch_and_add(&peer->waiting, 1);
	if (!waiting) {
		request_unplaced(u, now); /* the peer's entry is just being deleted */
	} else if (waiting == WAITING_NEGATIVE) {
		bpf_map_delete_elem(&udp_requests, &key);
		count_answered(slot, &unknown, now);
	} else {
		peer->newest_ns = now;
		request_further(u, peer, &key, from->first_bytes, arrival_ns, now);
	}
}

/* ---- a reply was sent ---- */

static __always_inline void take_first(struct request *peer, struct answered *ret)
{
	ret->arrival_ns = peer->arrival_ns;
	ret->read_ns = __sync_lock_test_and_set(&peer->read_ns, 0);
}

/*
 * After this many replies it is decided whether they repeat the two bytes. Of later replies one in
 * this many is compared.
 */
#define REPEATED_LEARNT 32
#define REPEATED_SHARE	16

/* Return whether the first bytes of a reply to a peer's only request are compared. */
static __always_inline bool worth_comparing(const struct udp_socket *u)
{
	return u->several || u->unplaced || u->repeated + u->differed < REPEATED_LEARNT ||
	       !(u->replied & (REPEATED_SHARE - 1));
}

/*
 * Match a reply to the peer's only open request, which is remembered. False: the socket's replies
 * repeat the first two bytes, and this datagram has others. It may belong to an earlier request.
 */
static __always_inline bool answer_only(struct udp_socket *u, struct request *peer,
					const struct receiver *to, struct answered *ret)
{
	__u32 first_bytes = worth_comparing(u) ? first_bytes_sent(to) : FIRST_BYTES_NONE;
	bool same = peer->first_bytes == first_bytes;

	if (first_bytes != FIRST_BYTES_NONE && peer->first_bytes != FIRST_BYTES_NONE) {
		if (!same && always_repeats(u))
			return false;
		if (same)
			u->repeated++;
		else
			u->differed++;
	}
	/* Time it only if it cannot be the reply to a request whose peer is not known. */
	if (same || !u->unplaced || (never_repeats(u) && !u->several))
		take_first(peer, ret);
	return true;
}

/*
 * The peer has several requests: the reply's first two bytes must be those of exactly one of them.
 */
static __always_inline void answer_one_of(struct udp_socket *u, struct request *peer,
					  const struct request_key *of, __u32 first_bytes,
					  struct answered *ret)
{
	struct request_key key = *of;
	struct request *one = NULL;
	bool known = first_bytes != FIRST_BYTES_NONE && !(peer->unsure & DOUBT_HIDDEN) &&
		     !never_repeats(u);
	bool first = known && peer->read_ns && peer->first_bytes == first_bytes;

	key.first_bytes = REQUEST_ONE | first_bytes;
	if (known)
		one = bpf_map_lookup_elem(&udp_requests, &key);
	if (one && (one->since_ns != peer->since_ns || !one->waiting))
		one = NULL;
	if (first && !one) {
		take_first(peer, ret);
	} else if (first) {
		peer->read_ns = 0; /* it may be the remembered one */
	} else if (one) {
		if (!one->unsure) {
			ret->read_ns = one->read_ns;
			ret->arrival_ns = one->arrival_ns;
		}
		if (__sync_fetch_and_add(&one->waiting, -1) == 1)
			bpf_map_delete_elem(&udp_requests, &key);
	} else {
		peer->unsure |= DOUBT_WHICH;
		u->differed += known;
	}
}

/* A reply to a peer without a request: it may answer one whose peer is not known. */
static __always_inline void reply_to_unplaced(struct udp_socket *u, struct service_slot *slot,
					      __u64 now)
{
	const struct answered unknown = {};
	__u32 unplaced = u->unplaced;

	if (unplaced && now - u->unplaced_ns > UDP_GIVE_UP_NS) {
		unplaced = __sync_lock_test_and_set(&u->unplaced, 0);
		count(slot, COUNTER_UNANSWERED, unplaced);
		count(slot, COUNTER_OUTSTANDING, -(__u64)unplaced);
		unplaced = 0;
	}
	if (unplaced && __sync_bool_compare_and_swap(&u->unplaced, unplaced, unplaced - 1))
		count_answered(slot, &unknown, now);
	else
		count(slot, COUNTER_UNSOLICITED, 1);
}

/*
 * A reply to an unknown peer, by a call that cannot be read. It answers any request, if there is
 * one.
 */
static __always_inline void reply_nameless(struct udp_socket *u, struct service_slot *slot,
					   __u64 now)
{
	const struct answered unknown = {};
	__u32 number = u->number;
	struct udp_record *record = bpf_map_lookup_elem(&udp_records, &number);

	if (!record || (__s32)(u->read - u->replied) < 0) {
		count(slot, COUNTER_UNSOLICITED, 1);
		return;
	}
	__sync_fetch_and_add(&record->nameless, 1);
	count(slot, COUNTER_NAMELESS_REPLIES, 1);
	count_answered(slot, &unknown, now);
}

/*
 * Note a reply that is seen before its request. With two readers on one socket, the later read may be
 * seen first, and is matched to the earlier datagram. A reply to the later datagram then finds no
 * request until the other read is seen. False: no read is in progress.
 */
static __always_inline bool reply_early(const struct sock *sk, const struct udp_socket *u,
					const struct request_key *key, __u64 now)
{
	struct request early = {
		.since_ns = now,
		.newest_ns = now,
		.service = u->service,
		.waiting = WAITING_NEGATIVE,
		.unsure = DOUBT_HIDDEN,
	};

	return reading(sk, u) && !bpf_map_update_elem(&udp_requests, key, &early, BPF_NOEXIST);
}

static __always_inline void reply_sent(const struct sock *sk, struct udp_socket *u,
				       struct service_slot *slot, const struct receiver *to,
				       __u64 now)
{
	struct request_key key = {.peer = to->peer, .socket = u->number};
	struct answered answered = {};
	struct request *peer;

	if (to->peer == PEER_NONE) {
		reply_nameless(u, slot, now);
		return;
	}
	peer = bpf_map_lookup_elem(&udp_requests, &key);
	if (!peer && !u->unplaced && reply_early(sk, u, &key, now))
		return;
	if (!peer || (__s32)peer->waiting <= 0) {
		reply_to_unplaced(u, slot, now);
		return;
	}
	if (peer->waiting != 1 || !peer->read_ns || peer->unsure) {
		answer_one_of(u, peer, &key, first_bytes_sent(to), &answered);
	} else if (!answer_only(u, peer, to, &answered)) {
		count(slot, COUNTER_UNSOLICITED, 1);
		return;
	}
	if (__sync_fetch_and_add(&peer->waiting, -1) == 1)
		bpf_map_delete_elem(&udp_requests, &key);
	count_answered(slot, &answered, now);
}

#endif
