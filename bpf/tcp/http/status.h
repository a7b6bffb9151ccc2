/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Statuses of responses, with --http: read from the write that begins a response, and counted. The
 * functions are not inline, so the verifier checks each once and not in every caller: status.bpf.c.
 * Neighbours: exchange.h (HTTP/1), streams.h (HTTP/2), protocol/status.h.
 */
#ifndef BPF_TCP_HTTP_STATUS_H
#define BPF_TCP_HTTP_STATUS_H

#include <linux/types.h>

#include "state.h"
#include "tcp/state/http2.h"

/* Instead of a service time: the response was not timed. */
#define STATUS_UNTIMED (~0ULL)

/* The write holds an interim response and nothing after it. */
#define STATUS_INTERIM (-1)

/* With --tls: the write begins no response, it belongs to the handshake. */
#define STATUS_HANDSHAKE (-2)

/* Above them is what the write says of pushes: enum push_suspicion. */
#define STATUS_BITS 16

/*
 * Return the status of the HTTP/1 response that the current write of @count bytes begins, or STATUS_UNKNOWN, both with a
 * suspicion. STATUS_INTERIM (then the connection has HTTP/1) and STATUS_HANDSHAKE have none. With --tls records are no
 * bytes of it: their text is looked at.
 */
int status_written(struct conn *c, __u32 count);
/* The same, without a suspicion, for the @length bytes at @text in the process's memory. */
int status_in(__u64 text, __u32 length);

/*
 * Count the response that has begun: of HTTP, or of a connection that may carry HTTP and whose write
 * cannot be read.
 */
int status_answered(const struct conn *c, int status);

/*
 * Follow the header blocks of the server's direction after each step, which has returned @said and
 * whose bytes end before @end. Return the status if HEADERS begin. If a block ends, note in its
 * stream what it says of gRPC.
 */
int status_in_block(struct http2_conn *h, __u32 said, __u64 end);

/*
 * The response of a stream has ended. If it is of gRPC, count its status. @said: the stream's grpc;
 * @stream: its flags and grpc_shape(); @conn: flags. A pointer would need the stream on the caller's stack.
 */
int status_ended(__u32 service, __u32 said, __u32 stream, __u32 conn, __u64 service_ns);

/* Count one more response of @service. Such functions must return something: 0. */
int status_count(__u32 service, __u32 status, __u64 service_ns);

#endif
