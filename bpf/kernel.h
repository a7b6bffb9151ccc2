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

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	atomic_t refs;
} refcount_t;

/* Embedded in struct netns_ipv4 since 6.2 (d1e5e6408b30 and others), a pointer there before. */
struct inet_timewait_death_row {
	refcount_t tw_refcount;
	int sysctl_max_tw_buckets;
};

struct netns_ipv4 {
	struct inet_timewait_death_row tcp_death_row;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
	__u64 net_cookie; /* no other namespace ever has the same */
};

struct netns_ipv4___pointer {
	struct inet_timewait_death_row *tcp_death_row;
};

struct net___pointer {
	struct netns_ipv4___pointer ipv4;
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
	unsigned long skc_flags; /* SOCKET_… below */
	struct in6_addr___kernel skc_v6_daddr;
	struct in6_addr___kernel skc_v6_rcv_saddr;
};

struct socket;

struct sk_buff_head {
	struct sk_buff *next;
	__u32 qlen;
};

typedef struct {
	int owned; /* by a process */
} socket_lock_t;

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct socket *sk_socket;
	__u32 sk_ack_backlog;
	__u32 sk_max_ack_backlog;
	void *sk_user_data; /* of who else uses the socket, as a sockmap */
	int sk_err;
	__u32 sk_userlocks : 4;
	__u16 sk_protocol;
	__u8 sk_shutdown; /* 1: no reads, 2: no writes */
	atomic_t sk_drops;
	struct sk_buff_head sk_receive_queue;
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	void *private_data;
	struct inode *f_inode;
};

struct socket {
	struct sock *sk;
	struct file *file;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct inet_connection_sock {
	const void *icsk_ulp_ops; /* set if the kernel handles a protocol above TCP: its TLS */
	struct {
		__u8 pending;	/* 0: no acknowledgement waits to be sent */
		__u32 lrcvtime; /* when data came last, in ticks */
	} icsk_ack;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 srtt_us; /* smoothed round-trip time, times 8 */
	struct minmax rtt_min;
	__u32 total_retrans; /* segments */
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
	__u32 snd_una;	      /* the oldest byte that is not acknowledged */
	__u64 bytes_received; /* payload */
	__u32 data_segs_in;   /* segments with data, also those that were thrown away */
	__u32 lsndtime;	      /* when data was sent last, in ticks */
	__u32 snd_nxt;	      /* after the last byte that was sent */
	__u32 snd_sml;	      /* after the last sent segment that was not a full one */
	__u32 mss_cache;      /* bytes in a full one */
	__u8 nonagle : 4;     /* 0: Nagle's algorithm is in force */
	int linger2;	      /* TCP_LINGER2; negative: no FIN_WAIT2 */
	/* For how long there was something to send, in ticks, by what held it up. */
	__u32 chrono_start;
	__u32 chrono_stat[3];
	__u8 chrono_type : 2;  /* 0: there is nothing */
	__u64 tcp_clock_cache; /* TCP's latest reading of CLOCK_MONOTONIC (tcp/connection/clock.h) */
	__u32 is_mptcp : 1;
};

struct inet_timewait_sock {
	volatile unsigned char tw_substate;
};

struct tcp_timewait_sock {
	struct inet_timewait_sock tw_sk;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

#define TASK_EXITING 0x4 /* PF_EXITING */

struct task_struct {
	void *stack;
	unsigned int flags;
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

/* Return whether a connection's own side is shut on entering this state: nothing more is written. */
static inline __attribute__((always_inline)) int tcp_ends_writes(int state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_LAST_ACK || state == TCP_CLOSE;
}

#define PROTO_UDP    17
#define PROTO_TCP    6
#define FAMILY_INET  2
#define FAMILY_INET6 10
#define ERR_TIMEDOUT 110

/* Flags of reads that take no data from the queue: MSG_PEEK and MSG_ERRQUEUE, include/linux/socket.h. */
#define FLAGS_NO_READ (0x2 | 0x2000)

/* MSG_WAITALL: the read returns when all that it asked for has come. */
#define FLAG_WAIT_ALL 0x100

/* MSG_TRUNC: TCP discards the bytes that a read counts, instead of copying them. */
#define FLAG_TRUNCATES 0x20

/* Of skc_flags, by enum sock_flags (include/net/sock.h). */
#define SOCKET_DEAD (1 << 0) /* no process has it any more */
#define SOCKET_DONE (1 << 1) /* the peer's FIN has come */

/* SOCK_BINDPORT_LOCK, include/net/sock.h: bind() named the socket's port. Accepted sockets do not have it. */
#define LOCK_BOUND_PORT 8

/* setsockopt(): have a socket call sockops programs with TX timestamps (since 6.15). */
#define SOCKET_LEVEL	  1    /* SOL_SOCKET */
#define SOCKET_BPF_FLAGS  1009 /* SK_BPF_CB_FLAGS */
#define SOCKET_TIMESTAMPS 1    /* SK_BPF_CB_TX_TIMESTAMPING */

#endif
