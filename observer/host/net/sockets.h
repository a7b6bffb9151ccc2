/* SPDX-License-Identifier: MIT */
/*
 * The TCP and UDP sockets of the network namespace that we are in. They come from inet_diag, where the kernel selects
 * the states, or from /proc/net as the last resort. Needs no privilege.
 */
#ifndef OBSERVER_HOST_NET_SOCKETS_H
#define OBSERVER_HOST_NET_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

/* include/net/tcp_states.h; the same since 2.4, the last since 6.8 (91051f003948). */
enum socket_state {
	SOCKET_ESTABLISHED = 1,
	SOCKET_SYN_SENT,
	SOCKET_SYN_RECV,
	SOCKET_FIN_WAIT1,
	SOCKET_FIN_WAIT2,
	SOCKET_TIME_WAIT,
	SOCKET_CLOSE,
	SOCKET_CLOSE_WAIT,
	SOCKET_LAST_ACK,
	SOCKET_LISTEN,
	SOCKET_CLOSING,
	SOCKET_NEW_SYN_RECV,
	SOCKET_BOUND_INACTIVE, /* bound, neither connected nor listening */
};

#define SOCKET_BIT(state) (1U << (state))
/* Everything that occupies a tuple. */
#define SOCKET_TUPLES                                                   \
	(SOCKET_BIT(SOCKET_ESTABLISHED) | SOCKET_BIT(SOCKET_SYN_SENT) | \
	 SOCKET_BIT(SOCKET_SYN_RECV) | SOCKET_BIT(SOCKET_FIN_WAIT1) |   \
	 SOCKET_BIT(SOCKET_FIN_WAIT2) | SOCKET_BIT(SOCKET_TIME_WAIT) |  \
	 SOCKET_BIT(SOCKET_CLOSE_WAIT) | SOCKET_BIT(SOCKET_LAST_ACK) | SOCKET_BIT(SOCKET_CLOSING))
/* The tuples that a process may still hold. */
#define SOCKET_OWNED (SOCKET_TUPLES & ~(SOCKET_BIT(SOCKET_SYN_RECV) | SOCKET_BIT(SOCKET_TIME_WAIT)))

struct socket_address {
	uint8_t bytes[16]; /* the first four for AF_INET */
};

/* A socket. In TIME_WAIT the kernel keeps only a small stand-in for a closed socket, here called its twin. */
struct resource_socket {
	uint8_t family; /* AF_INET also for IPv4-mapped addresses */
	uint8_t state;	/* enum socket_state */
	bool time_wait; /* a twin; in state FIN_WAIT2 the peer's FIN is missing */
	uint16_t source_port;
	uint16_t destination_port;
	struct socket_address source;
	struct socket_address destination;
	uint32_t expires_ms;	/* of a twin */
	uint32_t receive_queue; /* bytes; of a listener: connections waiting for accept() */
	uint32_t send_queue;	/* bytes; of a listener: its limit, 0 if not known */
	uint32_t drops;		/* with SOCKET_MEMORY */
	uint32_t interface;	/* that it is bound to; 0: none */
	uint8_t timer;		/* enum socket_timer */
	/* With SOCKET_INFO: */
	uint32_t silent_ms;	 /* since the peer's last segment */
	uint32_t sent_ms;	 /* since data was last sent, again too */
	uint32_t received_ms;	 /* since data last came */
	uint32_t unsent;	 /* bytes of send_queue that were never sent */
	uint64_t bytes_received; /* in all, read or not; the FIN counts as one */
	uint64_t bytes_sent;	 /* in all, again too */
	uint32_t user;		 /* who opened it; of a twin 0 */
	uint64_t inode;		 /* 0: no process has it */
	uint64_t cookie;	 /* 0: not known, in /proc */
};

/* The running timer of a socket (idiag_timer). */
enum socket_timer {
	SOCKET_RETRANSMITS = 1, /* sends data again until the peer acknowledges */
	SOCKET_PROBES = 4,	/* probes until the peer makes room */
};

enum socket_detail {
	SOCKET_PLAIN,
	SOCKET_MEMORY,
	SOCKET_INFO
};

enum socket_source {
	SOCKETS_NETLINK,
	SOCKETS_PROCFS
};

typedef void (*socket_visit)(void *context, const struct resource_socket *socket);

/*
 * Visit the TCP sockets whose state is in @states (bits of SOCKET_BIT). /proc shows neither drops nor silence, nor
 * sockets that are only bound. Return 0 or -errno.
 */
int sockets_tcp(enum socket_source source, uint32_t states, enum socket_detail detail,
		socket_visit visit, void *context);

/*
 * Read one TCP socket again, with SOCKET_INFO, by its ends and cookie. SOCKET_INFO locks the socket, so it is asked
 * only of those that matter. Return 0, -ENOENT if the socket is gone, or -errno. /proc has no such way.
 */
int sockets_again(struct resource_socket *socket);

/* Visit the UDP sockets from /proc/net/udp, which alone always shows their drops. 0 or -errno. */
int sockets_udp(socket_visit visit, void *context);

/* Return SOCKETS_NETLINK if the kernel answers it, otherwise SOCKETS_PROCFS. */
enum socket_source sockets_source(void);

/*
 * Visit the sockets of one table of /proc/net ("tcp", "udp6", …) in the namespace of process @pid
 * (0: our own). A missing table of IPv6 counts as empty. 0 or -errno.
 */
int sockets_table(uint32_t pid, const char *name, uint32_t states, socket_visit visit,
		  void *context);

#endif
