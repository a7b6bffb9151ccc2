/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The status of responses, with --http: looked at in the write with which a response begins, and counted. These are
 * functions of their own, which the verifier goes through once, not once for each way to them: status.bpf.c.
 * Neighbours: exchange.h (HTTP/1), streams.h (HTTP/2), protocol/status.h.
 */
#ifndef BPF_TCP_STATUS_H
#define BPF_TCP_STATUS_H

#include <linux/types.h>

#include "protocol/http2.h"
#include "state.h"

/* With status_count(): the response was not timed. */
#define STATUS_UNTIMED (~0ULL)

/* The write has an interim response, and nothing behind it. */
#define STATUS_INTERIM (-1)

/* That of HTTP/1's response which the write under way begins, of @count bytes; STATUS_UNKNOWN, STATUS_INTERIM. */
int status_written(__u32 count);

/* The response has begun, and has it: one of HTTP, or of what is or may be that and cannot be looked at. */
int status_answered(const struct conn *c, int status);

/*
 * Behind a step in a frame of the server's with a header block: what it has come to (@said), and where its bytes end in
 * the process's memory. That of HEADERS which begin with it.
 */
int status_in_block(const struct http2_side *side, struct hpack_table *fields, __u32 said,
		    __u64 end);

/* One more response of @service had it. Both return 0: such functions have to return something. */
int status_count(__u32 service, __u32 status, __u64 service_ns);

#endif
