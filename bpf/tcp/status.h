/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Statuses of responses, with --http: read from the write that begins a response, and counted. The
 * functions are not inline, so the verifier checks each once and not in every caller: status.bpf.c.
 * Neighbours: exchange.h (HTTP/1), streams.h (HTTP/2), protocol/status.h.
 */
#ifndef BPF_TCP_STATUS_H
#define BPF_TCP_STATUS_H

#include <linux/types.h>

#include "protocol/http2.h"
#include "state.h"

/* For status_count(): the response was not timed. */
#define STATUS_UNTIMED (~0ULL)

/* The write holds an interim response and nothing after it. */
#define STATUS_INTERIM (-1)

/*
 * Return the status of the HTTP/1 response that the current write of @count bytes begins,
 * STATUS_UNKNOWN or STATUS_INTERIM.
 */
int status_written(__u32 count);

/*
 * Count the response that has begun: of HTTP, or of a connection that may carry HTTP and whose write
 * cannot be read.
 */
int status_answered(const struct conn *c, int status);

/*
 * Follow the header blocks of the server's direction after each step, which has returned @said and
 * whose bytes end before @end. Return the status if HEADERS begin.
 */
int status_in_block(const struct http2_side *side, struct hpack_table *fields, __u32 said,
		    __u64 end);

/* Count one more response of @service. Both return 0, as such functions must return something. */
int status_count(__u32 service, __u32 status, __u64 service_ns);

#endif
