/* SPDX-License-Identifier: MIT */
/* The protocol of a server by its first bytes, when they are unexpected. */
#ifndef DRIVER_TRANSPORT_SPEECH_H
#define DRIVER_TRANSPORT_SPEECH_H

#include <stddef.h>

enum speech {
	SPEECH_UNKNOWN,
	SPEECH_HTTP1, /* "HTTP/1.1 400 …" */
	SPEECH_TEXT,  /* a page without a header, as HTTP/1 servers answer HTTP/0.9 */
	SPEECH_HTTP2, /* a SETTINGS frame */
	SPEECH_TLS,   /* a record, mostly an alert */
};

enum speech speech_of(const char *data, size_t length);

#endif
