/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * One pass over the UDP sockets and the requests without a reply. It finds open requests, and those
 * that will never be answered: their socket is closed, or too much time has passed. Neighbour:
 * request.h.
 */
#ifndef BPF_UDP_VISIT_H
#define BPF_UDP_VISIT_H

#include "open.h"
#include "request.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct udp_sock *udp_sk;
};
#pragma clang attribute pop

struct bpf_map;

/* Raised by user space before each pass. */
__u32 udp_pass = 0;

/* A socket that this many passes have not found is closed: one pass may miss a socket whose place changes. */
#define UDP_PASSES_UNSEEN 2

/* Make the record of a socket. False: there is no room. */
static __always_inline bool udp_record(const struct udp_socket *u)
{
	struct udp_record fresh = {.pass = udp_pass, .service = u->service};
	__u32 number = u->number;

	return !bpf_map_update_elem(&udp_records, &number, &fresh, BPF_NOEXIST);
}

static __always_inline void visit_socket(const struct sock *sk, __u32 service, struct udp_socket *u,
					 __u32 queued)
{
	struct service_open *o = open_of(service);
	struct udp_record *record;
	__u64 oldest_ns;
	__u32 number;

	if (!o)
		return;
	o->unread += queued;
	if (!u)
		return;
	number = u->number;
	record = bpf_map_lookup_elem(&udp_records, &number);
	if (record)
		record->pass = udp_pass;
	else
		udp_record(u);
	o->read += u->unplaced;
	oldest_ns = arrival_place(u, u->read)->at_ns;
	if (queued && !u->skip && oldest_ns > READ_ALREADY)
		open_age(o, oldest_ns, oldest_ns);
}

/*
 * Count @requests of a socket as unanswered, except for those answered by replies to unknown peers.
 */
static __always_inline void give_up(struct udp_record *record, __u32 service, __u32 requests)
{
	struct service_slot *slot = slot_of(service);
	__u32 answered = 0;

	if (record) {
		answered = record->nameless < requests ? record->nameless : requests;
		__sync_fetch_and_add(&record->nameless, -answered);
	}
	if (!slot)
		return;
	count_atomic(slot, COUNTER_UNANSWERED, requests - answered);
	count_atomic(slot, COUNTER_OUTSTANDING, -(__u64)(requests - answered));
}

static __always_inline bool too_old(__u64 read_ns)
{
	__u64 now = bpf_ktime_get_ns();

	return now > read_ns && now - read_ns > UDP_GIVE_UP_NS;
}

/* Check one of several requests of a peer. */
static __always_inline void visit_one(const struct request_key *of, struct request *one,
				      struct udp_record *record, bool closed,
				      struct service_open *o)
{
	struct request_key key = *of;
	struct request *peer;
	__u32 waiting = one->waiting;

	key.first_bytes = 0;
	peer = bpf_map_lookup_elem(&udp_requests, &key);
	key.first_bytes = of->first_bytes;
	if (!peer || peer->since_ns != one->since_ns || !waiting || peer->waiting < waiting) {
		/* All requests of the peer are answered. */
		bpf_map_delete_elem(&udp_requests, &key);
	} else if (too_old(one->read_ns) && !peer->unsure && peer->waiting > waiting) {
		bpf_map_delete_elem(&udp_requests, &key);
		__sync_fetch_and_add(&peer->waiting, -waiting);
		give_up(record, one->service, waiting);
	} else if (record && !closed && !record->nameless && !peer->unsure && !one->unsure && o) {
		open_age(o, one->read_ns, one->read_ns);
	}
}

/* A reply has no request if none is seen for this long. */
#define UDP_EARLY_NS 100000000ULL

static __always_inline void visit_early(const struct request_key *key, const struct request *peer)
{
	struct service_slot *slot = slot_of(peer->service);
	__u64 now = bpf_ktime_get_ns();

	if (!slot || now < peer->newest_ns || now - peer->newest_ns < UDP_EARLY_NS)
		return;
	bpf_map_delete_elem(&udp_requests, key);
	count_atomic(slot, COUNTER_UNSOLICITED, 1);
}

static __always_inline void visit_peer(const struct request_key *of, struct request *peer,
				       struct udp_record *record, bool closed,
				       struct service_open *o)
{
	struct request_key key = *of;
	__u32 waiting = peer->waiting;

	if (waiting == WAITING_NEGATIVE) {
		visit_early(&key, peer);
		return;
	}
	if (closed || too_old(peer->newest_ns)) {
		bpf_map_delete_elem(&udp_requests, &key);
		give_up(record, peer->service, waiting);
		return;
	}
	if (peer->read_ns && !peer->unsure && waiting > 1 && too_old(peer->read_ns) &&
	    __sync_lock_test_and_set(&peer->read_ns, 0)) {
		__sync_fetch_and_add(&peer->waiting, -1);
		give_up(record, peer->service, 1);
		waiting--;
	}
	if (!o)
		return;
	o->read += waiting;
	if (!peer->unsure && record && !record->nameless)
		open_age(o, peer->read_ns, peer->read_ns);
}

static long visit_request(struct bpf_map *map, const void *key, void *value, void *context)
{
	struct request_key of = *(const struct request_key *)key;
	struct request *request = value;
	__u32 service = request->service;
	struct service_open *o = open_of(service);
	struct udp_record *record = bpf_map_lookup_elem(&udp_records, &of.socket);
	bool closed = !record || udp_pass - record->pass >= UDP_PASSES_UNSEEN;

	if (of.first_bytes)
		visit_one(&of, request, record, closed, o);
	else
		visit_peer(&of, request, record, closed, o);
	return 0;
}

static long visit_record(struct bpf_map *map, const void *key, void *value, void *context)
{
	__u32 number = *(const __u32 *)key;
	const struct udp_record *record = value;
	__u32 service = record->service, answered = record->nameless;
	struct service_open *o = open_of(service);

	/* Requests answered by replies to unknown peers are still counted as open: take them off. */
	if (o)
		o->read -= o->read < answered ? o->read : answered;
	if (udp_pass - record->pass > UDP_PASSES_UNSEEN)
		bpf_map_delete_elem(&udp_records, &number);
	return 0;
}

static __always_inline void visit_requests(void)
{
	bpf_for_each_map_elem(&udp_requests, visit_request, NULL, 0);
	bpf_for_each_map_elem(&udp_records, visit_record, NULL, 0);
}

#endif
