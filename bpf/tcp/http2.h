/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* State of connections with HTTP/2 and of their streams, with --http. Neighbours: streams.h, talk.h. */
#ifndef BPF_TCP_HTTP2_H
#define BPF_TCP_HTTP2_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "talk.h"
#include "wire/flow.h"
#include "protocol/http2.h"
#include "wire/stream.h"

enum http2_flag {
	HTTP2_FOLLOWED = 1 << 0,
	HTTP2_GIVEN_UP = 1 << 1,
	HTTP2_LEAVING = 1 << 2, /* the server has sent GOAWAY */
};

/* One direction of a connection. */
struct http2_way {
	struct http2_side side;
	struct bytes bytes;	/* of the call under way, as are: */
	__u64 begun_read_ns;	/* when the first byte of the frame was read, and, if it */
	__u64 begun_arrival_ns; /* has begun in an earlier call, when it had arrived */
	__u32 rest;		/* bytes of the call that were not passed yet */
	__u32 skip;		/* bytes before the first frame */
	__u32 next;		/* sequence number behind the last byte that was followed */
	__u32 begun;		/* some were */
	__u32 resumed;		/* the frame has begun in an earlier call */
	__u32 begun_seq;	/* of its first byte */
};

/* When bytes became readable, the latest so many times: a client that has a hundred streams sends as often. */
#define HTTP2_ARRIVALS 128 /* a power of 2 */

struct http2_arrivals {
	__u64 ns[HTTP2_ARRIVALS];
	__u64 range[HTTP2_ARRIVALS]; /* as in struct conn; in order */
	__u32 next;		     /* how many there were, ever */
	__u32 pad;
};

struct http2_conn {
	struct http2_way in, out;
	struct hpack_table fields; /* of the server's responses */
	struct flow flow;	   /* with config.ring_bytes */
	__u32 flow_hash;
	__u32 number; /* no other connection has it */
	__u32 service;
	__u32 highest; /* stream that the client has opened */
	__u32 open;    /* streams */
	__u32 last;    /* with HTTP2_LEAVING: streams above are not served */
	__u32 flags;   /* enum http2_flag */
	struct http2_arrivals arrivals;
};

struct http2_conns_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct http2_conn);
};

/* [connection's number and stream's identifier] */
struct streams_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);
	__type(value, struct stream);
};

extern struct http2_conns_map http2_conns SEC(".maps");
extern struct streams_map streams SEC(".maps");
/* Connections that were followed, ever. */
extern __u32 http2_next;

#endif
