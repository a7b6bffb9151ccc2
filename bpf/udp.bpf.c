// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Where a datagram's time goes: socket_queue from arrival to read, service from read to reply.
 *
 * A receive queue is first in, first out, so the n-th arrival on a socket is the n-th read. Where the
 * two counts drift apart (see drift_check()), nothing is timed until they agree again. Which read a reply
 * answers is in udp_reply.h. Loaded only when a UDP service is observed; neighbours: exchange.bpf.c
 * (TCP), service.h (who is observed). Rules: docs/measurement.md.
 */
#include "service.h"
#include "udp_reply.h"

/*
 * Arrivals that were not read yet. The kernel's default receive buffer holds a few hundred small
 * datagrams. A socket's storage must stay below net.core.optmem_max (20 KiB before Linux 6.7), and below
 * 8 KiB on 7.3, which takes it from caches that have nothing larger.
 */
#define UDP_ARRIVALS 512
/*
 * After so many reads that all found the same drift nothing is timed, and after so many more the counts
 * are put right. A datagram that is queued but not yet announced, or a read that another thread is just
 * returning from, lasts for a microsecond, mostly.
 */
#define UDP_DRIFTING 8
#define UDP_DRIFTED  16

struct udp_socket {
	__u32 service;
	__u32 skip; /* datagrams that were queued before we looked: their reads match nothing */
	__u32 arrived;
	__u32 read;
	__s32 drift;	/* how many arrivals too many the latest reads have found */
	__u32 drifting; /* how many of them, one after the other */
	__u32 met;	/* somebody has looked for what was queued before */
	__u32 pad;
	__u64 arrival_ns[UDP_ARRIVALS];
};

struct udp_sockets_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct udp_socket);
} udp_sockets SEC(".maps");

static __always_inline __u32 queued_datagrams(const struct sock *sk)
{
	return sk->sk_receive_queue.qlen + BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
}

static __always_inline __u32 udp_service(const struct sock *sk)
{
	struct service_key key = {
		.netns = sk->__sk_common.skc_net.net->ns.inum,
		.port = sk->__sk_common.skc_num,
		.protocol = PROTO_UDP,
	};

	return service_find(&key);
}

/* Begins to follow a socket; @queued of its datagrams came before. */
static __always_inline struct udp_socket *udp_follow(const struct sock *sk, __u32 queued)
{
	__u32 service = udp_service(sk);
	struct service_slot *slot;
	struct udp_socket *u;

	if (service == SERVICE_NONE)
		return NULL;
	u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	slot = slot_of(service);
	if (!slot)
		return NULL;
	if (!u) /* another CPU is just making it */
		u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	if (!u) {
		count_atomic(slot, COUNTER_STORAGE_FAILED, 1);
		return NULL;
	}
	u->service = service;
	if (__sync_val_compare_and_swap(&u->met, 0, 1))
		return u;
	u->skip = queued;
	if (queued)
		count_atomic(slot, COUNTER_UNMATCHED, queued);
	return u;
}

static __always_inline bool udp_observed(const struct sock *sk)
{
	return port_observed(sk->__sk_common.skc_num) && sk->sk_protocol == PROTO_UDP;
}

/* A reader that was faster than we has left a mark in its place: then the time is nobody's any more. */
#define READ_ALREADY 1

static __always_inline void arrival_put(__u64 *place)
{
	if (__sync_val_compare_and_swap(place, READ_ALREADY, 0) != READ_ALREADY)
		*place = bpf_ktime_get_ns();
}

/* The time is taken out; 0: it is not there yet. @ahead: nothing has been announced for this place. */
static __always_inline __u64 arrival_take(__u64 *place, bool ahead)
{
	__u64 arrival_ns = __sync_lock_test_and_set(place, 0);

	if (!ahead && arrival_ns)
		return arrival_ns == READ_ALREADY ? 0 : arrival_ns;
	arrival_ns = __sync_val_compare_and_swap(place, 0, READ_ALREADY);
	return arrival_ns > READ_ALREADY ? __sync_lock_test_and_set(place, 0) : 0;
}

static __always_inline void datagram_arrived(const struct sock *sk)
{
	struct udp_socket *u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	__u32 number;

	if (!u) {
		__u32 queued = queued_datagrams(sk);

		u = udp_follow(sk, queued ? queued - 1 : 0);
	}
	if (!u)
		return;
	number = __sync_fetch_and_add(&u->arrived, 1);
	arrival_put(&u->arrival_ns[number & (UDP_ARRIVALS - 1)]);
}

/*
 * Arrivals and reads are counted apart, and could lose step for good: two datagrams that came at once
 * when the socket was met, one that was thrown away for its checksum or a reader's bad address, one that
 * an interrupted program of ours missed. The queue's own length tells. 0: they agree, as far as that can
 * be known.
 */
static __always_inline __u32 drift_check(const struct sock *sk, struct udp_socket *u, __u32 number)
{
	__s32 drift = u->arrived - (number + 1) + u->skip - queued_datagrams(sk);
	__u32 run;

	if (!drift || drift != u->drift) {
		u->drift = drift;
		u->drifting = 0;
		return 0;
	}
	run = __sync_fetch_and_add(&u->drifting, 1);
	if (run + 1 == UDP_DRIFTED) {
		__sync_fetch_and_add(&u->read, drift);
		u->drifting = 0;
	}
	return run >= UDP_DRIFTING;
}

/* When the datagram that was just read had arrived; 0 if that is not known. */
static __always_inline __u64 matching_arrival(const struct sock *sk, struct udp_socket *u,
					      struct service_slot *slot)
{
	__u32 number, skip = u->skip;
	__u64 arrival_ns = 0;
	__s32 behind;

	if (skip && __sync_val_compare_and_swap(&u->skip, skip, skip - 1) == skip)
		return 0; /* counted when the socket was met */
	number = __sync_fetch_and_add(&u->read, 1);
	behind = u->arrived - number;
	/* Not where it was overwritten by one that came much later. */
	if (behind <= UDP_ARRIVALS)
		arrival_ns = arrival_take(&u->arrival_ns[number & (UDP_ARRIVALS - 1)], behind <= 0);
	if (drift_check(sk, u, number))
		arrival_ns = 0;
	if (!arrival_ns)
		count_atomic(slot, COUNTER_UNMATCHED, 1);
	return arrival_ns;
}

static __always_inline void datagram_read(const struct sock *sk, __u32 bytes)
{
	struct udp_socket *u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	struct service_slot *slot;
	__u64 arrival_ns, now;

	if (!u)
		return;
	slot = slot_of(u->service);
	if (!slot)
		return;
	now = bpf_ktime_get_ns();
	count(slot, COUNTER_BYTES_IN, bytes);
	arrival_ns = matching_arrival(sk, u, slot);
	/* Two CPUs' clocks may differ by a few ns; a difference is never negative. */
	if (arrival_ns)
		stage_add(&slot->stages[STAGE_SOCKET_QUEUE],
			  now > arrival_ns ? now - arrival_ns : 0);
	reply_expect(sk, slot, u->service, arrival_ns, now);
}

static __always_inline void datagram_sent(const struct sock *sk, __u32 bytes)
{
	struct udp_socket *u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	struct service_slot *slot = u ? slot_of(u->service) : NULL;

	if (!slot)
		return;
	count(slot, COUNTER_BYTES_OUT, bytes);
	reply_sent(sk, slot);
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(udp_ready, const struct sock *sk)
{
	if (udp_observed(sk))
		datagram_arrived(sk);
	return 0;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(udp_recv, struct sock *sk, int ret, int flags)
{
	/* An empty datagram (0 bytes) is one; an error is none. */
	if (ret >= 0 && !(flags & FLAGS_NO_READ) && udp_observed(sk))
		datagram_read(sk, ret);
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(udp_send, struct sock *sk, int ret, int flags)
{
	if (ret >= 0 && udp_observed(sk))
		datagram_sent(sk, ret);
	return 0;
}

SEC("?tp_btf/udp_fail_queue_rcv_skb")
int BPF_PROG(udp_drop, int rc, struct sock *sk)
{
	struct udp_socket *u;
	struct service_slot *slot;

	if (!udp_observed(sk))
		return 0;
	u = bpf_sk_storage_get(&udp_sockets, sk, 0, 0);
	slot = u ? slot_of(u->service) : NULL;
	if (slot)
		count_atomic(slot, COUNTER_DROPPED, 1);
	return 0;
}
