// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Times datagrams: socket_queue from arrival to read, service from read to reply. A receive queue
 * is first in, first out, so the n-th arrival on a socket is the n-th read. If the two counts
 * differ (see drift_check()), nothing is timed until they agree again. Neighbours:
 *
 * - request.h: which request a reply answers; peer.h: who sent it;
 * - visit.h: a pass over the sockets, which finds closed ones and unanswered requests;
 * - tcp/exchange.bpf.c: TCP; service.h: observed services.
 *
 * Loaded only when a UDP service is observed. Rules: docs/measurement.md.
 */
#include "service.h"
#include "request.h"
#include "visit.h"

/*
 * After this many reads with the same drift nothing is timed, and after as many more the counts are
 * corrected. Mostly a difference lasts only a microsecond: a datagram is queued but not yet
 * announced, or another thread is returning from a read.
 */
#define UDP_DRIFTING 8
#define UDP_DRIFTED  16
/* After this many reads by one thread, no other thread is taken to read at the same time. */
#define UDP_ALONE 16

struct udp_sockets_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct udp_socket);
} udp_sockets SEC(".maps");

/* A thread in sendmmsg(): its array of messages, and the next one. */
struct udp_batch {
	__u64 messages;
	__u32 socket;
	__u32 next;
};

struct udp_batches_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct udp_batch);
} udp_batches SEC(".maps");

/* The number of all sockets followed so far. */
__u32 udp_socket_next = 0;

static __always_inline __u32 udp_service(const struct sock *sk)
{
	struct service_key key = {
		.netns = sk->__sk_common.skc_net.net->ns.inum,
		.port = sk->__sk_common.skc_num,
		.protocol = PROTO_UDP,
	};

	return service_find(&key);
}

/* Begin to follow a socket, of whose datagrams @queued came before. */
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
	if (!u) /* another CPU is just creating it */
		u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	if (!u) {
		count_atomic(slot, COUNTER_STORAGE_FAILED, 1);
		return NULL;
	}
	u->service = service;
	if (__sync_val_compare_and_swap(&u->met, 0, 1))
		return u;
	u->number = __sync_fetch_and_add(&udp_socket_next, 1) + 1;
	if (!udp_record(u))
		count_atomic(slot, COUNTER_STORAGE_FAILED, 1);
	u->skip = queued;
	if (queued)
		count_atomic(slot, COUNTER_UNMATCHED, queued);
	return u;
}

static __always_inline bool udp_observed(const struct sock *sk)
{
	return port_observed(sk->__sk_common.skc_num) && sk->sk_protocol == PROTO_UDP;
}

/* The sender is added later, because a busy reader is faster than its lookup. */
static __always_inline void arrival_put(struct udp_arrival *place, __u64 now)
{
	place->from = FROM_COMES;
	if (__sync_lock_test_and_set(&place->at_ns, now) == READ_ALREADY)
		__sync_val_compare_and_swap(&place->at_ns, now, 0);
}

/*
 * A reader that polls may take a datagram while another CPU still announces it, which takes some 100 ns. Then the
 * reader waits a little longer for the announcement.
 */
#define ARRIVAL_WAITS 128

/* Take the arrival's time out of @place. 0: it is not announced yet, and READ_ALREADY marks the place. */
static __always_inline __u64 arrival_take(struct udp_socket *u, struct udp_arrival *place,
					  __u32 number, __u64 *ret_from)
{
	__u64 at_ns;

	for (__u32 i = 0; i < ARRIVAL_WAITS; i++)
		if ((__s32)(PLAIN(&u->arrived) - number) > 0 && PLAIN(&place->at_ns) &&
		    PLAIN(&place->from) != FROM_COMES)
			break;
	at_ns = __sync_lock_test_and_set(&place->at_ns, 0);
	if ((__s32)(PLAIN(&u->arrived) - number) <= 0 || !at_ns) {
		at_ns = __sync_val_compare_and_swap(&place->at_ns, 0, READ_ALREADY);
		at_ns = at_ns > READ_ALREADY ? __sync_lock_test_and_set(&place->at_ns, 0) : 0;
	}
	if (at_ns <= READ_ALREADY)
		return 0;
	*ret_from = PLAIN(&place->from);
	if (*ret_from == FROM_COMES)
		*ret_from = 0;
	return at_ns;
}

/*
 * Return the sender of datagram @number, which has just arrived; 0: not known. The datagram is at
 * the end of the queue, before those that other CPUs have queued since. The counts and the queue's
 * length show how many these are. While a reader is returning, the counts may lead to a newer
 * datagram. When that one is announced, it is recognised as the same packet.
 */
static __always_inline __u64 sender_of(const struct sock *sk, struct udp_socket *u, __u32 number)
{
	/*
	 * In this order: a datagram that is read meanwhile has left the queue before it is counted.
	 */
	__u32 read = PLAIN(&u->read), arrived = PLAIN(&u->arrived);
	__s32 unread = arrived - read + u->skip, queued = queued_datagrams(sk);
	__u32 newer = arrived - number - 1 + (queued > unread ? queued - unread : 0);
	struct datagram_peer from;
	__u64 packet;

	if (newer > NEWER_DATAGRAMS)
		return 0;
	packet = peer_of_newest(sk, newer, &from);
	if (packet && packet == u->latest && (__s32)(read - number) < 0)
		arrival_place(u, number - 1)->from = 0;
	u->latest = packet;
	if (from.peer == PEER_NONE)
		return 0;
	if (from.first_bytes == FIRST_BYTES_NONE)
		u->apart = 1;
	return from.peer << 16 | (from.first_bytes & 0xffff);
}

static __always_inline void datagram_arrived(const struct sock *sk)
{
	struct udp_socket *u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	__u64 now = bpf_ktime_get_ns();
	struct udp_arrival *place;
	__u32 number;

	if (!u) {
		__u32 queued = queued_datagrams(sk);

		u = udp_follow(sk, queued ? queued - 1 : 0);
	}
	if (!u)
		return;
	number = __sync_fetch_and_add(&u->arrived, 1);
	place = arrival_place(u, number);
	arrival_put(place, now);
	place->from = sender_of(sk, u, number);
}

/*
 * Arrivals and reads are counted separately, and could lose step for good. Two datagrams may have come at once when
 * the socket was met. One may be discarded for its checksum or a reader's bad address, or an interrupted program of
 * ours may miss one. Return whether the counts have disagreed with the queue's length for too many reads. After
 * UDP_DRIFTED reads, correct them.
 */
static __always_inline __u32 drift_check(const struct sock *sk, struct udp_socket *u, __u32 number)
{
	/*
	 * Before the queue's length: a datagram that comes meanwhile is queued before it is
	 * counted.
	 */
	__u32 arrived = PLAIN(&u->arrived), run;
	__s32 drift = arrived - (number + 1) + u->skip - queued_datagrams(sk);

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

/* Return when the datagram that was just read had arrived (0: not known), and from whom. */
static __always_inline __u64 matching_arrival(const struct sock *sk, struct udp_socket *u,
					      struct service_slot *slot, __u64 *ret_from)
{
	__u32 number, skip = u->skip;
	__u64 arrival_ns = 0;
	__s32 behind;

	if (skip && __sync_val_compare_and_swap(&u->skip, skip, skip - 1) == skip)
		return 0; /* counted when the socket was met */
	number = __sync_fetch_and_add(&u->read, 1);
	behind = u->arrived - number;
	/* Not if a much later datagram has overwritten it. */
	if (behind <= UDP_ARRIVALS)
		arrival_ns = arrival_take(u, arrival_place(u, number), number, ret_from);
	if (drift_check(sk, u, number))
		arrival_ns = 0;
	/*
	 * With a surplus arrival, this sender may be that of a discarded datagram. But with several
	 * readers, another one may just have taken the surplus.
	 */
	if (u->drift > 0 && (u->alone >= UDP_ALONE || !arrival_ns))
		*ret_from = 0;
	if (!arrival_ns)
		count_atomic(slot, COUNTER_UNMATCHED, 1);
	return arrival_ns;
}

/* The peer of a connected socket is known anyway. */
static __always_inline void sender(const struct sock *sk, __u64 from, bool apart,
				   struct datagram_peer *ret)
{
	__u64 connected = peer_of_socket(sk);

	ret->peer = connected ? connected : from >> 16;
	ret->first_bytes = from && !apart ? from & 0xffff : FIRST_BYTES_NONE;
}

static __always_inline void reader_seen(struct udp_socket *u)
{
	__u64 reader = bpf_get_current_pid_tgid(), before = u->reader;

	u->alone++;
	if (reader == before)
		return;
	u->reader = reader;
	u->alone = 0;
	if (reader >> 32 != before >> 32)
		owner_seen(u->service);
}

static __always_inline void datagram_read(const struct sock *sk, __u32 bytes)
{
	struct udp_socket *u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	struct datagram_peer from;
	struct service_slot *slot;
	__u64 arrival_ns, now, packed = 0;

	if (!u)
		return;
	slot = slot_of(u->service);
	if (!slot)
		return;
	now = bpf_ktime_get_ns();
	count(slot, COUNTER_BYTES_IN, bytes);
	arrival_ns = matching_arrival(sk, u, slot, &packed);
	/* Two CPUs' clocks may differ by a few ns; a difference is never negative. */
	if (arrival_ns)
		stage_add(&slot->stages[STAGE_SOCKET_QUEUE],
			  now > arrival_ns ? now - arrival_ns : 0);
	reader_seen(u);
	sender(sk, packed, u->apart, &from);
	request_expect(u, slot, &from, arrival_ns, now);
}

/*
 * Return which of its messages a sendmmsg() has just sent. They come in order while the thread
 * sends from the same array. @failed: the call is over.
 */
static __always_inline __u32 batch_number(const struct udp_socket *u,
					  const struct system_call *call, bool failed)
{
	struct udp_batch fresh = {.messages = call->second, .socket = u->number, .next = 1};
	__u64 thread = bpf_get_current_pid_tgid();
	struct udp_batch *batch;
	__u32 number = 0;

	if (call->number != NR_SENDMMSG || call->third <= 1)
		return 0;
	batch = bpf_map_lookup_elem(&udp_batches, &thread);
	if (batch && batch->messages == call->second && batch->socket == u->number)
		number = batch->next++;
	else if (!failed)
		bpf_map_update_elem(&udp_batches, &thread, &fresh, BPF_ANY);
	if (failed || number + 1 >= call->third)
		bpf_map_delete_elem(&udp_batches, &thread);
	return number;
}

static __always_inline void datagram_sent(const struct sock *sk, int bytes)
{
	struct udp_socket *u = bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0);
	struct service_slot *slot = u ? slot_of(u->service) : NULL;
	struct system_call call;
	struct receiver to;
	__u32 number;
	__u64 now;

	if (!slot)
		return;
	now = bpf_ktime_get_ns();
	syscall_read((void *)bpf_task_pt_regs(bpf_get_current_task_btf()), &call);
	number = batch_number(u, &call, bytes < 0);
	if (bytes < 0)
		return;
	u->replied++;
	count(slot, COUNTER_BYTES_OUT, bytes);
	receiver_of(sk, &call, number, bytes, &to);
	reply_sent(sk, u, slot, &to, now);
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
	/* An empty datagram (0 bytes) counts; an error does not. */
	if (ret >= 0 && !(flags & FLAGS_NO_READ) && udp_observed(sk))
		datagram_read(sk, ret);
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(udp_send, struct sock *sk, int ret, int flags)
{
	if (udp_observed(sk))
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

SEC("?iter/udp")
int udp_visit(struct bpf_iter__udp *ctx)
{
	const struct sock *sk = (const void *)ctx->udp_sk;

	if (!sk)
		visit_requests();
	else if (udp_observed(sk))
		visit_socket(sk, udp_service(sk),
			     bpf_sk_storage_get(&udp_sockets, (void *)sk, 0, 0),
			     queued_datagrams(sk));
	return 0;
}
