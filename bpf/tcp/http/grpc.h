/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Messages of gRPC and kinds of calls, with --http. Only the response shows whether a request is of gRPC. So the
 * messages of every request are counted until its data shows that it has none. They enter a sum with the response.
 *
 * The functions are not inline, as those of status.h: grpc.bpf.c. Neighbours: streams.h, protocol/grpc.h.
 */
#ifndef BPF_TCP_HTTP_GRPC_H
#define BPF_TCP_HTTP_GRPC_H

#include "protocol/grpc.h"
#include "tcp/state/http2.h"

/* Limit of messages and parts of prefixes in what one read or write has of a frame: the smallest messages that fill 256 KiB. */
#define GRPC_STEPS 65536
/* The same while nothing says that it is gRPC: zeros look like empty messages. */
#define GRPC_STEPS_UNSURE 1024

/*
 * A step in the client's DATA has returned @said; its bytes end before @end (0: they were not seen). Update all that its
 * stream has of the request.
 */
int grpc_read(struct http2_conn *h, __u32 said, __u64 end, __u64 now);

/* The same for the server's DATA, but only the messages. */
int grpc_wrote(struct http2_conn *h, __u64 end);

/* The response of @st is of gRPC. */
int grpc_begins(__u32 service, struct stream_entry *st);

/* The numbers of messages of a stream, as bits in the copy of its flags: for status_ended(). */
#define GRPC_SHAPE_IN	 8
#define GRPC_SHAPE_OUT	 10
#define GRPC_SHAPE_FINAL 12 /* of the server's direction, if it ends with status 0 */
#define GRPC_SHAPE_MASK	 3

static __always_inline __u32 grpc_shape(const struct stream_entry *st)
{
	return grpc_number(&st->in, st->in.ended) << GRPC_SHAPE_IN |
	       grpc_number(&st->out, 0) << GRPC_SHAPE_OUT |
	       grpc_number(&st->out, 1) << GRPC_SHAPE_FINAL;
}

static __always_inline __u32 grpc_kind_of(__u32 shape, int ok)
{
	__u32 out = shape >> (ok ? GRPC_SHAPE_FINAL : GRPC_SHAPE_OUT);

	return grpc_kind(shape >> GRPC_SHAPE_IN & GRPC_SHAPE_MASK, out & GRPC_SHAPE_MASK);
}

#endif
