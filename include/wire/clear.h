/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Which function of a TLS library a probe is at, with --tls. User space attaches each with its CLEAR_PROBE(). */
#ifndef WIRE_CLEAR_H
#define WIRE_CLEAR_H

enum clear_kind {
	CLEAR_NONE, /* no probe has this number */
	CLEAR_HANDSHAKE,
	CLEAR_WRITE,
	CLEAR_READ,
};

/*
 * How a function takes the length of the buffer or the text, and says how many bytes it has moved. The connection, the
 * text and the length are its first three arguments.
 */
enum clear_form {
	CLEAR_INT,  /* an int; returns the bytes, or 0 or less */
	CLEAR_SIZE, /* a size_t; returns the bytes as ssize_t, or 0 or less */
	CLEAR_AT, /* a size_t; returns 1, and writes the bytes to where the fourth argument points, or 0 or less */
	CLEAR_GO, /* as CLEAR_SIZE, in the registers of Go's ABIInternal; a goroutine is in the call, not a thread */
};

/* The cookie of a probe. */
#define CLEAR_PROBE(kind, form) ((kind) | (form) << 8)
#define CLEAR_PROBE_KIND(probe) ((probe) & 0xff)
#define CLEAR_PROBE_FORM(probe) ((probe) >> 8 & 0xff)

/* Maximum of threads that are in such a function at once. */
#define CLEAR_CALLS 8192
/*
 * Maximum of goroutines that are in one: each connection that waits for a request has one. Beyond it the least recent one is
 * lost.
 */
#define CLEAR_GOROUTINES 65536
/* Maximum of connections with a state; beyond it the least recently used one is lost. */
#define CLEAR_CONNS 16384
/* Maximum of those whose streams of HTTP/2 are followed; beyond it they are `multiplexed`. */
#define CLEAR_STREAMS 4096

#endif
