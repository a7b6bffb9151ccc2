/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The kernel structures and fields that we read, declared by hand: CO-RE relocates each access on
 * the running kernel, so nothing ties the binary to the machine that built it.
 */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

#include <linux/types.h>

typedef _Bool bool;
#define true  1
#define false 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr___kernel {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	unsigned int skc_hash; /* of a connection's addresses and ports */
	__u16 skc_num;
	__be16 skc_dport;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr___kernel skc_v6_daddr;
	struct in6_addr___kernel skc_v6_rcv_saddr;
};

struct socket;

typedef struct {
	int counter;
} atomic_t;

struct sk_buff_head {
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
	int sk_err;
	__u16 sk_protocol;
	atomic_t sk_drops;
	struct sk_buff_head sk_receive_queue;
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct socket {
	struct sock *sk;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	__u32 srtt_us; /* smoothed round-trip time, times 8 */
	struct minmax rtt_min;
	__u32 total_retrans; /* segments */
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
	__u32 snd_una; /* the oldest byte that is not acknowledged */
};

struct inet_timewait_sock {
	volatile unsigned char tw_substate;
};

struct tcp_timewait_sock {
	struct inet_timewait_sock tw_sk;
};

struct file {
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	void *stack;
	struct files_struct *files;
	unsigned long nvcsw;  /* how often it went to sleep */
	unsigned long nivcsw; /* how often it was preempted */
};

struct pt_regs;

struct bpf_iter_meta {
	__u64 session_id;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* include/net/tcp_states.h; the same since 2.4. */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_FIN_WAIT1,
	TCP_FIN_WAIT2,
	TCP_TIME_WAIT,
	TCP_CLOSE,
	TCP_CLOSE_WAIT,
	TCP_LAST_ACK,
	TCP_LISTEN,
	TCP_CLOSING,
	TCP_NEW_SYN_RECV,
};

#define PROTO_UDP    17
#define PROTO_TCP    6
#define FAMILY_INET  2
#define FAMILY_INET6 10
#define ERR_TIMEDOUT 110

/* What takes no data from the queue: MSG_PEEK and MSG_ERRQUEUE, include/linux/socket.h. */
#define FLAGS_NO_READ (0x2 | 0x2000)

/* setsockopt(): have a socket call sockops programs with TX timestamps (since 6.15). */
#define SOCKET_LEVEL	  1    /* SOL_SOCKET */
#define SOCKET_BPF_FLAGS  1009 /* SK_BPF_CB_FLAGS */
#define SOCKET_TIMESTAMPS 1    /* SK_BPF_CB_TX_TIMESTAMPING */

#endif
