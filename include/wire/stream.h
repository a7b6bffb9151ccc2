/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* A stream of HTTP/2 that is open: what the kernel side keeps of it, and user space reads to tell which are under way. */
#ifndef WIRE_STREAM_H
#define WIRE_STREAM_H

#include <linux/types.h>

/* With observer_config.http: streams that are followed at once. What finds no room is counted. */
#define STREAMS_AT_ONCE 32768

enum stream_flag {
	STREAM_RESPONDING = 1 << 0, /* the response has begun */
	STREAM_SAMPLED = 1 << 1,    /* will be told as an event */
	STREAM_CARRIED = 1 << 2, /* its response began in an earlier epoch, and this is counted */
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
	__u32 pid;	      /* of a sampled one: that began the response */
	__u16 respond_bucket; /* as in struct conn */
	__u16 flags;	      /* enum stream_flag */
	__u32 pad;
};

_Static_assert(sizeof(struct stream) == 6 * 8 + 4 * 4 + 8, "no hidden padding");

#endif
