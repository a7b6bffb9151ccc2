/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The first line of a request of HTTP/1 (RFC 9112, 3), byte by byte. It has a method, and a target whose
 * path up to the query matters. Bytes are kept as they came, percent-encoded ones included. The line may
 * come in any number of parts. Neighbours: route.h, status.h.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_REQUEST_H
#define BPF_PROTOCOL_REQUEST_H

#include <linux/types.h>

#include "route.h"

/* A longer method is none. */
#define REQUEST_METHOD_LONGEST 32

enum request_stage {
	REQUEST_METHOD,
	REQUEST_TARGET, /* its first byte */
	REQUEST_SCHEME, /* of an absolute target, up to the colon */
	REQUEST_SLASH,	/* the first one of two after the colon */
	REQUEST_SLASHES,
	REQUEST_AUTHORITY,
	REQUEST_PATH,
	REQUEST_OVER, /* from here on: no byte is wanted */
	REQUEST_STRANGE,
};

/* All zeros: no byte has come yet. */
struct request_line {
	struct route_text method, path;
	__u8 stage;  /* enum request_stage */
	__u8 length; /* of the method so far */
	__u8 pad[2];
};

static inline __attribute__((always_inline)) int request_is_letter(__u8 byte)
{
	__u8 letter = byte | 0x20;

	return letter >= 'a' && letter <= 'z';
}

static inline __attribute__((always_inline)) void request_method(struct request_line *l, __u8 byte)
{
	/* Servers skip empty lines before a request (RFC 9112, 2.2). */
	if (!l->length && (byte == '\r' || byte == '\n'))
		return;
	if (byte == ' ' && l->length) {
		route_end(&l->method, ROUTE_AT_METHOD);
		l->stage = REQUEST_TARGET;
	} else if ((request_is_letter(byte) || byte == '-' || byte == '_') &&
		   l->length < REQUEST_METHOD_LONGEST) {
		route_byte(&l->method, ROUTE_AT_METHOD, ROUTE_METHOD_PLACES, byte);
		l->length++;
	} else {
		l->stage = REQUEST_STRANGE;
	}
}

/* The path is over after as many bytes as routes have. */
static inline __attribute__((always_inline)) void request_path(struct request_line *l, __u8 byte)
{
	if (byte == ' ' || byte == '?' || byte == '\r' || byte == '\n') {
		route_end(&l->path, ROUTE_AT_PATH);
		l->stage = REQUEST_OVER;
	} else if (byte < ' ' || byte == 0x7f) {
		l->stage = REQUEST_STRANGE;
	} else {
		route_byte(&l->path, ROUTE_AT_PATH, ROUTE_PATH_PLACES, byte);
		if (l->path.places == ROUTE_PATH_PLACES - 1)
			l->stage = REQUEST_OVER;
	}
}

/* A target that is no path misses all routes: "*", and the host and port of CONNECT. */
static inline __attribute__((always_inline)) void request_pathless(struct request_line *l)
{
	l->path.misses = ~0U;
	l->stage = REQUEST_OVER;
}

static inline __attribute__((always_inline)) void request_target(struct request_line *l, __u8 byte)
{
	if (byte == '/') {
		l->stage = REQUEST_PATH;
		request_path(l, byte);
	} else if (request_is_letter(byte)) {
		l->stage = REQUEST_SCHEME;
	} else if (byte <= ' ' || byte >= 0x7f) {
		l->stage = REQUEST_STRANGE;
	} else {
		request_pathless(l);
	}
}

/* After the authority of an absolute target. A missing path is "/" (RFC 9110, 4.2.3). */
static inline __attribute__((always_inline)) void request_authority(struct request_line *l,
								    __u8 byte)
{
	if (byte != '/' && byte != '?' && byte > ' ')
		return;
	l->stage = REQUEST_PATH;
	request_path(l, '/');
	if (byte != '/')
		request_path(l, byte);
}

/* Take the next byte. */
static inline __attribute__((always_inline)) void request_byte(struct request_line *l, __u8 byte)
{
	switch (l->stage) {
	case REQUEST_METHOD:
		request_method(l, byte);
		break;
	case REQUEST_TARGET:
		request_target(l, byte);
		break;
	case REQUEST_SCHEME:
		if (byte == ':')
			l->stage = REQUEST_SLASH;
		else if (byte <= ' ' || byte == '/')
			request_pathless(l);
		break;
	case REQUEST_SLASH:
	case REQUEST_SLASHES:
		if (byte == '/')
			l->stage++;
		else
			request_pathless(l);
		break;
	case REQUEST_AUTHORITY:
		request_authority(l, byte);
		break;
	case REQUEST_PATH:
		request_path(l, byte);
		break;
	default: /* it wants no more */
		break;
	}
}

#endif
