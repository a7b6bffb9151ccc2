/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* An open HTTP/2 stream on the kernel side, read by user space to find those in flight. */
#ifndef WIRE_STREAM_H
#define WIRE_STREAM_H

#include <linux/types.h>

/* With observer_config.http: maximum of streams at once. Streams without room are counted. */
#define STREAMS_AT_ONCE 32768

enum stream_flag {
	STREAM_RESPONDING = 1 << 0, /* the response has begun */
	STREAM_SAMPLED = 1 << 1,    /* an event will report it */
	STREAM_CARRIED = 1 << 2,    /* its response began in an earlier epoch: counted as carried */
	STREAM_GRPC = 1 << 3,	    /* its response is of gRPC */
	STREAM_OBSCURE = 1 << 4,    /* a field of its response is not known */
	STREAM_EVENTS =
		1 << 5, /* its response is one of server-sent events, and over with its head */
};

/* Messages of gRPC in one direction (bpf/protocol/grpc.h). All zeros: none has begun. */
struct grpc_messages {
	__u32 count; /* whole ones */
	__u32 left; /* of the message under way: bytes to come; before, what was read of its length */
	__u8 have;  /* bytes of its prefix */
	__u8 lost;  /* where messages begin is not known any more */
	__u8 ended; /* the client's END_STREAM was read */
	__u8 late; /* data of the client was read while the response was under way, and is counted */
};

/* CLOCK_MONOTONIC, nanoseconds. */
struct stream {
	__u64 start_ns; /* max(arrival, accepted); 0: not timed */
	__u64 accept_delay_ns;
	__u64 first_read_ns;
	__u64 last_read_ns;
	__u64 first_write_ns;
	__u64 last_write_ns;
	__u32 service;
	__u32 bytes_in; /* of its frames */
	__u32 bytes_out;
	__u32 pid;	      /* of a sampled stream: the process that began the response */
	__u16 respond_bucket; /* see struct conn */
	__u16 flags;	      /* enum stream_flag */
	__u8 grpc;	      /* 1 + the status of gRPC at the end of the response; 0: none */
	__u8 route;	      /* with --route: of its request, as in struct conn */
	__u8 pad[2];
};

_Static_assert(sizeof(struct stream) == 6 * 8 + 4 * 4 + 8, "no hidden padding");

/* How much DATA the client lets the server send on the stream (bpf/tcp/http/window.h). */
struct stream_window {
	__s64 used;	 /* bytes of DATA sent, less those that WINDOW_UPDATE has granted */
	__u64 closed_ns; /* since when the window is closed, and the response is not over; 0: open */
	__u64 opened_ns; /* then: until when it was; 0: not yet */
	__u64 shut_ns; /* at closed_ns, opened_ns or the latest frame: how long the connection's was closed so far */
};

/* The value of the map. Only its first part is ever copied to the stack, which has no room for more. */
struct stream_entry {
	struct stream stream;
	struct grpc_messages in;  /* whatever the protocol, until the data shows that it is none */
	struct grpc_messages out; /* with STREAM_GRPC */
	__u32 untold;		  /* messages of the client that are in no sum yet */
	__u32 raises;		  /* at window.closed_ns: those of the connection */
	struct stream_window window;
};

_Static_assert(sizeof(struct stream_entry) ==
		       sizeof(struct stream) + 2 * 12 + 8 + sizeof(struct stream_window),
	       "no hidden padding");

#endif
