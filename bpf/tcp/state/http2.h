/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* State of connections with HTTP/2 and of their streams, with --http. Neighbours: streams.h, talk.h. */
#ifndef BPF_TCP_STATE_HTTP2_H
#define BPF_TCP_STATE_HTTP2_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "talk.h"
#include "wire/flow.h"
#include "protocol/hpack_request.h"
#include "protocol/http2.h"
#include "protocol/window.h"
#include "wire/stream.h"
#include "wire/window.h"

enum http2_flag {
	HTTP2_FOLLOWED = 1 << 0,
	HTTP2_GIVEN_UP = 1 << 1,
	HTTP2_LEAVING = 1 << 2, /* the server has sent GOAWAY */
	HTTP2_GRPC = 1 << 3,	/* a response was of gRPC */
	/* The connection is older than the observation: its first frames were not seen. */
	HTTP2_OLDER = 1 << 4,
};

/* With HTTP2_OLDER: the directions in which it is proved where frames begin, as bits. */
enum http2_proved {
	HTTP2_PROVED_IN = 1 << 0,
	HTTP2_PROVED_OUT = 1 << 1,
	HTTP2_PICKED_UP = HTTP2_PROVED_IN | HTTP2_PROVED_OUT,
};

/* One direction of a connection. */
struct http2_way {
	struct http2_side side;
	struct bytes bytes;	/* of the current call */
	__u64 begun_read_ns;	/* when the frame's first byte was read */
	__u64 begun_arrival_ns; /* when that byte arrived, if an earlier call read it */
	__u32 rest;		/* bytes of the current call that are left */
	__u32 skip;		/* bytes before the first frame */
	__u32 next;		/* sequence number after the last followed byte */
	__u32 begun;		/* whether any bytes were followed so far */
	__u32 resumed;		/* the frame began in an earlier call */
	__u32 begun_seq;	/* sequence number of the frame's first byte */
};

/* How many of the latest arrivals are kept: enough for a client with 100 streams at once. */
#define HTTP2_ARRIVALS 128 /* a power of 2 */

struct http2_arrivals {
	__u64 ns[HTTP2_ARRIVALS];
	__u64 range[HTTP2_ARRIVALS]; /* as arrival_range of struct conn; in order */
	__u32 next;		     /* number of arrivals so far */
	__u32 pad;
};

/* How much DATA the client lets the server send on the connection (window.h). */
struct http2_window {
	__s64 used;	 /* bytes of DATA sent, less those that WINDOW_UPDATE has granted */
	__u64 closed_ns; /* since when the window is closed; 0: it is open */
	__u64 shut_ns;	 /* how long it was closed before */
	__s64 first;	 /* of each stream, before it has used any: from SETTINGS */
	/* When SETTINGS raised the windows of streams last, and shut_ns with closed_ns then. */
	__u64 raised_ns, raised_shut_ns;
	__u32 raises; /* how often they did */
	__u32 pad;
	struct window_number number; /* in the client's frame */
};

/* The server's PINGs; ACKs come in their order. */
struct http2_pings {
	__u64 sent_ns; /* when the one that is timed was sent; 0: none is */
	__u32 timed;   /* its number */
	__u32 sent;    /* how many were */
	__u32 acknowledged;
	__u32 pad;
};

struct http2_conn {
	struct http2_way in, out;
	struct hpack_table fields;     /* of the server's responses */
	struct hpack_request requests; /* with --route */
	struct flow flow;	       /* with config.ring_bytes */
	__u32 flow_hash;
	__u32 number; /* unique to the connection */
	__u32 service;
	__u32 highest; /* highest identifier of a stream that the client opened */
	__u32 open;    /* open streams */
	__u32 open_most;
	__u32 opened; /* by the client, so far */
	__u32 ended;  /* whether its end is counted */
	__u32 pad;
	__u32 last;  /* with HTTP2_LEAVING: streams above are not served */
	__u32 flags; /* enum http2_flag */
	/* With HTTP2_OLDER: */
	__u32 proved; /* enum http2_proved */
	__u32 first;  /* the first stream that is followed; 0: none is yet */
	__u32 tries;  /* calls in which no frames were found where they were sought */
	struct http2_window window;
	struct http2_pings pings;
	struct stream_entry opening; /* the latest stream, while it is made */
};

/* Of a connection in clear text. In TLS the arrivals are not kept by sequence numbers (clear.h). */
struct http2_stored {
	struct http2_conn conn;
	struct http2_arrivals arrivals;
};

struct http2_conns_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct http2_stored);
};

/* [connection's number and stream's identifier] */
struct streams_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);
	__type(value, struct stream_entry);
};

extern struct http2_conns_map http2_conns SEC(".maps");
extern struct streams_map streams SEC(".maps");
/* Number of all connections followed so far. */
extern __u32 http2_next;

static __always_inline __u64 stream_key(const struct http2_conn *h, __u32 id)
{
	return (__u64)h->number << 32 | id;
}

static __always_inline struct stream_entry *stream_entry_of(const struct http2_conn *h, __u32 id)
{
	__u64 key = stream_key(h, id);

	return bpf_map_lookup_elem(&streams, &key);
}

static __always_inline struct stream *stream_of(const struct http2_conn *h, __u32 id)
{
	struct stream_entry *entry = stream_entry_of(h, id);

	return entry ? &entry->stream : NULL;
}

#endif
