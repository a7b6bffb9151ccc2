/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Messages of WebSocket and server-sent events in plain text of TLS, with --tls. The text goes through the parsers of pushes.h.
 * Their state is in a hash by the library's connection, because probes cannot reach storage of sockets.
 *
 * The head is taken when it is handed over, as the socket's programs have to know what follows before the call returns.
 * All other text is taken when the call has moved it.
 *
 * The functions are not inline, as those of status.h: clear_pushes.bpf.c. Neighbours: clear.h, pushes.h.
 */
#ifndef BPF_TCP_TLS_CLEAR_PUSHES_H
#define BPF_TCP_TLS_CLEAR_PUSHES_H

#include "tcp/connection/clear.h"
#include "tcp/state/push.h"

struct clear_push {
	struct push_conn conn;
	struct clear_socket socket;
	__u32 ahead; /* bytes that were taken, and not moved yet */
	__u32 pad;
};

/* Not of the kind that drops the oldest entry: text would be missed unnoticed. */
struct clear_pushes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_key);
	__type(value, struct clear_push);
};

extern struct clear_pushes_map clear_pushes SEC(".maps");
extern __u64 clear_push_nothing[sizeof(struct clear_push) / sizeof(__u64)];

/* A request's first text after it is handed over: does its head begin pushes? conn->pushes says it. Return 0. */
int clear_pushes_begin(struct clear_conn *conn, __u64 ssl, __u64 text, __u32 length);

/* A call has moved @length bytes of text. Return whether they were pushes, or what clients send in between. */
int clear_pushes_moved(__u64 ssl, __u32 kind, __u64 text, __u32 length);

/* A response has begun. If pushes follow, it is over, and what the socket passes is no exchange. Return 0. */
int clear_pushes_follow(struct conn *c);

#endif
