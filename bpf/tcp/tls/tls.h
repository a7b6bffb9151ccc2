/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Finds the kinds of records of a TLS connection by their headers, which are not encrypted:
 * handshake, alert, ticket, or message (RFC 8446; RFC 5246 for 1.2). Also finds the protocol on
 * which the two sides have agreed, as far as it shows. Neighbours: tls.bpf.c, walk.h (which walks from header
 * to header), speaks.h.
 */
#ifndef BPF_TCP_TLS_TLS_H
#define BPF_TCP_TLS_TLS_H

#include "tcp/connection/walk.h"

enum tls_record_type {
	TLS_CHANGE_CIPHER_SPEC = 20,
	TLS_ALERT,
	TLS_HANDSHAKE,
	TLS_APPLICATION_DATA,
};

#define TLS_HEADER  5
#define TLS_LONGEST (16384 + 2048)

enum tls_flag {
	TLS_OPEN = 1 << 0, /* the handshake is over */
	TLS_1_3 = 1 << 1,  /* the server's handshake is encrypted */
	TLS_CLIENT_HELLO = 1 << 2,
	TLS_SERVER_HELLO = 1 << 3,
	TLS_CLIENT_CIPHER = 1 << 4, /* ChangeCipherSpec */
	TLS_SERVER_CIPHER = 1 << 5,
	TLS_CLIENT_FINISHED = 1 << 6, /* 1.2 */
	TLS_SERVER_FINISHED = 1 << 7,
	TLS_OFFER_KNOWN = 1 << 8, /* the client's offers by ALPN */
	TLS_OFFERS_HTTP2 = 1 << 9,
	TLS_OFFERS_HTTP1 = 1 << 10,
	TLS_CHOICE_KNOWN = 1 << 11, /* 1.2: the server's choice */
	TLS_CHOSE_HTTP2 = 1 << 12,
	TLS_CHOSE_HTTP1 = 1 << 13,
	TLS_ASKED = 1 << 14,	 /* the first request has begun */
	TLS_TOGETHER = 1 << 15,	 /* it was read together with the end of the handshake */
	TLS_ANSWERED = 1 << 16,	 /* the first response has begun */
	TLS_STRANGE = 1 << 17,	 /* not understood here */
	TLS_LOST = 1 << 18,	 /* the bytes are no records */
	TLS_UNDECIDED = 1 << 19, /* plain text will show what it carries: HTTP/1 until then */
};

/* The protocol that the connection carries. */
enum tls_carries {
	TLS_CARRIES_ANY,
	TLS_CARRIES_HTTP1,
	TLS_CARRIES_HTTP2,
	TLS_CARRIES_UNKNOWN,
	TLS_CARRIES_HIDDEN, /* its plain text will show it (clear.h) */
};

static __always_inline __u32 field_u16(const struct talk_side *s, __u32 at)
{
	return (__u32)s->field[at] << 8 | s->field[at + 1];
}

static __always_inline bool tls_is_header(const __u8 *header)
{
	__u32 length = (__u32)header[3] << 8 | header[4];

	return header[0] >= TLS_CHANGE_CIPHER_SPEC && header[0] <= TLS_APPLICATION_DATA &&
	       header[1] == 3 && header[2] <= 4 && length && length <= TLS_LONGEST;
}

/*
 * These are separate functions, so that the verifier follows each once instead of after each way that leads to it.
 * @service: the connection's.
 */

/* The first record's header is in the client's field. Return 0. */
int tls_start(struct talk *t);

/*
 * Handle the records of a read or a write. Return 0: some bytes are no record, or cannot be seen; else 1. @reading: a
 * request is under way.
 */
int tls_walk_read(struct talk *t, __u32 service, __u32 reading);
int tls_walk_wrote(struct talk *t);

/* The handshake is over: count how long it took. Return which protocol follows (enum tls_carries). */
int tls_opened(struct talk *t, __u32 service);

#endif
