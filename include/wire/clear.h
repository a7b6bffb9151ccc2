/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Which function of OpenSSL a probe is at, with --tls. User space attaches each with its number. */
#ifndef WIRE_CLEAR_H
#define WIRE_CLEAR_H

enum clear_kind {
	CLEAR_NONE, /* no probe has this number */
	CLEAR_HANDSHAKE,
	CLEAR_WRITE,
	CLEAR_WRITE_EX, /* gives the length through a pointer, like CLEAR_READ_EX */
	CLEAR_READ,
	CLEAR_READ_EX,
};

/* Maximum of threads that are in such a function at once. */
#define CLEAR_CALLS 8192
/* Maximum of connections with a state; beyond it the least recently used one is lost. */
#define CLEAR_CONNS 16384
/* Maximum of those whose streams of HTTP/2 are followed; beyond it they are `multiplexed`. */
#define CLEAR_STREAMS 4096

#endif
