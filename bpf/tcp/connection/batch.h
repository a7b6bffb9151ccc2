/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Count the requests that begin in one read. A client that pipelines has several of them answered together, and they
 * are one exchange here. Of the reads that begin an exchange, one in 64 is looked at. Only protocols whose requests
 * are easily recognised are counted: HTTP/1 and RESP. Neighbours: exchange.h, batch.bpf.c.
 */
#ifndef BPF_TCP_CONNECTION_BATCH_H
#define BPF_TCP_CONNECTION_BATCH_H

#include "walk.h"

/* One of this many reads is looked at; a power of 2. */
#define BATCH_EVERY 64

/* Connections take different turns. Otherwise all short ones would be looked at, or none. */
static __always_inline bool batch_drawn(const struct sock *sk, const struct conn *c)
{
	return WALK_FOLLOWS && !((sk->__sk_common.skc_hash + c->index) & (BATCH_EVERY - 1)) &&
	       !(c->marks & MARK_TLS);
}

#define BATCH_BLANK_LINE 0x0d0a0d0a

/*
 * These are separate functions, so that the verifier follows each once instead of after each way that leads to it.
 */

/* Return whether @word, the first 4 bytes of a line, is the start of an HTTP method. */
int batch_is_method(__u32 word);

/* Look at a read of @count bytes that begins an exchange. @marks: the connection's. Return 0. */
int batch_look(__u32 service, __u32 marks, __u32 count);

#endif
