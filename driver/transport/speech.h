/* SPDX-License-Identifier: MIT */
/* What a server speaks, by its first bytes: asked when they are not what was expected. */
#ifndef DRIVER_TRANSPORT_SPEECH_H
#define DRIVER_TRANSPORT_SPEECH_H

#include <stddef.h>

enum speech {
	SPEECH_UNKNOWN,
	SPEECH_HTTP1, /* "HTTP/1.1 400 …" */
	SPEECH_TEXT, /* a page without a header: what HTTP/1 servers say to what they take for HTTP/0.9 */
	SPEECH_HTTP2, /* a frame of SETTINGS */
	SPEECH_TLS,   /* a record: an alert, mostly */
};

enum speech speech_of(const char *data, size_t length);

#endif
