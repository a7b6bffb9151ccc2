/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Plain text of TLS, with --tls: the text that a server gets from OpenSSL's SSL_read() and hands to SSL_write(). A
 * thread that is in such a call and reads from a socket reads for this call. So OpenSSL's connection and ours find
 * each other, usually in the handshake, without a look into OpenSSL's structures. Text is looked at where it is. A
 * request's route and its response's status are kept until the response passes the socket, and nothing else.
 *
 * Functions are not inline, as those of status.h: clear.bpf.c. Neighbours: status.h and route.h, which look at the
 * text; tls.h, which finds exchanges by records.
 */
#ifndef BPF_TCP_CLEAR_H
#define BPF_TCP_CLEAR_H

#include "state.h"
#include "wire/clear.h"

/* A call that a thread is in. */
struct clear_call {
	__u64 ssl; /* OpenSSL's connection: a number for us */
	__u64 text;
	__u64 length; /* of SSL_read_ex(): where the length is written to */
	__u64 kind;   /* enum clear_kind */
};

/* OpenSSL's connection of a process. Another one may get the same address later. */
struct clear_key {
	__u64 ssl;
	__u32 process;
	__u32 pad;
};

/* Ours. */
struct clear_socket {
	__u64 established_ns;
	__u32 flow_hash;
	__u32 pad;
};

struct clear_conn {
	struct clear_socket socket;
	__s32 answer; /* status of the response that was handed over; STATUS_UNKNOWN after one use */
	__u8 route;   /* of the request that was read last, likewise ROUTE_TLS */
	__u8 asked;   /* its final response was not handed over yet */
	__u8 pad[2];
	struct route_look look;
};

struct clear_calls_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);	/* the thread */
	__type(value, struct clear_call);
};

struct clear_conns_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_key);
	__type(value, struct clear_conn);
};

struct clear_sockets_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_socket);
	__type(value, struct clear_key);
};

extern struct clear_calls_map clear_calls SEC(".maps");
extern struct clear_conns_map clear_conns SEC(".maps");
extern struct clear_sockets_map clear_sockets SEC(".maps");
/* A state of zeros, for which the stack has no room. */
extern __u64 clear_nothing[sizeof(struct clear_conn) / sizeof(__u64)];

/* Return whether the socket passes records. TLS in the kernel takes plain text. */
static __always_inline bool clear_is_needed(const struct conn *c)
{
	return (c->marks & (MARK_TLS | MARK_SETTLED)) == MARK_TLS;
}

/*
 * The current system call writes records. Return the status of the response that they begin, or what else
 * status_written() of status.h returns.
 */
int clear_answer(const struct conn *c);

/* Return the route of the request that they answer, once; ROUTE_TLS: it is not known. */
int clear_route(const struct conn *c);

#endif
