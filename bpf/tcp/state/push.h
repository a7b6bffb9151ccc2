/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* State of connections whose messages or events are counted, with --http. Neighbours: pushes.h, talk.h. */
#ifndef BPF_TCP_STATE_PUSH_H
#define BPF_TCP_STATE_PUSH_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "talk.h"
#include "protocol/command.h"
#include "protocol/events.h"
#include "protocol/websocket.h"

#define PUSH_CHUNK 64 /* a power of 2 */

enum push_kind {
	PUSH_NONE,
	PUSH_HEAD, /* of the response, which shows what follows */
	PUSH_WEBSOCKET,
	PUSH_EVENTS,
	PUSH_OVER,   /* the response has ended */
	PUSH_LOST,   /* bytes were not seen, or not understood */
	PUSH_SOUGHT, /* perhaps frames of WebSocket on an older connection (older_pushes.h) */
};

/* The start of a write that answers a request. */
enum push_suspicion {
	PUSH_UNSUSPECTED,
	PUSH_SUSPECTED, /* such a response, or perhaps one */
	PUSH_CUT_SHORT, /* no response of HTTP/1 */
};

struct push_sums {
	__u64 messages; /* or events */
	__u64 payload;
	__u64 control;
};

/* One direction. Both may be under way at once, in two threads. */
struct push_side {
	struct bytes bytes; /* of the current read or write */
	__u64 text;	    /* in TLS: its plain text, in one piece; 0: the system call's bytes */
	__u32 rest;	    /* bytes of it that are not in the chunk yet */
	__u32 have;	    /* bytes in the chunk */
	__u32 at;	    /* of these, the number taken */
	__u32 end;	    /* the sequence number after the last byte that was followed */
	__u8 chunk[PUSH_CHUNK];
	struct websocket_side frames;
	struct push_sums sums; /* of the current read or write */
	struct push_sums held; /* of earlier ones, while PUSH_SOUGHT */
};

struct push_conn {
	struct push_side in, out;
	struct command_side head; /* the response (http1.h) */
	struct events_side events;
	__u32 service;
	__u8 kind;   /* enum push_kind */
	__u8 missed; /* of WebSocket: bytes were read with the request that may be frames */
	__u16 tries; /* how often the client's bytes were not what they seemed */
	__u32 older; /* enum older_told (older_pushes.bpf.c) */
	__u32 pad;
};

struct push_conns_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct push_conn);
};

static __always_inline int push_has_frames(const struct push_conn *p)
{
	__u8 kind = *(const volatile __u8 *)&p->kind;

	return kind == PUSH_WEBSOCKET || kind == PUSH_SOUGHT;
}

extern struct push_conns_map push_conns SEC(".maps");

#endif
