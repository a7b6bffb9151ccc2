/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The sender of a datagram, and the receiver of a sent one: the peer's address and port, and the datagram's first two
 * bytes. Protocols like DNS repeat these in the reply. The sender is in the headers of the packet, as it joins the
 * queue. The receiver is in the arguments of the system call that sends. Neighbour: request.h.
 */
#ifndef BPF_UDP_PEER_H
#define BPF_UDP_PEER_H

#include <bpf/bpf_endian.h>

#include "state.h"
#include "syscall.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff___datagram {
	struct sk_buff___datagram *prev;
	unsigned int len;
	unsigned int data_len;
	__u16 transport_header;
	__u16 network_header;
	__be16 protocol;
	unsigned char *head;
};

struct sk_buff_head___datagram {
	struct sk_buff___datagram *prev;
	__u32 qlen;
};

struct sock___datagram {
	struct sk_buff_head___datagram sk_receive_queue;
};

struct udp_sock___datagram {
	struct sk_buff_head___datagram reader_queue;
};
#pragma clang attribute pop

/*
 * A peer is 48 bits: an IPv4 address and port as they are, of IPv6 a hash. With 1,000 peers that wait for replies on
 * one socket, two of them share a hash in one of 10^9 cases.
 */
#define PEER_BITS 48
#define PEER_NONE 0

/* A value that no two bytes have. */
#define FIRST_BYTES_NONE 0x10000

#define PROTOCOL_IP	  0x0800 /* ETH_P_IP, include/uapi/linux/if_ether.h */
#define PROTOCOL_IPV6	  0x86dd
#define IP_HEADER_BYTES	  20 /* without options */
#define IPV6_HEADER_BYTES 40

struct datagram_peer {
	__u64 peer;	   /* PEER_NONE: not known */
	__u32 first_bytes; /* FIRST_BYTES_NONE: not known */
	__u32 pad;
};

static __always_inline __u64 peer_of_ipv4(__be32 address, __be16 port)
{
	return (__u64)address << 16 | port;
}

/* IPv4-mapped addresses (RFC 4291, 2.5.5.2) are those of IPv4. */
static __always_inline __u64 peer_of_ipv6(const __u64 *address, __be16 port)
{
	__u64 hash;

	if (!address[0] && (__u32)address[1] == bpf_htonl(0xffff))
		return peer_of_ipv4(address[1] >> 32, port);
	hash = address[0] * 0x9e3779b97f4a7c15ULL + address[1];
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ULL + port;
	hash = (hash ^ hash >> 29) * 0xd6e8feb86659fd93ULL;
	return hash >> (64 - PEER_BITS) | 1;
}

/* Return the peer of a connected socket; PEER_NONE: it is not connected. */
static __always_inline __u64 peer_of_socket(const struct sock *sk)
{
	const struct sock_common *skc = &sk->__sk_common;
	__u64 address[2];

	if (!skc->skc_dport)
		return PEER_NONE;
	if (skc->skc_family == FAMILY_INET)
		return peer_of_ipv4(skc->skc_daddr, skc->skc_dport);
	BPF_CORE_READ_INTO(&address, skc, skc_v6_daddr);
	return peer_of_ipv6(address, skc->skc_dport);
}

/* ---- a datagram in a queue ---- */

struct udp_header {
	__be16 source, destination, length, check;
	__u16 first_bytes;
};

/* A datagram's headers from the sender's address on, without options. */
struct ipv4_headers {
	__be32 source, destination;
	struct udp_header udp;
};

struct ipv6_headers {
	__u64 source[2], destination[2];
	struct udp_header udp;
};

/* The part of a packet that is read before its headers. */
struct datagram {
	__u64 packet; /* its address */
	const unsigned char *head;
	__u32 len;
	__u32 data_len; /* of the data, the bytes that do not follow the headers */
	__u16 transport_header;
	__u16 network_header;
	__be16 protocol;
};

/* Maximum of datagrams that may arrive after one before its sender is looked up. */
#define NEWER_DATAGRAMS 3

/*
 * Find the newest datagram that waits in the socket, not counting the last @newer ones. A reader may
 * have moved it to reader_queue. False: there is none.
 */
static __always_inline bool datagram_find(const struct sock *sk, __u32 newer, struct datagram *ret)
{
	const struct sock___datagram *incoming = (const void *)sk;
	const struct udp_sock___datagram *readers = (const void *)sk;
	const struct sk_buff___datagram *skb;

	if (incoming->sk_receive_queue.qlen > newer) {
		skb = incoming->sk_receive_queue.prev;
		for (__u32 i = 0; i < NEWER_DATAGRAMS; i++)
			if (i < newer)
				skb = skb->prev;
		ret->packet = (__u64)skb;
		ret->head = skb->head;
		ret->len = skb->len;
		ret->data_len = skb->data_len;
		ret->transport_header = skb->transport_header;
		ret->network_header = skb->network_header;
		ret->protocol = skb->protocol;
		return true;
	}
	if (newer || !BPF_CORE_READ(readers, reader_queue.qlen))
		return false;
	skb = BPF_CORE_READ(readers, reader_queue.prev);
	ret->packet = (__u64)skb;
	ret->head = BPF_CORE_READ(skb, head);
	ret->len = BPF_CORE_READ(skb, len);
	ret->data_len = BPF_CORE_READ(skb, data_len);
	ret->transport_header = BPF_CORE_READ(skb, transport_header);
	ret->network_header = BPF_CORE_READ(skb, network_header);
	ret->protocol = BPF_CORE_READ(skb, protocol);
	return true;
}

/* Return the two bytes after the headers, as a number; 0 if the datagram is shorter. */
static __always_inline __u32 first_bytes_of(const struct datagram *d, const struct udp_header *udp)
{
	__u32 there = d->len - d->data_len;

	if (d->len < sizeof(udp->first_bytes))
		return 0;
	return there < sizeof(udp->first_bytes) ? FIRST_BYTES_NONE : udp->first_bytes;
}

/*
 * Read @headers, from the sender's address to the first bytes. If the IP header is longer than
 * @ip_bytes, read @udp again from the UDP header's true place.
 */
static __always_inline bool read_headers(const struct datagram *d, __u32 ip_bytes, __u32 source_at,
					 void *headers, __u32 size, struct udp_header *udp)
{
	if (bpf_probe_read_kernel(headers, size, d->head + d->network_header + source_at))
		return false;
	return d->transport_header - d->network_header == (int)ip_bytes ||
	       !bpf_probe_read_kernel(udp, sizeof(*udp), d->head + d->transport_header);
}

/*
 * Find the sender of the newest datagram of @sk before the last @newer ones. A reader may take the datagram out
 * meanwhile, and its memory may be reused: a packet that is not for this port is ignored. Return the packet's
 * address; 0: there is none.
 */
static __always_inline __u64 peer_of_newest(const struct sock *sk, __u32 newer,
					    struct datagram_peer *ret)
{
	__be16 port = bpf_htons(sk->__sk_common.skc_num);
	struct ipv4_headers v4 = {};
	struct ipv6_headers v6 = {};
	struct datagram d;

	ret->peer = PEER_NONE;
	ret->first_bytes = FIRST_BYTES_NONE;
	if (!datagram_find(sk, newer, &d))
		return 0;
	if (d.protocol == bpf_htons(PROTOCOL_IP) &&
	    read_headers(&d, IP_HEADER_BYTES, 12, &v4, sizeof(v4), &v4.udp) &&
	    v4.udp.destination == port) {
		ret->peer = peer_of_ipv4(v4.source, v4.udp.source);
		ret->first_bytes = first_bytes_of(&d, &v4.udp);
	} else if (d.protocol == bpf_htons(PROTOCOL_IPV6) &&
		   read_headers(&d, IPV6_HEADER_BYTES, 8, &v6, sizeof(v6), &v6.udp) &&
		   v6.udp.destination == port) {
		ret->peer = peer_of_ipv6(v6.source, v6.udp.source);
		ret->first_bytes = first_bytes_of(&d, &v6.udp);
	}
	return d.packet;
}

/* ---- a system call that has sent one ---- */

/* The user's struct msghdr, as far as it is needed, and struct iovec. */
struct user_message {
	__u64 name;
	__u64 name_length; /* and padding */
	__u64 buffers;
};

struct user_buffer {
	__u64 base;
	__u64 length;
};

#define USER_MMSGHDR_BYTES 64 /* struct mmsghdr */

struct user_address {
	__u16 family;
	__be16 port;
	__be32 ipv4;
};

struct sent {
	__u64 name; /* address of the receiver's address; 0: the one that the socket is connected to */
	__u64 buffer; /* address of the first bytes; 0: not known */
};

static __always_inline bool read_message(__u64 address, struct sent *ret)
{
	struct user_message message;
	struct user_buffer buffer = {};

	if (bpf_probe_read_user(&message, sizeof(message), (void *)address))
		return false;
	ret->name = message.name;
	if (!bpf_probe_read_user(&buffer, sizeof(buffer), (void *)message.buffers) &&
	    buffer.length >= sizeof(__u16))
		ret->buffer = buffer.base;
	return true;
}

/* Find the call's receiver and its data. @number: which message of a batch. False: not known. */
static __always_inline bool read_call(const struct system_call *call, __u32 number,
				      struct sent *ret)
{
	if (call->of_32_bits)
		return false;
	if (call->number == NR_SENDTO) {
		ret->buffer = call->second;
		ret->name = call->fifth;
		return true;
	}
	if (call->number == NR_SENDMSG)
		return read_message(call->second, ret);
	if (call->number == NR_SENDMMSG)
		return read_message(call->second + (__u64)number * USER_MMSGHDR_BYTES, ret);
	if (call->number == NR_WRITE)
		ret->buffer = call->second;
	return call->number == NR_WRITE || call->number == NR_WRITEV;
}

static __always_inline __u64 peer_of_address(__u64 address)
{
	struct user_address head;
	__u64 ipv6[2];

	if (bpf_probe_read_user(&head, sizeof(head), (void *)address))
		return PEER_NONE;
	if (head.family != FAMILY_INET6)
		return peer_of_ipv4(head.ipv4, head.port);
	if (bpf_probe_read_user(ipv6, sizeof(ipv6), (void *)(address + sizeof(head))))
		return PEER_NONE;
	return peer_of_ipv6(ipv6, head.port);
}

/* The receiver of a datagram, and the address of its first bytes. */
struct receiver {
	__u64 peer;   /* PEER_NONE: not known */
	__u64 buffer; /* 0: not known */
	__u64 bytes;
};

/* Return the receiver of @bytes that @call has just sent from @sk. */
static __always_inline void receiver_of(const struct sock *sk, const struct system_call *call,
					__u32 number, __u32 bytes, struct receiver *ret)
{
	struct sent sent = {};
	bool known = read_call(call, number, &sent);

	ret->peer = known && sent.name ? peer_of_address(sent.name) : peer_of_socket(sk);
	ret->buffer = known ? sent.buffer : 0;
	ret->bytes = bytes;
}

static __always_inline __u32 first_bytes_sent(const struct receiver *to)
{
	__u16 first = 0;

	if (to->bytes < sizeof(first))
		return 0;
	if (!to->buffer || bpf_probe_read_user(&first, sizeof(first), (void *)to->buffer))
		return FIRST_BYTES_NONE;
	return first;
}

#endif
